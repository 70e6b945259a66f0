"""--start-actions: episodes begin where a file of actions, or a trace, leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanrl_style import a2c_streaming, evaluate
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.games import starts
from gbxcule_puffer.games.starts import played_start
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
from gbxcule_puffer.tasks.start import play_to_start
from tests.support.envs import STAGE
from tests.support.training_runs import read

ACTIONS = json.loads(STAGE.read_text())["start_actions"]
SMOKE = ["--rom=homeward", "--symbols=homeward", "--task=roms/homeward/errand.py:Errand", "--smoke", "--device=cpu"]


def same(one: Snapshot, other: Snapshot) -> bool:
    return bool((one.hashes() == other.hashes()).all())


def test_a_training_begins_behind_the_actions(tmp_path: Path) -> None:
    """At the state that `puffer goal make` has there; a resumed run and an evaluation find it in the run's folder."""
    (tmp_path / "actions.txt").write_text(" ".join(ACTIONS))
    run = tmp_path / "run"
    assert a2c_streaming.main([*SMOKE, "--start-actions", str(tmp_path / "actions.txt"), f"--run-dir={run}"]) == 0
    made = Snapshot.from_file(run / "start/start.state")
    recipe = Snapshot.from_file(GoalRecipe.load(STAGE).make(tmp_path / "stage").start_state)
    assert made.fields() == recipe.fields() and np.array_equal(made.memory, recipe.memory)
    args = read(run / "checkpoint.pt")["args"]
    assert args["start_state"] == "start/start.state" and args["start_actions"] is None
    (tmp_path / "actions.txt").unlink()
    assert a2c_streaming.main([f"--resume={run}", "--total-env-steps=1024"]) == 0
    assert evaluate.main([str(run), "--episodes=1", "--num-envs=1", "--policy=sampled"]) == 0


def test_a_start_is_played_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept beside the compiled kernels, for these actions in this schedule."""
    actions, cartridge = tmp_path / "actions.txt", load_cartridge("homeward")
    schedules = Schedule(24, 8), Schedule(24, 12)
    actions.write_text("NOOP:3 START")
    monkeypatch.setattr(starts, "KEPT", str(tmp_path))  # no other test's
    first, other = (played_start(cartridge, "strict", actions, schedule) for schedule in schedules)
    assert first != other and same(Snapshot.from_file(first), play_to_start("homeward", actions, schedule=schedules[0]))
    monkeypatch.delattr(starts, "play_to_start")
    assert played_start(cartridge, "strict", actions, schedules[0]) == first
    actions.write_text("NOOP:4 START")
    with pytest.raises(NameError):
        played_start(cartridge, "strict", actions, schedules[0])
    first.unlink()
    other.unlink()


@pytest.mark.parametrize("real_time", [False, True])
def test_a_trace_is_played_as_it_was_recorded(real_time: bool, tmp_path: Path) -> None:
    session = PlaySession("homeward", tmp_path)
    if real_time:
        session.set_real_time(True)
        for frame in range(80):
            session.frame(["START"] if frame < 8 else [])
    else:
        for name in ("START", "NOOP", "NOOP"):
            session.press(name)
    session.save_trace()
    (trace,) = tmp_path.glob("*.json")
    assert same(play_to_start("homeward", trace, schedule=Schedule(12, 4)), session.emulator.save(0))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--start-actions nowhere", "actions nowhere: cannot be read"),
        ("--start-actions actions.txt --stage roms/homeward/stage1.json", "--start-actions and --stage exclude"),
        ("--start-actions actions.txt --start-state nowhere", "nowhere: cannot be read"),
        ("--start-actions wrong.txt", "action 0 is 'JUMP', which is not a button"),
        ("--start-actions trace.json", "does not end at the picture it was recorded with"),
        ("--start-actions other.json", "was recorded with rom_sha256"),
    ],
)
def test_what_cannot_be_played_is_one_line(
    words: str, told: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "actions.txt").write_text("START NOOP")
    (tmp_path / "wrong.txt").write_text("JUMP")
    session = PlaySession("homeward", tmp_path)
    session.press("NOOP")
    session.save_trace()
    (trace,) = tmp_path.glob("*.json")
    content = json.loads(trace.read_text())
    trace.write_text(json.dumps(content | {"end_picture": "0" * 64}))
    trace.rename("trace.json")
    (tmp_path / "other.json").write_text(json.dumps(content | {"rom_sha256": "0" * 64}))
    assert a2c_streaming.main([*SMOKE, "--run-dir=run", *words.split()]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1 and not (tmp_path / "run").exists()
