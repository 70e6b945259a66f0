"""DQN: losses against NumPy, by hand and frozen, memory cells, the toy learned, what a resumed run needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cleanrl_style import dqn_nstep
from cleanrl_style.dqn_nstep import (
    QNetwork,
    act,
    double_dqn_loss,
    main,
    sample_transitions,
    sequence_loss,
    transition_loss,
)
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers import Run, World
from gbxcule_puffer.trainers.blocks.replay import Replay, Sequences
from gbxcule_puffer.trainers.checkpoints import Resumed
from gbxcule_puffer.trainers.evaluation import evaluate
from tests.support.training_runs import last_value, read, same_checkpoints, words

# Toy runs: a round is 32 steps.
SIZE = words("--env toy --device cpu --num-envs 8 --train-every 4 --max-steps 16")
SHORT = words("--total-env-steps 1536 --eval-every-steps 512 --checkpoint-every 256 --keep-checkpoints 4")
SHORT += words("--eval-episodes 4 --eval-envs 4 --stop-at-success 2 --buffer-size 1024 --learning-starts 200")
SHORT += words("--batch-size 32 --log-interval 16 --target-every 5 --eps-steps 1000 --media-every 10000")
GAMMA, N_STEP = 0.9, 3


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def loss_parts(seed: int, size: int = 40, actions: int = 5) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    tables = {name: random.normal(size=(size, actions)) for name in ("values", "next_values", "target_values")}
    weights = random.random(size) * (random.random(size) < 0.8)
    chosen = random.integers(0, actions, size)
    discounts = np.where(random.random(size) < 0.2, 0.0, 0.9)
    returns = 2 * random.normal(size=size)
    return {**tables, "actions": chosen, "returns": returns, "discounts": discounts, "weights": weights}


def slow_loss(parts: dict[str, np.ndarray]) -> tuple[float, list[float]]:
    """One transition after the other, Huber loss with its knee at 1."""
    losses, errors = [], []
    for i, action in enumerate(parts["actions"]):
        best = int(np.argmax(parts["next_values"][i]))
        target = parts["returns"][i] + parts["discounts"][i] * parts["target_values"][i, best]
        error = target - parts["values"][i, action]
        errors.append(error)
        huber = 0.5 * error**2 if abs(error) < 1 else abs(error) - 0.5
        losses.append(parts["weights"][i] * huber)
    return sum(losses) / max(1, (parts["weights"] > 0).sum()), errors


def fast_loss(parts: dict[str, np.ndarray]) -> tuple[float, list[float]]:
    t = {name: torch.from_numpy(part) for name, part in parts.items()}
    following = (t["next_values"], t["target_values"])
    loss, errors = double_dqn_loss(t["values"], t["actions"], t["returns"], t["discounts"], following, t["weights"])
    return loss.item(), errors.tolist()


def test_the_loss_is_the_slow_loop() -> None:
    parts = loss_parts(1)
    loss, errors = fast_loss(parts)
    wanted, wanted_errors = slow_loss(parts)
    assert loss == pytest.approx(wanted, rel=1e-9)
    assert errors == pytest.approx(wanted_errors, rel=1e-9)


def test_the_loss_is_the_frozen_number() -> None:
    """Against a change of both the loss and the loop above."""
    assert fast_loss(loss_parts(7))[0] == pytest.approx(0.4048172804, rel=1e-8)


def test_targets_carry_no_gradient_and_no_targets_no_loss() -> None:
    values, following = torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 3, requires_grad=True)
    numbers = (torch.tensor([0, 1]), torch.tensor([1.0, 5.0]), torch.ones(2))
    loss, _ = double_dqn_loss(values, *numbers, (following, following), torch.tensor([1.0, 0.0]))
    loss.backward()
    assert following.grad is None and values.grad is not None
    assert values.grad.tolist() == [[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    nothing, _ = double_dqn_loss(values, *numbers, (following, following), torch.zeros(2))
    assert nothing.item() == 0


def test_epsilon_greedy_explores_as_often_as_it_should() -> None:
    torch.manual_seed(1)
    model = QNetwork(shades_layout(1, 20, 20), 8, "none")
    obs = torch.randint(4, (4000, 1, 20, 20), dtype=torch.uint8)
    state = torch.zeros(4000, 0)
    with torch.no_grad():
        greedy = model(obs, state)[0].argmax(1)
        assert torch.equal(act(model, obs, state, 0.0)[0], greedy)
        half = act(model, obs, state, 0.5)[0]
        shares = torch.bincount(act(model, obs, state, 1.0)[0], minlength=8) / 4000
    assert (half == greedy).float().mean().item() == pytest.approx(0.5 + 0.5 / 8, abs=0.03)
    assert shares.tolist() == pytest.approx([1 / 8] * 8, abs=0.03)


@pytest.mark.parametrize("recurrent", ["none", "gru", "lstm"])
def test_unrolled_sequences_are_what_acting_sees(recurrent: str) -> None:
    """Step by step with the state emptied at ends, as an actor does, and in one go: the same values."""
    torch.manual_seed(1)
    model = QNetwork(shades_layout(1, 20, 20), 8, recurrent)
    obs, ended = torch.randint(4, (9, 5, 1, 20, 20), dtype=torch.uint8), torch.rand(9, 5) < 0.3
    with torch.no_grad():
        values, state = model.unroll(obs, ended, 0), torch.zeros(5, model.state_size)
        for step in range(9):
            at_once, state = model(obs[step], state)
            assert torch.allclose(at_once, values[step], atol=1e-5)
            state = state * ~ended[step][:, None]


def test_the_burn_in_has_no_gradient_but_an_effect() -> None:
    torch.manual_seed(1)
    model = QNetwork(shades_layout(1, 20, 20), 8, "gru")
    first, last = torch.rand(2, 1, 1, 20, 20).mul(3).requires_grad_(), torch.rand(2, 1, 1, 20, 20)
    obs, ended = torch.cat([first, last]), torch.zeros(4, 1, dtype=torch.bool)
    model.unroll(obs, ended, 2)[2:].sum().backward()
    assert first.grad is None or first.grad.abs().sum() == 0
    assert not torch.equal(model.unroll(obs, ended, 2)[2:], model.unroll(last, ended[:2], 0))


def filled_replay(stack_k: int = 1, steps: int = 60) -> Replay:
    env = ToyEnv(num_envs=6, max_steps=7, stack_k=stack_k)
    obs, _ = env.reset(seed=1)
    replay = Replay(50, 6, shades_layout(stack_k, 20, 20), env.device, n_step=N_STEP)
    for _ in range(steps):
        before, actions = obs.clone(), torch.randint(8, (6,))
        obs, *parts, _ = env.step(actions)
        replay.add(before, actions, parts[0], parts[1], parts[2])
    return replay


def test_sequences_give_the_loss_of_their_transitions() -> None:
    """Without a memory cell a sequence is its transitions, cut at ends in the same way."""
    torch.manual_seed(1)
    model, target = QNetwork(shades_layout(1, 20, 20), 8, "none"), QNetwork(shades_layout(1, 20, 20), 8, "none")
    replay = filled_replay()
    length = 12
    batch: Any = replay.sample_sequences(20, length)
    loss, errors, _ = sequence_loss(model, target, batch, burn_in=4, n_step=N_STEP, gamma=GAMMA)
    assert errors.shape == (length - 4 - N_STEP, 20)
    weights, wanted = 0, 0.0
    for step in range(4, length - N_STEP):
        window = Sequences(*(part[step : step + N_STEP + 1] for part in batch))
        single, _, _ = sequence_loss(model, target, window, burn_in=0, n_step=N_STEP, gamma=GAMMA)
        count = int((~window.truncations[0]).sum())
        weights, wanted = weights + count, wanted + single.item() * count
    assert loss.item() == pytest.approx(wanted / weights, rel=1e-4)
    assert (batch.truncations | batch.terminals).any()


def test_a_batch_from_the_replay_is_learned_from() -> None:
    torch.manual_seed(1)
    model, target = QNetwork(shades_layout(2, 20, 20), 8, "none"), QNetwork(shades_layout(2, 20, 20), 8, "none")
    batch = sample_transitions(filled_replay(stack_k=2), 64, GAMMA)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(20):
        loss, errors, _ = transition_loss(model, target, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert errors.shape == (64,) and losses[-1] < 0.8 * losses[0]


LEARN = words("--num-envs 32 --lr 1e-3 --gamma 0.9 --eps-steps 8000 --learning-starts 500 --target-every 50")
LEARN += words("--batch-size 64 --train-every 2 --eval-every-steps 4096 --total-env-steps 20480 --buffer-size 20000")
LEARN += words("--media-every 100000 --eval-episodes 20")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("", marks=pytest.mark.long),
        "--priority-alpha 0.6 --stack-k 2 --action-codec pokemonred_puffer_v0",
    ],
)
def test_it_learns_the_toy(tmp_path: Path, options: str, capsys: pytest.CaptureFixture) -> None:
    assert main([*SIZE, *LEARN, *words(options), "--run-dir", str(tmp_path)]) == 0
    rate = last_value(tmp_path, "eval/success_rate")
    assert rate >= 0.95 > 0.6 > last_value(tmp_path, "eval/random_success_rate")
    out = capsys.readouterr().out
    assert "memory estimate on cpu: replay" in out and "a step's time" in out and "learn" in out
    checkpoint = read(tmp_path / "checkpoint.pt")
    env = ToyEnv(num_envs=10, stack_k=checkpoint["args"]["stack_k"], action_codec=checkpoint["args"]["action_codec"])
    assert evaluate(dqn_nstep.load_policy(checkpoint, env, seed=5), env, 20, 5)["success_rate"] > 0.8


@pytest.mark.long
def test_it_learns_with_a_memory(tmp_path: Path) -> None:
    flags = words("--burn-in 2 --sequence-length 4 --total-env-steps 10240 --eval-every-steps 10240 --n-step 3")
    assert main([*SIZE, *LEARN, *flags, "--recurrent", "lstm", "--run-dir", str(tmp_path)]) == 0
    # Of the episodes of training: a frozen policy can run into the same loop each time while values still grow.
    assert last_value(tmp_path, "charts/success_rate") > last_value(tmp_path, "eval/random_success_rate") + 0.35


def test_a_checkpoint_without_machines_begins_new_episodes(tmp_path: Path) -> None:
    """As checkpoints of a GPU are: memories are empty then, and what the replay ends with is cut off."""
    assert main([*SIZE, *SHORT, "--recurrent", "gru", "--total-env-steps", "512", "--run-dir", str(tmp_path)]) == 0
    state = read(tmp_path / "checkpoint.pt")
    (saved,) = state["processes"]
    assert saved["memory"].any() and not saved["replay"]["truncations"][-1].all()
    saved["envs"][0]["machines"] = None
    args = dqn_nstep.Args(**{**state["args"], "run_dir": str(tmp_path)})
    with Run(args, "dqn_nstep", World(), Resumed(tmp_path / "checkpoint.pt", {}, state)) as run:
        (env,) = run.open_envs()
        memory = torch.zeros_like(saved["memory"])
        replay = Replay(len(saved["replay"]["rewards"]), env.num_envs, env.layout, env.device, n_step=args.n_step)
        run.restore(dqn_nstep.LOSSES, {}, memory=memory, replay=replay)
    assert not memory.any()
    assert (replay.truncations | replay.terminals)[-1].all() and replay.count == saved["replay"]["count"]


def test_without_its_replay_a_resumed_run_fills_it_anew(tmp_path: Path) -> None:
    flags = [*SIZE, *SHORT, "--no-keep-replay", "--run-dir", str(tmp_path)]
    assert main([*flags, "--total-env-steps", "768"]) == 0
    state = read(tmp_path / "checkpoint.pt")
    assert state["processes"][0]["replay"] is None
    updates = state["counters"]["updates"]
    assert main([*flags, "--resume", str(tmp_path / "checkpoint.pt")]) == 0
    later = read(tmp_path / "checkpoint.pt")["counters"]
    assert later["global_step"] == 1536
    missed = (200 - 1) // 32  # rounds until --learning-starts transitions are there again
    assert later["updates"] - updates == 24 - missed


def test_one_env_at_a_time_is_the_same_run(tmp_path: Path) -> None:
    """--vec serial chooses the same actions and writes the same replay. Before learning the weights are the same too,
    so that a difference of rounding between the two ways cannot grow."""
    flags = [*SIZE, *SHORT, "--learning-starts", "1024", "--total-env-steps", "768", "--eps-start", "0.3"]
    for vec in ("batched", "serial"):
        assert main([*flags, "--vec", vec, "--run-dir", str(tmp_path / vec)]) == 0
    same_checkpoints(tmp_path / "batched/checkpoint.pt", tmp_path / "serial/checkpoint.pt")


def test_several_processes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert main([*SIZE, *SHORT, "--run-dir", str(tmp_path / "run")]) == 2
    assert "start it without torchrun" in capsys.readouterr().err
