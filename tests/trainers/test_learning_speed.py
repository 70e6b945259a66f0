"""What makes the same settings fit: rewards in units of the returns, a learning rate by KL divergence, defaults by the
number of Game Boys, and the meter that says how large a minibatch may be."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_style import a2c_overlap, a2c_streaming, ppo_lite, ppo_recurrent, pqn, pqn_recurrent
from gbxcule_puffer.trainers import speed
from gbxcule_puffer.trainers.blocks import NoiseScale, ReturnScale, rows
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.flags import flags_to_save, read_flags, resumed_flags
from tests.support.training_runs import records, toy_run, words

GAMMA = 0.9
CPU = torch.device("cpu")


def rollout(seed: int, factor: float, steps: int = 16, envs: int = 6) -> dict[str, torch.Tensor]:
    """Random rewards and ends."""
    random = np.random.default_rng(seed)
    ends = torch.from_numpy(random.random((steps, envs)) < 0.1)
    rewards = torch.from_numpy(random.random((steps, envs)) < 0.2).float() * factor
    zeros = torch.zeros(steps, envs)
    return {
        "rewards": rewards,
        "terminals": ends,
        "truncations": ends & False,
        "values": zeros,
        "next_values": zeros + 1,
    }


def test_rewards_are_divided_by_the_deviation_of_the_returns() -> None:
    """Of those counted so far, beside a slow loop; the episodes go on over the rollouts."""
    scale, head = ReturnScale(6, GAMMA, World(), CPU), nn.Linear(3, 1)
    weight, running = 0.0, np.zeros(6)
    sums = np.zeros(2)
    for number in range(5):
        played = rollout(number, 100.0)
        before = played["rewards"].clone()
        found = []
        for step in range(16):
            running = GAMMA * running + before[step].numpy()
            found.append(running.copy())
            running = running * ~played["terminals"][step].numpy()
        weight = 0.95 * weight + 0.05
        sums = 0.95 * sums + 0.05 * np.array([np.mean(found), np.mean(np.square(found))])
        deviation = np.sqrt(sums[1] / weight - (sums[0] / weight) ** 2)
        scale.scale(played, head)
        assert float(scale.deviation) == pytest.approx(deviation, rel=1e-4)
        assert torch.allclose(played["rewards"], (before / deviation).float(), rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e5])
def test_the_size_of_a_game_s_points_does_not_matter(factor: float) -> None:
    ones, others = rollout(1, 1.0), rollout(1, factor)
    for played in (ones, others):
        ReturnScale(6, GAMMA, World(), CPU).scale(played, nn.Linear(3, 1))
    assert torch.allclose(ones["rewards"], others["rewards"], rtol=1e-3)


def test_values_of_the_game_s_own_rewards_stay() -> None:
    """When the deviation changes, the layer that gives the values does, too; before the first reward nothing does."""
    scale, head, features = ReturnScale(6, GAMMA, World(), CPU), nn.Linear(3, 1), torch.randn(7, 3)
    quiet = rollout(1, 0.0)
    first = head(features).detach()
    scale.scale(quiet, head)
    assert torch.equal(head(features), first) and not quiet["rewards"].any() and float(scale.deviation) == 0
    scale.scale(rollout(2, 5.0), head)
    assert torch.equal(head(features), first), "what it gave so far was of no game"
    before = head(features).detach() * scale.deviation
    later = rollout(3, 500.0)
    values = later["next_values"].clone() * scale.deviation
    scale.scale(later, head)
    assert torch.allclose(head(features) * scale.deviation, before, rtol=1e-4)
    assert torch.allclose(later["next_values"] * scale.deviation, values, rtol=1e-4)


def test_a_reward_that_is_new_is_not_endless() -> None:
    scale, played = ReturnScale(6, GAMMA, World(), CPU), rollout(1, 0.0, steps=512)
    played["rewards"][500, 3] = 1e6
    scale.scale(played, nn.Linear(3, 1))
    assert float(played["rewards"].max()) == 10.0


def test_the_learning_rate_follows_the_kl_divergence() -> None:
    args = ppo_lite.Args(env="toy", lr=1e-3, lr_kl=0.02)

    def after(lr: float, approx_kl: float) -> float:
        """The rate as the optimizers have it on a CPU, after a divergence as the losses have it."""
        return float(ppo_lite.next_lr(torch.tensor(lr, dtype=torch.float64), torch.tensor(approx_kl), args))

    assert after(1e-3, 0.02) == pytest.approx(1e-3)
    assert after(1e-3, 0.0288) == pytest.approx(1e-3 / 1.2)
    assert after(1e-3, 1.0) == pytest.approx(1e-3 / 1.5), "not at once"
    assert after(1e-3, 0.0) == pytest.approx(1.5e-3)
    assert after(3.9e-3, 0.001) == 4e-3 and after(1.1e-4, 1.0) == 1e-4


@pytest.mark.parametrize(("more", "constant"), [("", False), ("--lr-kl 0", True)])
def test_a_run_records_its_learning_rate(more: str, constant: bool, tmp_path: Path) -> None:
    sizes = {"num_steps": 16, "num_minibatches": 4, "total_env_steps": 1024, "eval_every_steps": 10**6, "lr": 1e-2}
    assert ppo_lite.main([*toy_run(tmp_path / "run", **sizes, log_interval=1), *words(more)]) == 0
    rows = [row for row in records(tmp_path / "run", times=True) if "charts/learning_rate" in row]
    rates = [row["charts/learning_rate"] for row in rows]
    assert all(row["charts/updates_per_s"] > 0 for row in rows)
    assert len(rates) == 8 and rates[0] == 1e-2 and (set(rates) == {1e-2}) == constant


@pytest.mark.parametrize(
    ("envs", "steps", "minibatches"),
    [(1, 32, 8), (64, 32, 8), (255, 32, 8), (256, 32, 16), (2048, 32, 16), (4096, 16, 16), (2**18, 8, 16)],
)
def test_defaults_by_the_number_of_game_boys(envs: int, steps: int, minibatches: int) -> None:
    read = partial(read_flags, ppo_lite.Args, "ppo_lite", None)
    device = ["--device", "cpu"]
    found = read([*device, f"--num-envs={envs}"])
    assert (found.num_steps, found.num_minibatches) == (steps, minibatches)
    given = read([*device, f"--num-envs={envs}", "--num-steps=5", "--num-minibatches=3"])
    assert (given.num_steps, given.num_minibatches) == (5, 3), "what is given counts"
    smoke = read([*device, "--smoke"])
    assert (smoke.num_envs, smoke.num_steps, smoke.num_minibatches) == (4, 8, 4)


@pytest.mark.parametrize("script", [ppo_lite, ppo_recurrent, pqn, pqn_recurrent], ids=lambda script: script.EXP_NAME)
def test_defaults_by_the_game_boys_of_all_processes(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(envs: int, processes: str) -> int:
        monkeypatch.setenv("WORLD_SIZE", processes)
        return read_flags(script.Args, script.EXP_NAME, None, ["--device=cpu", f"--num-envs={envs}"]).num_steps

    assert steps(4096, "4") == steps(16_384, "1") == 8 < steps(4096, "1")


def test_a_run_goes_on_with_the_defaults_that_it_began_with(tmp_path: Path) -> None:
    begun = ppo_lite.Args(env="toy", device="cpu", num_envs=16_384, num_steps=32, num_minibatches=2)
    resume = partial(resumed_flags, ppo_lite.Args, prog="ppo_lite", argv=[])
    again: Any = resume(flags_to_save(begun, tmp_path), source=tmp_path / "checkpoint.pt")
    assert (again.num_steps, again.num_minibatches) == (32, 2)


def test_the_noise_scale_of_gradients_that_are_known() -> None:
    """A sample's gradient is a vector of length 2 with noise of variance 9 in each of 50 directions:
    450 / 4 samples."""
    torch.manual_seed(1)
    mean, steps = torch.full((50,), 2 / 50**0.5), 4096
    samples = mean + 3 * torch.randn(steps, 50)
    model = nn.Linear(50, 1, bias=False)

    def gradients(index: torch.Tensor) -> None:
        model.weight.grad = samples[index].mean(0, keepdim=True)

    noise = NoiseScale(model)
    assert noise.value == float("inf"), "before there was a gradient"
    state = torch.get_rng_state()
    for _ in range(60):
        samples = mean + 3 * torch.randn(
            steps, 50, generator=torch.Generator().manual_seed(int(noise.moments.sum() * 1e6))
        )
        noise.measure(gradients, steps, 16)
    assert noise.value == pytest.approx(450 / 4, rel=0.1)
    assert torch.equal(torch.get_rng_state(), state), "it takes no random numbers of the training"


def test_measuring_the_noise_changes_no_training(tmp_path: Path) -> None:
    sizes = {"num_steps": 16, "num_minibatches": 4, "eval_every_steps": 10**6}
    for name, more in (("plain", []), ("measured", ["--noise-scale"])):
        assert ppo_lite.main([*toy_run(tmp_path / name, **sizes, log_interval=2), *more]) == 0
    plain, measured = (
        [row for row in records(tmp_path / name) if "losses/entropy" in row] for name in ("plain", "measured")
    )
    assert all(row.pop("charts/noise_scale") > 0 for row in measured)
    assert measured == plain


def test_graphs_are_recorded_by_default_on_a_gpu_but_for_code_of_the_user() -> None:
    def recorded(*words: str) -> str:
        args = read_flags(ppo_lite.Args, "ppo_lite", None, words)
        found = "all" if args.graph_steps else "learner" if args.cuda_graph else "nothing"
        assert bool(args.left_out) == (found == "learner")
        return found

    task = "--task=mine.py:Mine"
    assert recorded("--device=cuda:1") == recorded("--device=cuda", "--env=gbxcule_orchard") == "all"
    assert recorded("--device=cuda", task) == "learner", "a Task's code may wait for the GPU"
    assert recorded("--device=cuda", task, "--graph-task") == "all"
    assert recorded("--device=cuda", "--no-cuda-graph") == recorded("--device=cpu") == "nothing"
    assert recorded("--device=cuda", task, "--graph-task", "--no-cuda-graph") == "nothing"
    assert recorded("--env=pyboy_puffer_vec") == "nothing"


def test_bfloat16_is_the_default_for_pictures_where_the_device_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(script: ModuleType, *words: str) -> bool:
        return read_flags(script.Args, script.EXP_NAME, None, words).bf16

    for script in (ppo_lite, ppo_recurrent, a2c_streaming, a2c_overlap):
        monkeypatch.setattr(speed, "cpu_features", lambda: {"avx2", "avx512_bf16"})
        assert found(script, "--device=cpu") and not found(script, "--device=cpu", "--no-bf16")
        assert not found(script, "--device=cpu", "--obs=tiles"), "positions have more digits than bfloat16"
        monkeypatch.setattr(speed, "cpu_features", lambda: {"avx2"})
        assert not found(script, "--device=cpu") and found(script, "--device=cpu", "--bf16")
        assert not found(script, "--device=cuda"), "there is none, which is said later"
        with monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "is_available", lambda: True)
            for supported in (True, False):
                patch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, got=supported: got)
                assert found(script, "--device=cuda") == supported


@pytest.mark.parametrize(
    "values",
    [torch.rand(40), torch.arange(40), torch.rand(40) < 0.5, torch.rand(40, 3), torch.rand(40, 2, 4)]
    + [torch.randint(0, 256, (40, *shape), dtype=torch.uint8) for shape in ((1, 72, 80), (7,), (2, 3, 5))],
    ids=lambda values: f"{values.dtype}-{tuple(values.shape[1:])}",
)
def test_the_rows_of_a_minibatch_are_those_of_the_index(values: torch.Tensor) -> None:
    """Of whole words and not, of vectors, pictures and numbers."""
    index = torch.randperm(len(values))[:15]
    found = rows(values, index)
    assert found.dtype == values.dtype and torch.equal(found, values[index])
