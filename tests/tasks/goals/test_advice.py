"""Advice on goals that cannot be learned: when it is given, by `puffer goal calibrate` and by the trainers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from cleanrl_style import a2c_streaming
from gbxcule_puffer import cli, toy
from gbxcule_puffer.tasks.goals.advice import HARDLY_APART, hardly_apart, met_by_chance, never_near
from gbxcule_puffer.tasks.goals.calibrate import Calibration, Samples
from gbxcule_puffer.tasks.goals.template import META_FILE
from gbxcule_puffer.trainers import advice
from tests.support.envs import make_test_task
from tests.support.training_runs import toy_run


def test_advice_is_given_only_where_it_is_due() -> None:
    assert hardly_apart(0.4) is None and met_by_chance(0.2) is None
    assert "village: start and goal are hardly apart (distance 0.0123)" in str(hardly_apart(0.0123, "village"))
    assert "random play reaches the goal in 80% of its episodes" in str(met_by_chance(0.8))
    of_a_task = str(met_by_chance(0.8, is_picture=False))
    assert "random play succeeds in 80% of its episodes" in of_a_task and "--k-consecutive" not in of_a_task
    assert "in 1,000,000 steps; the nearest tenth of the Game Boys was 0.250 away" in never_near(10**6, 0.25)
    dead_end = never_near(10**6, 0.009)
    assert "was 0.009 away from its picture: another position looks nearly like it" in dead_end
    assert "another position" not in never_near(10**6, HARDLY_APART)
    assert "nearest" not in never_near(10**6, None), "a Task has no distances"


def test_episodes_that_chance_ends_are_counted_once_each() -> None:
    """Three envs, two episodes: one stays below tau for two steps, one never, one twice in the second episode."""
    first = np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.5], [0.5, 0.5, 0.5], [0.5, 0.0, 0.5]])
    second = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    samples = Samples([first, second], [first > 1, second > 1])
    assert Calibration(samples, samples, samples, tau=0.1, k_consecutive=2).by_chance() == 2 / 6


def test_calibrate_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Path(make_test_task(tmp_path).kwargs["start_state"]).parent
    command = ["goal", "calibrate", str(task), "--steps", "64", "--num-envs", "8"]
    assert cli.main(command) == 0
    assert capsys.readouterr().err == ""
    path = task / "goal" / META_FILE
    meta = json.loads(path.read_text())
    meta["calibration"]["start_distance"] = 0.02
    path.write_text(json.dumps(meta))
    assert cli.main(command) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: goal: start and goal are hardly apart (distance 0.0200)")
    shutil.rmtree(task)


@pytest.mark.parametrize("walls", [True, False])
def test_a_run_in_which_nobody_comes_near_says_so_once(
    walls: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "PATIENCE", 256)
    if walls:
        monkeypatch.setattr(toy, "MOVES", {})
    assert a2c_streaming.main(toy_run(tmp_path / "run", total_env_steps=1024)) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "no episode came near" in line]
    assert len(lines) == walls
    if walls:
        assert lines[0].startswith("warning: no episode came near the goal in 256 steps; the nearest tenth")


def test_a_run_that_random_play_solves_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert a2c_streaming.main(toy_run(tmp_path / "run", max_steps=200)) == 0
    assert "warning: random play reaches the goal in" in capsys.readouterr().err
