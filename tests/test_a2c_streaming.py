"""Streaming A2C: the loss by hand, a run's files, exact resumption, the NaN guard, and that it learns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from cleanrl_style.a2c_streaming import Args, PixelActorCriticCNN, main, sample, td_losses, train
from gbxcule_puffer.stages import make_task
from tests.envs import STAGE

ROM = STAGE.parent.parent / json.loads(STAGE.read_text())["rom"]


@pytest.fixture(scope="module")
def one_step_task(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Flags of a task that one right action of eight solves."""
    stage = json.loads(STAGE.read_text())
    folder = tmp_path_factory.mktemp("one_step")
    files = make_task(ROM, ["RIGHT"], folder, start_actions=stage["start_actions"], k_consecutive=1)
    return {"rom": str(ROM), "start_state": str(files.start_state), "goal_dir": str(files.goal_dir)}


def arguments(run_dir: Path, task: dict[str, str], **changes: object) -> Args:
    options = {"num_envs": 8, "max_steps": 4, "k_consecutive": 1, "eval_episodes": 10, "log_interval": 8}
    options |= {"total_env_steps": 512, "eval_every_steps": 256, "stop_at_success": 2.0, "device": "cpu"}
    return Args(run_dir=str(run_dir), **task, **(options | changes))  # type: ignore[arg-type]


def records(run_dir: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def test_losses_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0], [0.0, 3.0**0.5]]).exp().log()
    logits = torch.stack([torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()])
    value, target = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])
    policy, value_loss, entropy = td_losses(logits, value, torch.tensor([0, 1]), target)
    # advantages 2 and -1
    assert policy.item() == pytest.approx(-(2 * -0.693147 + -1 * -0.287682) / 2, abs=1e-5)
    assert value_loss.item() == pytest.approx(0.5 * (4 + 1) / 2)
    assert entropy.item() == pytest.approx((0.693147 + 0.562335) / 2, abs=1e-5)


def test_the_advantage_carries_no_gradient() -> None:
    logits, value = torch.zeros((1, 2), requires_grad=True), torch.zeros(1, requires_grad=True)
    policy, _, _ = td_losses(logits, value, torch.tensor([0]), torch.ones(1))
    policy.backward()
    assert value.grad is None
    assert logits.grad is not None
    assert logits.grad[0, 0] < 0 < logits.grad[0, 1], "descent makes the better action likelier"


def test_samples_follow_the_policy() -> None:
    probabilities = torch.tensor([0.7, 0.2, 0.1, 0.0])
    generator = torch.Generator().manual_seed(1)
    actions = sample(probabilities.log().expand(20_000, 4), generator)
    shares = torch.bincount(actions, minlength=4) / 20_000
    assert shares.tolist() == pytest.approx(probabilities.tolist(), abs=0.02)
    assert shares[3] == 0


@pytest.mark.parametrize("shape", [(1, 72, 80), (4, 72, 80), (1, 144, 160)])
def test_the_model_fits_every_observation(shape: tuple[int, int, int]) -> None:
    model = PixelActorCriticCNN(shape, 8)
    logits, values = model(torch.randint(0, 4, (3, *shape), dtype=torch.uint8))
    assert logits.shape == (3, 8)
    assert values.shape == (3,)
    assert logits.softmax(1).max() < 0.2, "a new policy is nearly uniform"


def test_a_run_leaves_its_files(tmp_path: Path, one_step_task: dict[str, str], capsys: pytest.CaptureFixture) -> None:
    run_dir = tmp_path / "run"
    train(arguments(run_dir, one_step_task))
    written = {path.name for path in run_dir.iterdir()}
    assert {"metrics.jsonl", "manifest.json", "checkpoint.pt"} < written
    assert any(name.startswith("events.out.tfevents") for name in written)
    assert not any(name.endswith(".part") for name in written)
    merged = {name: value for record in records(run_dir) for name, value in record.items()}
    tags = (
        "charts/episodic_return charts/episodic_length charts/SPS losses/policy_loss losses/value_loss losses/entropy"
    )
    tags += " env/done_rate env/trunc_rate env/reset_rate env/dist_p10 env/dist_p50 env/dist_p90 env/action_hist/NOOP"
    tags += " time/env time/infer time/learn eval/success_rate eval/return eval/random_success_rate"
    assert set(tags.split()) <= set(merged)
    assert all(isinstance(value, int | float) for value in merged.values())
    manifest = json.loads((run_dir / "manifest.json").read_text())
    assert manifest["config"]["num_envs"] == 8
    assert manifest["versions"]["torch"] == torch.__version__
    state = torch.load(run_dir / "checkpoint.pt", weights_only=True)
    assert state["counters"]["global_step"] == 512
    report = capsys.readouterr().out
    for word in ("success rate", "random policy", str(run_dir / "checkpoint.pt"), f"tensorboard --logdir {run_dir}"):
        assert word in report


def test_a_resumed_run_is_the_same_run(tmp_path: Path, one_step_task: dict[str, str]) -> None:
    train(arguments(tmp_path / "whole", one_step_task))
    train(arguments(tmp_path / "parts", one_step_task, total_env_steps=256))
    train(arguments(tmp_path / "parts", one_step_task, resume=str(tmp_path / "parts/checkpoint.pt")))
    states = [torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("whole", "parts")]
    for part in ("model", "optimizer", "counters", "rng", "env"):
        assert_equal(states[0][part], states[1][part], part)
    losses = [
        [{name: value for name, value in record.items() if "losses" in name} for record in records(tmp_path / name)]
        for name in ("whole", "parts")
    ]
    assert [row for row in losses[0] if row] == [row for row in losses[1] if row]


def assert_equal(one: object, other: object, path: str) -> None:
    if isinstance(one, dict):
        assert isinstance(other, dict) and one.keys() == other.keys(), path
        for name in one:
            assert_equal(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, torch.Tensor):
        assert isinstance(other, torch.Tensor) and torch.equal(one, other), path
    else:
        assert one == other, path


def test_a_checkpoint_of_other_flags_is_refused(
    tmp_path: Path, one_step_task: dict[str, str], capsys: pytest.CaptureFixture
) -> None:
    run_dir = tmp_path / "run"
    train(arguments(run_dir, one_step_task, total_env_steps=32))
    capsys.readouterr()
    flags = ["--num-envs", "8", "--max-steps", "4", "--k-consecutive", "1", "--device", "cpu", "--gamma", "0.5"]
    flags += ["--resume", str(run_dir / "checkpoint.pt"), "--rom", one_step_task["rom"]]
    assert main([*flags, "--goal-dir", one_step_task["goal_dir"]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--gamma 0.99, not 0.5" in line


def test_numbers_that_are_not_finite_end_the_run(
    tmp_path: Path, one_step_task: dict[str, str], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as end:
        train(arguments(tmp_path / "run", one_step_task, lr=1e30))
    assert end.value.code == 1
    failure = json.loads((tmp_path / "run/failure.json").read_text())
    assert failure["not_finite"]
    assert failure["config"]["lr"] == 1e30
    assert failure["trace_id"] in capsys.readouterr().err


def test_it_learns(tmp_path: Path, one_step_task: dict[str, str]) -> None:
    """One action of eight is right and an episode has two steps: chance solves under a third."""
    run_dir = tmp_path / "run"
    changes = {"num_envs": 32, "max_steps": 2, "lr": 1e-3, "total_env_steps": 8000, "eval_every_steps": 8000}
    train(arguments(run_dir, one_step_task, **changes, eval_episodes=50))
    first, *_, last = records(run_dir)
    assert first["eval/random_success_rate"] < 0.4
    assert last["eval/success_rate"] > 0.9
