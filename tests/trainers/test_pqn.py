"""PQN: one forward a step, what a truncation leaves out, the toy learned."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import pqn
from cleanrl_style.pqn import Args, QNetwork, backward, collect, empty_rollout, explore, learn, main
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.training_runs import last_value, read, records, words

# Toy runs: 512 steps a rollout.
SIZE = words("--env toy --device cpu --num-envs 32 --num-steps 16 --max-steps 16 --eps-steps 4000")
SHORT = words("--total-env-steps 3072 --eval-every-steps 1024 --checkpoint-every 512 --keep-checkpoints 4")
SHORT += words("--eval-episodes 4 --eval-envs 4 --stop-at-success 2")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class Counted:
    """A network that counts its calls."""

    def __init__(self, model: QNetwork) -> None:
        self.model, self.calls = model, 0

    def __call__(self, obs: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.model(obs)


def filled(steps: int = 20, envs: int = 6) -> tuple[QNetwork, Any, dict[str, torch.Tensor], int]:
    """(network, env, a rollout that holds truncations, calls of the network)."""
    env = ToyEnv(num_envs=envs, max_steps=4)
    env.reset(seed=1)
    torch.manual_seed(1)
    model = QNetwork(shades_layout(1, 20, 20), 8)
    rollout = empty_rollout(Args(env="toy", num_steps=steps, num_envs=envs), env.layout, env.device)
    counted = Counted(model)
    collect(counted, env, rollout, torch.tensor(0.5), Stopwatch(env.device, False))
    assert rollout["truncations"].any() and rollout["actions"].unique().numel() == 8
    return model, env, rollout, counted.calls


def test_a_rollout_keeps_what_the_env_overwrites() -> None:
    """Observations are those acted on, values those of their best actions, the last of what lies behind."""
    model, env, rollout, calls = filled()
    assert calls == 21, "one forward a step, and one behind the last"
    twin = ToyEnv(num_envs=6, max_steps=4)
    twin.reset(seed=1)
    for step in range(20):
        assert torch.equal(rollout["obs"][step], twin.observations)
        with torch.no_grad():
            assert torch.equal(rollout["values"][step], model(twin.observations).amax(1))
        _, rewards, terminals, truncations, _ = twin.step(rollout["actions"][step])
        for name, part in {"rewards": rewards, "terminals": terminals, "truncations": truncations}.items():
            assert torch.equal(rollout[name][step], part)
    with torch.no_grad():
        assert torch.equal(rollout["values"][20], model(env.observations).amax(1))


def test_a_truncated_step_teaches_nothing_about_its_action() -> None:
    """Its reward, of whatever size, changes no weight; that of any other step does."""
    weights = []
    for where, reward in (("truncations", 0.0), ("truncations", 1e3), ("others", 1e3)):
        model, _, rollout, _ = filled()
        mask = rollout["truncations"] if where == "truncations" else ~rollout["truncations"]
        rollout["rewards"][mask] = reward if where == "others" else rollout["rewards"][mask] + reward
        optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2)
        torch.manual_seed(2)
        args = Args(env="toy")
        learn(model, optimizer, rollout, partial(backward, model, optimizer, rollout, args), args, World())
        weights.append(torch.cat([part.flatten() for part in model.parameters()]).detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_exploration_is_as_frequent_as_asked() -> None:
    values = torch.randn(20_000, 8)
    assert torch.equal(explore(values, 0.0), values.argmax(1))
    best = (explore(values, torch.tensor(0.5)) == values.argmax(1)).float().mean().item()
    assert best == pytest.approx(0.5 + 0.5 / 8, abs=0.02)


def test_features_are_normalised() -> None:
    """Pictures of another contrast are the same to the network, but for what normalising adds to divide safely."""
    network = QNetwork(shades_layout(1, 20, 20), 8)
    for layer in (network.convolutions[1], network.convolutions[4]):
        torch.nn.init.zeros_(layer.bias)  # pyright: ignore[reportArgumentType]
    obs = torch.zeros((2, 1, 20, 20), dtype=torch.uint8)
    obs[0, 0, 4:12, 8:16], obs[1, 0, 4:12, 8:16] = 1, 3
    one, other = network(obs)
    assert one.std() > 0 and torch.allclose(one, other, atol=2e-3 * one.abs().max().item())


@pytest.mark.parametrize(
    ("codec", "stack_k"),
    [("pokemonred_puffer_v0", 4), pytest.param("pokemonred_puffer_v1", 1, marks=pytest.mark.long)],
)
def test_it_learns_the_toy(tmp_path: Path, codec: str, stack_k: int, capsys: pytest.CaptureFixture) -> None:
    flags = [*SIZE, "--action-codec", codec, "--stack-k", str(stack_k), "--run-dir", str(tmp_path / "run")]
    flags += words("--lr 1e-3 --gamma 0.9 --eps-steps 8000 --total-env-steps 20480 --eval-every-steps 4096")
    flags += words("--eval-episodes 20 --media-every 100000")
    assert main(flags) == 0
    rate = last_value(tmp_path / "run", "eval/success_rate")
    assert rate >= 0.95 > 0.6 > last_value(tmp_path / "run", "eval/random_success_rate")
    assert last_value(tmp_path / "run", "eval/greedy_success") >= 0.9
    out = capsys.readouterr().out
    assert "memory estimate on cpu: rollout" in out and "success rate" in out
    env = ToyEnv(num_envs=10, stack_k=stack_k, action_codec=codec)
    policy = pqn.load_policy(read(tmp_path / "run/checkpoint.pt"), env, seed=5, greedy=True)
    assert evaluate(policy, env, 20, 5)["success_rate"] > 0.9


def test_a_run_leaves_its_metrics(tmp_path: Path) -> None:
    assert main([*SIZE, *SHORT, "--anneal-lr", "--log-interval", "1", "--run-dir", str(tmp_path)]) == 0
    merged = {name for record in records(tmp_path) for name in record}
    tags = "losses/td_loss losses/td_error losses/q_values losses/grad_norm charts/learning_rate charts/epsilon"
    tags += " charts/episodic_return env/done_rate env/action_hist/UP eval/success_rate eval/greedy_success"
    assert set(tags.split()) <= merged
    logged = [record for record in records(tmp_path) if "charts/epsilon" in record]
    assert [record["charts/epsilon"] for record in logged] == pytest.approx(
        [1 - 0.95 * 512 * i / 4000 for i in range(6)]
    )
    assert [record["charts/learning_rate"] for record in logged] == pytest.approx(
        [5e-4 * (1 - i / 6) for i in range(6)]
    )
