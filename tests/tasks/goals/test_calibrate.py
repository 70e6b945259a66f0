"""`puffer goal calibrate`: thresholds from samples, labels by picture and by RAM, the PNG, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbxcule_puffer import cli
from gbxcule_puffer.apps.goal import command
from gbxcule_puffer.errors import ConfigError, GoalError
from gbxcule_puffer.tasks.goals.calibrate import Samples, best_tau, calibrate
from gbxcule_puffer.tasks.goals.template import META_FILE, GoalTemplate
from gbxcule_puffer.tasks.ram.condition import parse_condition
from tests.support.envs import STAGE, make_test_task

AT_THE_DOOR = ("C0A0==1", "C0A1==10", "C0A2==10")  # docs/homeward.md: the village, in front of the own door


@pytest.fixture
def task(tmp_path: Path, made: Path) -> Path:
    """A stage's folder of the test's own."""
    return Path(shutil.copytree(made, made.with_name(f"{tmp_path.name}_stage")))  # its path to the ROM is relative


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_test_task(tmp_path_factory.mktemp("stage")).kwargs["start_state"]).parent


def test_tau_lies_in_the_gap_before_the_first_false_step() -> None:
    assert best_tau(np.array([0.0, 0.02]), np.array([0.1, 0.5])) == pytest.approx(0.06)
    assert best_tau(np.array([0.0, 0.3]), np.array([0.1, 0.5])) == pytest.approx(0.05), "rather late than false"


def test_tau_without_a_gap_has_the_least_errors() -> None:
    here, elsewhere = np.array([0.1] * 90 + [0.3] * 10), np.array([0.05] * 5 + [0.4] * 95)
    tau = best_tau(here, elsewhere)
    errors = [(here >= t).mean() + (elsewhere < t).mean() for t in np.linspace(0, 0.5, 501)]
    assert (here >= tau).mean() + (elsewhere < tau).mean() == pytest.approx(min(errors))
    assert 0.3 < tau < 0.4


def test_runs_are_counted_env_by_env() -> None:
    near = np.array([[0, 1], [0, 0], [1, 0], [0, 0], [0, 0]])  # 0 is below tau
    here = np.zeros((5, 2), bool)
    here[4, 1] = True
    samples = Samples([near * 0.5], [here])
    assert samples.longest_false_run(0.1) == 3
    assert samples.false_goals(0.1, 2) == 3
    assert samples.false_goals(0.1, 3) == 1
    at_goal, elsewhere = samples.split()
    assert at_goal.tolist() == [0]
    assert len(elsewhere) == 9


def test_the_truth_in_ram_tells_a_turn_from_a_step_aside(task: Path) -> None:
    """Who turns in front of the door is still there: with RAM as the judge tau lies above that, else below."""
    strict = calibrate(task, steps=1500, num_envs=16)
    truth = [parse_condition(text, "test") for text in AT_THE_DOOR]
    judged = calibrate(task, steps=1500, num_envs=16, truth=truth)
    assert judged.tau > 4 * strict.tau
    for result in (strict, judged):
        rates = result.rates(result.tau, result.k_consecutive)
        assert rates["false_positive"] == rates["false_goals"] == 0
        # By RAM the traveller is outside while the picture still fades in: those steps are missed.
        assert rates["false_negative"] < 0.2 if result is judged else rates["false_negative"] == 0
        assert 1500 <= rates["random_steps"] < 1600
    turned = np.concatenate(
        [distances[at] for distances, at in zip(judged.near.distances, judged.near.at_goal, strict=True)]
    )
    assert (turned > 0).any(), "turns were among the samples"
    wide = judged.rates(0.5, 1)
    assert wide["false_positive"] == 1
    assert wide["false_goals"] > 0


def test_the_same_seed_gives_the_same_samples(task: Path) -> None:
    first, again, other = (calibrate(task, steps=200, num_envs=8, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(np.stack(first.random.distances), np.stack(again.random.distances))
    assert (np.stack(first.random.distances) != np.stack(other.random.distances)).any()


def test_the_command_writes_a_picture_and_the_goal(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = GoalTemplate.load(task / "goal").meta
    command = ["goal", "calibrate", str(task), "--steps", "500", "--num-envs", "8", "--truth", AT_THE_DOOR[0]]
    assert cli.main(command) == 0
    assert GoalTemplate.load(task / "goal").meta == before, "without --apply the goal stays as it is"
    out = capsys.readouterr().out
    named = ["player_map==1" if word == AT_THE_DOOR[0] else word for word in command]
    assert cli.main([*named, "--symbols", str(STAGE.parent.parent / "homeward.sym")]) == 0
    assert capsys.readouterr().out == out
    with Image.open(task / "calibration.png") as picture:
        assert picture.width > 500
        colours = picture.convert("RGB").getcolors(1 << 24)
    assert colours is not None
    assert len(colours) > 20, "something is drawn"
    assert f"now       tau {before['tau']:.5f}, k_consecutive {before['k_consecutive']}" in out
    assert cli.main([*command, "--apply", "--out", str(task / "other.png")]) == 0
    after = GoalTemplate.load(task / "goal").meta
    assert after["calibration"]["measured"]["random_steps"] >= 500
    assert f"proposed  tau {after['tau']:.5f}, k_consecutive {after['k_consecutive']}" in capsys.readouterr().out
    assert (task / "other.png").is_file()


def test_a_long_measurement_says_how_far_it_is(
    task: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "TELL_SECONDS", 0)
    assert cli.main(["goal", "calibrate", str(task), "--steps", "40", "--num-envs", "8"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "random steps" in line]
    assert lines == [f"{done} of 40 random steps" for done in (8, 16, 24, 32, 40)]


def test_what_is_refused(task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(*flags: str) -> str:
        assert cli.main(["goal", "calibrate", str(task), *flags]) == 2
        (text,) = capsys.readouterr().err.splitlines()
        return text

    assert "steps 0 must be at least 1" in line("--steps", "0")
    assert "--seed 99999999999999999999 must be from -4,611" in line("--seed", "99999999999999999999")
    assert "--truth: 'C0A0==A7' is not a condition: give one such as C0A3==15 or C0A3&04!=0, the value decimal" in line(
        "--truth", "C0A0==A7"
    )
    rom = bytearray((STAGE.parent.parent / "homeward.gb").read_bytes())
    rom[0x7FFF] ^= 1
    (tmp_path / "other.gb").write_bytes(rom)
    assert "give --rom" in line("--rom", str(tmp_path / "other.gb"))
    assert "other.gb has an unknown format: name it .png" in line("--out", str(tmp_path / "other.gb"))
    assert (tmp_path / "other.gb").read_bytes() == rom
    meta = json.loads((task / "goal" / META_FILE).read_text())
    (task / "goal" / META_FILE).write_text(json.dumps({**meta, "rom_file": "../nowhere/game.gb"}))
    assert "nowhere/game.gb is not there: give --rom" in line()
    assert calibrate(task, rom="homeward", steps=16, num_envs=2).tau > 0, "one of our own by its name"
    (task / "goal" / META_FILE).write_text(json.dumps({**meta, "solve_actions": []}))
    assert "does not say how it is reached, as one made of a PNG: make it with --actions or --play" in line()
    assert cli.main(["goal", "show", str(task / "goal")]) == 2
    assert "is the goal alone: give the folder" in capsys.readouterr().err
    with pytest.raises(GoalError, match=f"has no goal_template.npy: give {task / 'goal'}$"):
        GoalTemplate.load(task)
    (task / "start.state").unlink()
    assert "no start.state" in line()
    with pytest.raises(GoalError, match="has no goal_template"):
        calibrate(tmp_path)
    with pytest.raises(ConfigError, match="num_envs 0"):
        calibrate(task, num_envs=0)
