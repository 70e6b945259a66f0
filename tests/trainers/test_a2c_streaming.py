"""Streaming A2C: losses and rounds by hand, a run's files, exact resumption with its own flags, and learning."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from cleanrl_style import evaluate
from cleanrl_style.a2c_streaming import Agent, Args, main, play_round, sample, td_losses
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks import linear_schedule
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.envs import STAGE
from tests.support.training_runs import merged, records, same_checkpoints, small_run, toy_run, words

ROM = STAGE.parent.parent / json.loads(STAGE.read_text())["rom"]


@pytest.fixture(scope="module")
def one_step_task(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Flags of a task that one right action of eight solves."""
    stage = json.loads(STAGE.read_text())
    folder = tmp_path_factory.mktemp("one_step")
    files = GoalRecipe(ROM, ["RIGHT"], stage["start_actions"], settings=GoalSettings(k_consecutive=1)).make(folder)
    return {"rom": str(ROM), "start_state": str(files.start_state), "goal_dir": str(files.goal_dir)}


def test_losses_by_hand() -> None:
    logits = torch.stack([torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()])
    value, target = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])
    policy, value_loss, entropy = td_losses(logits, value, torch.tensor([0, 1]), target)
    # advantages 2 and -1
    assert policy.item() == pytest.approx(-(2 * -0.693147 + -1 * -0.287682) / 2, abs=1e-5)
    assert value_loss.item() == pytest.approx(0.5 * (4 + 1) / 2)
    assert entropy.item() == pytest.approx((0.693147 + 0.562335) / 2, abs=1e-5)


def test_normalised_advantages_know_no_scale() -> None:
    torch.manual_seed(1)
    logits, value, actions, target = torch.randn(6, 3), torch.randn(6), torch.tensor([0, 1, 2, 0, 1, 2]), torch.randn(6)
    plain = td_losses(logits, value, actions, target, adv_floor=0.01)[0]
    larger = td_losses(logits, value, actions, value + 100 * (target - value) + 7, adv_floor=0.01)[0]
    assert larger.item() == pytest.approx(plain.item(), rel=1e-4)
    advantage = (target - value - (target - value).mean()) / (target - value).std()
    logprobs = logits.log_softmax(1)[torch.arange(6), actions]
    assert plain.item() == pytest.approx(-(advantage * logprobs).mean().item(), rel=1e-4)


def test_advantages_that_are_noise_stay_small() -> None:
    logits, value, actions = torch.zeros(6, 3), torch.zeros(6), torch.tensor([0, 1, 2, 0, 1, 2])
    logits[:, 0] = 1.0
    target = 1e-4 * torch.tensor([3.0, -1.0, -1.0, 2.0, -1.0, -2.0])
    plain = td_losses(logits, value, actions, target)[0]
    floored = td_losses(logits, value, actions, target, adv_floor=0.1)[0]
    assert floored.item() == pytest.approx(10 * plain.item(), rel=1e-3)
    assert abs(floored.item()) < 0.01


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


def test_the_entropy_weight_falls_in_a_straight_line() -> None:
    weights = [linear_schedule(0.05, 0.01, 1000, step) for step in (0, 500, 1000, 5000)]
    assert weights == pytest.approx([0.05, 0.03, 0.01, 0.01])


def test_a_round_is_what_the_textbook_says() -> None:
    """Episodes of 3 steps and rounds of 4: goals, truncations and resets all take part."""
    found = []
    for textbook in (True, False):
        torch.manual_seed(1)
        args, env = Args(env="toy", update_every=4), ToyEnv(32, max_steps=3)
        model = Agent(env.layout, 8)
        env.reset()
        for _ in range(3):
            if not textbook:
                clock = Stopwatch(torch.device("cpu"), False)
                play_round(model, env, td_losses, args, torch.tensor(0.03), torch.zeros(5), clock)
                continue
            total = torch.zeros(())
            for _ in range(4):
                logits, value = model(env.observations.clone())
                actions = sample(logits.detach())
                _, rewards, terminals, _, _ = env.step(actions)
                target = torch.where(terminals, rewards, rewards + 0.99 * model(env.final_observation)[1].detach())
                policy_loss, value_loss, entropy = td_losses(logits, value, actions, target)
                total = total + policy_loss + 0.5 * value_loss - 0.03 * entropy
            (total / 4).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
        assert env.read_infos()["episodes"] > 32, "episodes have ended on the way"
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)
    assert found[0].abs().max() > 0.01


@pytest.mark.kernel
def test_a_run_leaves_its_files(tmp_path: Path, one_step_task: dict[str, str], capsys: pytest.CaptureFixture) -> None:
    run_dir = tmp_path / "a run"
    assert main(small_run(run_dir, **one_step_task)) == 0
    written = {path.name for path in run_dir.iterdir()}
    assert {"metrics.jsonl", "manifest.json", "checkpoint.pt", "checkpoint.1.pt", "media"} < written
    assert {path.suffix for path in (run_dir / "media").iterdir()} == {".png", ".gif"}
    assert any(name.startswith("events.out.tfevents") for name in written)
    assert not any(name.endswith(".part") for name in written)
    last = merged(run_dir)
    tags = (
        "charts/episodic_return charts/episodic_length charts/SPS losses/policy_loss losses/value_loss losses/entropy"
    )
    tags += " env/done_rate env/trunc_rate env/reset_rate env/dist_p10 env/dist_p50 env/dist_p90 env/action_hist/NOOP"
    tags += " time/env time/infer time/learn eval/success_rate eval/return eval/random_success_rate"
    assert set(tags.split()) <= set(last)
    assert all(isinstance(value, int | float) for value in last.values())
    assert {record.get("charts/entropy_coef", 0.02) for record in records(run_dir)} == {0.02}, "no --entropy-end"
    manifest = json.loads((run_dir / "manifest.json").read_text())
    assert manifest["config"]["num_envs"] == 8
    assert torch.__version__.startswith(manifest["versions"]["torch"])  # which may lack +cu132
    state = torch.load(run_dir / "checkpoint.pt", weights_only=True)
    assert state["counters"]["global_step"] == 512
    report = capsys.readouterr().out
    for word in ("success rate", "random policy", str(run_dir / "checkpoint.pt"), f"tensorboard --logdir '{run_dir}'"):
        assert word in report
    trained = (
        r"trained        512 steps in \d+ s \([\d,]+ a second, evaluations [\d.]+% of the time\), all of --total-.+"
    )
    assert re.fullmatch(trained, report.splitlines()[-1])


@pytest.mark.kernel
def test_a_resumed_run_is_the_same_run(tmp_path: Path, one_step_task: dict[str, str]) -> None:
    """--resume alone takes the flags from the run, but for those that it is given."""
    assert main(small_run(tmp_path / "whole", **one_step_task)) == 0
    assert main(small_run(tmp_path / "parts", **one_step_task, total_env_steps=256)) == 0
    assert main(words(f"--resume --run-dir {tmp_path}/parts --total-env-steps 512")) == 0
    same_checkpoints(tmp_path / "whole/checkpoint.pt", tmp_path / "parts/checkpoint.pt")
    ending = "eval/random_success_rate"  # what a run that is through records, also at the end of the first part
    parts = [row for row in records(tmp_path / "parts") if ending not in row or row["global_step"] == 512]
    assert records(tmp_path / "whole") == parts


@pytest.mark.kernel
def test_a_checkpoint_of_other_flags_is_refused(
    tmp_path: Path, one_step_task: dict[str, str], capsys: pytest.CaptureFixture
) -> None:
    run_dir = tmp_path / "run"
    assert main(small_run(run_dir, **one_step_task, total_env_steps=32)) == 0
    capsys.readouterr()
    assert main(["--resume", str(run_dir), "--gamma", "0.5"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--gamma 0.5 is not what the run was started with, 0.99" in line


@pytest.mark.kernel
def test_it_learns(tmp_path: Path, one_step_task: dict[str, str]) -> None:
    """One action of eight is right and an episode has two steps: chance solves under a third."""
    run_dir = tmp_path / "run"
    changes = {"num_envs": 32, "max_steps": 2, "lr": 1e-3, "total_env_steps": 8000, "eval_every_steps": 8000}
    assert main(small_run(run_dir, **one_step_task, **changes, eval_episodes=50, media_every=100_000)) == 0
    assert merged(run_dir)["eval/random_success_rate"] < 0.4
    assert merged(run_dir)["eval/success_rate"] > 0.9


@pytest.mark.kernel
def test_stages_and_incentives_reach_training_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stages = {"stages": str(STAGE.with_name("stages.json")), "curriculum": "progress", "visit_bonus": 0.1}
    changes = {"k_consecutive": None, "max_steps": None, "total_env_steps": 128, "eval_episodes": 2, "eval_envs": 2}
    assert main(small_run(tmp_path / "run", **stages, **changes)) == 0
    last = merged(tmp_path / "run")
    assert last["env/visits/bonus"] > 0
    assert "env/stage/cross_village/weight" in last
    # All stages in one episode: after a few updates it ends at the limit, the sum of the stages' limits.
    flags = [
        "--episodes",
        "2",
        "--num-envs",
        "2",
        "--policy",
        "sampled",
        "--chain",
        "--trajectory",
        str(tmp_path / "out.json"),
    ]
    assert evaluate.main([str(tmp_path / "run/checkpoint.pt"), *flags]) == 0
    assert len(json.loads((tmp_path / "out.json").read_text())["actions"]) == 128 + 192 + 256
    assert "leave_house" not in capsys.readouterr().out
    assert main(toy_run(tmp_path / "toy", visit_bonus=0.1)) == 2
    assert "--visit-bonus is not for --env toy" in capsys.readouterr().err
    assert not (tmp_path / "toy").exists()
