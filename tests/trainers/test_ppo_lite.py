"""PPO: losses against NumPy, by hand and frozen, what a rollout keeps, the toy learned."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from cleanrl_style import ppo_lite
from cleanrl_style.ppo_lite import (
    LOSSES,
    Agent,
    Args,
    backward,
    collect,
    empty_rollout,
    estimate,
    gae,
    learn,
    main,
    ppo_losses,
    reuse_values,
    take_step,
)
from gbxcule_puffer.device import free_bytes
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.kernels import FastConvolutions
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.training_runs import last_value, read, records, words

# Toy runs: 512 steps a rollout.
SIZE = words("--env toy --device cpu --num-envs 16 --num-steps 32 --max-steps 16 --num-minibatches 4 --anneal-lr")
SHORT = words("--total-env-steps 3072 --eval-every-steps 1024 --checkpoint-every 512 --keep-checkpoints 4")
SHORT += words("--eval-episodes 4 --eval-envs 4 --stop-at-success 2")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def batch_of(seed: int, size: int = 50, actions: int = 7) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    old = random.normal(size=(size, actions))
    old -= np.log(np.exp(old).sum(1, keepdims=True))
    chosen = random.integers(0, actions, size)
    numbers = {name: random.normal(size=size) for name in ("values", "advantages", "returns", "new_values")}
    logits = old + 0.2 * random.normal(size=old.shape)
    return {**numbers, "actions": chosen, "logprobs": old[np.arange(size), chosen], "logits": logits}


def slow_losses(batch: dict[str, np.ndarray], clip: float, value_clip: float | None) -> list[float]:
    """One sample after the other."""
    parts = np.zeros((len(batch["actions"]), 6))
    for i, action in enumerate(batch["actions"]):
        probabilities = np.exp(batch["logits"][i]) / np.exp(batch["logits"][i]).sum()
        ratio = probabilities[action] / np.exp(batch["logprobs"][i])
        advantage, new, old, target = (batch[n][i] for n in ("advantages", "new_values", "values", "returns"))
        bounded = min(max(ratio, 1 - clip), 1 + clip)
        error = (new - target) ** 2
        if value_clip is not None:
            error = max(error, (old + min(max(new - old, -value_clip), value_clip) - target) ** 2)
        entropy = -sum(p * np.log(p) for p in probabilities)
        distances = -np.log(ratio), ratio - 1 - np.log(ratio), abs(ratio - 1) > clip
        parts[i] = -min(advantage * ratio, advantage * bounded), 0.5 * error, entropy, *distances
    return parts.mean(0).tolist()


def fast_losses(batch: dict[str, np.ndarray], clip: float, value_clip: float | None) -> list[float]:
    tensors = {name: torch.from_numpy(part) for name, part in batch.items()}
    return [x.item() for x in ppo_losses(tensors["logits"], tensors["new_values"], tensors, clip, value_clip)]


@pytest.mark.parametrize("value_clip", [None, 0.3])
@pytest.mark.parametrize("clip", [0.1, 0.3])
def test_losses_are_the_slow_loop(clip: float, value_clip: float | None) -> None:
    batch = batch_of(1)
    assert fast_losses(batch, clip, value_clip) == pytest.approx(slow_losses(batch, clip, value_clip), rel=1e-6)


def test_losses_are_the_frozen_numbers() -> None:
    """Policy loss, value loss, entropy, old_approx_kl, approx_kl, clipfrac: against a change of both the loss and the
    loop above."""
    frozen = [0.3164242390, 1.3340714602, 1.6231044363, 0.0142407876, 0.0166462726, 0.58]
    assert fast_losses(batch_of(7), 0.1, 0.2) == pytest.approx(frozen, rel=1e-6)


def test_the_clip_stops_the_gradient() -> None:
    """A probability that has moved far in the advantage's direction is pushed no further, in the other it is."""
    logits = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    old = torch.tensor([0.5, 0.5]).log()
    batch = {"actions": torch.tensor([0, 0]), "logprobs": old, "advantages": torch.tensor([1.0, -1.0])}
    batch |= {"returns": torch.zeros(2), "values": torch.zeros(2)}
    ppo_losses(logits, torch.zeros(2), batch, 0.1)[0].backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == [0.0, 0.0]
    assert logits.grad[1, 0] > 0


def test_a_rollout_keeps_what_the_env_overwrites() -> None:
    """Observations are those acted on, and the values after a cut are those of the final observation."""
    env, twin = ToyEnv(num_envs=6, max_steps=4, stack_k=2), ToyEnv(num_envs=6, max_steps=4, stack_k=2)
    env.reset(seed=1)
    twin.reset(seed=1)
    torch.manual_seed(1)
    model, args = Agent(env.layout, 8), Args(env="toy", num_steps=20, num_envs=6)
    rollout = empty_rollout(args, env.layout, env.device)
    collect(model, env, rollout, Stopwatch(env.device, False))
    for step in range(20):
        assert torch.equal(rollout["obs"][step], twin.observations)
        with torch.no_grad():
            logits, values = model(twin.observations)
            _, rewards, terminals, truncations, _ = twin.step(rollout["actions"][step])
            assert torch.equal(rollout["next_values"][step], model(twin.final_observation)[1])
        assert torch.equal(rollout["values"][step], values)
        logprobs = torch.distributions.Categorical(logits=logits).log_prob(rollout["actions"][step])
        assert torch.allclose(rollout["logprobs"][step], logprobs, atol=1e-6)
        for name, part in {"rewards": rewards, "terminals": terminals, "truncations": truncations}.items():
            assert torch.equal(rollout[name][step], part)
    cut = rollout["truncations"][:-1]
    assert cut.any()
    assert not torch.equal(rollout["next_values"][:-1][cut], rollout["values"][1:][cut]), "not of the new episode"
    advantages, _ = gae(rollout, gamma=0.9, gae_lambda=0.5)
    one_step = (rollout["rewards"] + 0.9 * rollout["next_values"] - rollout["values"])[:-1][cut]
    assert torch.allclose(advantages[:-1][cut], one_step)


@pytest.mark.parametrize("gamma", [0.9, 0.0])
def test_values_of_the_next_forward_are_those_of_its_own(gamma: float) -> None:
    """Half of the forwards, the same advantages; but the last step of a truncated episode has none of its own, unless
    nothing is bootstrapped anyway."""
    rollouts, forwards = [], []
    for reuse in (False, True):
        env = ToyEnv(num_envs=6, max_steps=5)
        env.reset(seed=1)
        torch.manual_seed(1)
        model = Agent(shades_layout(1, 20, 20), 8)
        model.register_forward_hook(lambda *_, reuse=reuse: forwards.append(reuse))
        args = Args(env="toy", num_steps=24, num_envs=6)
        rollouts.append(empty_rollout(args, shades_layout(1, 20, 20), torch.device("cpu")))
        collect(model, env, rollouts[-1], Stopwatch(env.device, False), reuse)
    assert forwards.count(False) == 48 and forwards.count(True) == 25
    two, one = rollouts
    reuse_values(one, gamma)
    cut = two["truncations"] & ~two["terminals"]
    cut[-1] = False
    assert cut.any() and two["terminals"].any()
    plain = gae(two, gamma, 0.0)[0]
    assert torch.allclose(gae(one, gamma, 0.0)[0], torch.where(cut, 0, plain) if gamma else plain, atol=1e-6)
    # With lambda, too, nothing passes from one episode to another.
    two["next_values"] = torch.where(cut, (two["values"] - two["rewards"]) / (gamma or 1.0), two["next_values"])
    assert torch.allclose(gae(one, gamma, 0.9)[0], gae(two, gamma, 0.9)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("codec", "stack_k", "more"),
    [
        *(
            pytest.param(codec, stack_k, [], marks=pytest.mark.long)
            for codec, stack_k in (("pokemonred_puffer_v0", 4), ("pokemonred_puffer_v1", 1))
        ),
        ("pokemonred_puffer_v1", 1, ["--reuse-values", "--bf16"]),
    ],
)
def test_it_learns_the_toy(
    tmp_path: Path, codec: str, stack_k: int, more: list[str], capsys: pytest.CaptureFixture
) -> None:
    flags = [*SIZE, "--action-codec", codec, "--stack-k", str(stack_k), "--run-dir", str(tmp_path / "run")]
    flags += words("--num-envs 32 --lr 1e-3 --gamma 0.9 --total-env-steps 20480 --eval-every-steps 4096") + more
    flags += words("--eval-episodes 20 --media-every 100000")
    assert main(flags) == 0
    rate = last_value(tmp_path / "run", "eval/success_rate")
    assert rate >= 0.95 > 0.6 > last_value(tmp_path / "run", "eval/random_success_rate")
    out = capsys.readouterr().out
    assert "memory estimate on cpu: rollout" in out and "success rate" in out
    # The checkpoint plays as well.
    env = ToyEnv(num_envs=10, stack_k=stack_k, action_codec=codec)
    policy = ppo_lite.load_policy(read(tmp_path / "run/checkpoint.pt"), env, seed=5)
    assert evaluate(policy, env, 20, 5)["success_rate"] > 0.9


def test_a_run_leaves_its_metrics(tmp_path: Path) -> None:
    assert main([*SIZE, *SHORT, "--log-interval", "1", "--run-dir", str(tmp_path)]) == 0
    merged = {name for record in records(tmp_path) for name in record}
    tags = "losses/policy_loss losses/value_loss losses/entropy losses/approx_kl losses/clipfrac losses/grad_norm"
    tags += " losses/old_approx_kl losses/explained_variance"
    tags += " charts/learning_rate charts/episodic_return charts/episodic_length env/done_rate env/trunc_rate"
    tags += " env/dist_p50 env/action_hist/UP eval/success_rate eval/random_success_rate"
    assert set(tags.split()) <= merged
    rates = [record["charts/learning_rate"] for record in records(tmp_path) if "charts/learning_rate" in record]
    assert rates == pytest.approx([1e-3 * (1 - i / 6) for i in range(6)])
    kept = {path.name for path in tmp_path.glob("checkpoint*")}
    assert kept == {"checkpoint.pt", "checkpoint.1.pt", "checkpoint.2.pt", "checkpoint.3.pt"}


@pytest.mark.parametrize(("target_kl", "epochs"), [(None, 3), (1e9, 3), (0.0, 1)])
def test_an_update_ends_where_the_policy_has_moved_too_far(target_kl: float | None, epochs: int) -> None:
    env = ToyEnv(num_envs=6, max_steps=5)
    env.reset(seed=1)
    args = Args(env="toy", num_steps=8, num_envs=6, num_minibatches=2, update_epochs=3, target_kl=target_kl)
    torch.manual_seed(1)
    model, rollout = Agent(env.layout, 8), empty_rollout(args, env.layout, env.device)
    optimizer, steps = torch.optim.Adam(model.parameters(), lr=1e-2), []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    collect(model, env, rollout, Stopwatch(env.device, False))
    estimate(rollout, args, None, model.value)
    gradients = partial(backward, model, optimizer, rollout, args)
    losses = learn(model, rollout, gradients, partial(take_step, model, optimizer, args), args, World())
    assert len(steps) == 2 * epochs and losses.isfinite().all()
    explained = 1 - (rollout["returns"] - rollout["values"]).numpy().var() / rollout["returns"].numpy().var()
    assert dict(zip(LOSSES, losses.tolist(), strict=True))["explained_variance"] == pytest.approx(explained, rel=1e-4)


def test_too_large_a_rollout_is_refused_before_it_is_allocated(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    steps = free_bytes(torch.device("cpu")) // (16 * 4 * 20 * 20)
    flags = [*SIZE, "--num-steps", str(steps), "--run-dir", str(tmp_path / "run")]
    assert main(flags) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "memory estimate on cpu: rollout" in line and "lower --num-envs or --num-steps" in line
    assert not (tmp_path / "run").exists()


def test_fast_convolutions_are_the_same_layers() -> None:
    """On a CPU also the same numbers; checkpoints do not tell them apart."""
    torch.manual_seed(1)
    model, obs = Agent(shades_layout(2, 72, 80), 8), torch.randint(4, (5, 2, 72, 80), dtype=torch.uint8)
    plain, names = model(obs), list(model.state_dict())
    weights = list(model.parameters())
    model.convolutions = FastConvolutions(model.convolutions)
    assert all(torch.equal(one, other) for one, other in zip(model(obs), plain, strict=True))
    assert list(model.state_dict()) == names and len(weights) == len(list(model.parameters()))
    assert all(one is other for one, other in zip(weights, model.parameters(), strict=True))
