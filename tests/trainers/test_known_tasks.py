"""A run's Task, found again by its folder: only code that was run from here before, and is as it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cleanrl_style import a2c_streaming, evaluate
from gbxcule_puffer import cli
from gbxcule_puffer.apps.watch.watch import Player
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.trainers import known_tasks
from gbxcule_puffer.trainers.known_tasks import recall, remember
from tests.support.envs import STAGE

ROM = str(STAGE.parent.parent / "homeward.gb")
MINE = """
from gbxcule_puffer.tasks.task import Task


class Mine(Task):
    def step(self, ram, picture, info):
        return 1 * ram[0xC0A1]
"""


@pytest.fixture(autouse=True)
def own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes of this test alone, beside those of the machine."""
    monkeypatch.setattr(known_tasks, "notes", lambda: tmp_path / "notes")
    return tmp_path / "notes"


def train(folder: Path, task: str = "mine.py:Mine") -> int:
    words = ["--smoke", "--device=cpu", "--num-envs=4", f"--rom={ROM}", f"--task={task}", f"--run-dir={folder / 'run'}"]
    return a2c_streaming.main(words)


def commands(folder: Path) -> dict[str, Callable[[], int]]:
    """All commands that open a run, without its --task."""
    run = str(folder / "run")
    film = ["record", ROM, "--policy", run, "--out", str(folder / "a.gif"), "--steps", "2"]
    return {
        "eval": lambda: evaluate.main([run, "--episodes=2", "--num-envs=2", "--policy=sampled"]),
        "record": lambda: cli.main(film),
        "resume": lambda: a2c_streaming.main([f"--resume={run}", "--total-env-steps=1024"]),
    }


def test_a_run_knows_its_task_in_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from another folder than the one that the Task's file was named from."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    assert train(tmp_path) == 0
    assert json.loads((tmp_path / "run/manifest.json").read_text())["task_code"]["file"] == str(tmp_path / "mine.py")
    monkeypatch.chdir("/")
    assert [command() for command in commands(tmp_path).values()] == [0, 0, 0]
    player = Player(tmp_path / "run", 2, "cpu", 1, False)
    assert player.env.observations.shape[0] == 2
    (tmp_path / "run/checkpoint.pt").unlink()
    for older in (tmp_path / "run").glob("*.pt"):
        older.unlink()
    (tmp_path / "run/run.lock").unlink(missing_ok=True)
    assert a2c_streaming.main([f"--resume={tmp_path / 'run'}"]) == 0, "its manifest knows it, too"


def test_what_has_changed_is_gone_or_was_never_run_is_one_line(
    tmp_path: Path, own_notes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = tmp_path / "mine.py"
    task.write_text(MINE)
    assert train(tmp_path) == 0

    def refused(fault: str) -> None:
        for name, command in commands(tmp_path).items():
            capsys.readouterr()
            assert command() == 2, name
            message = capsys.readouterr().err
            assert fault in message and "--task" in message, name
            assert message.count("\n") == 1, name

    task.write_text(MINE + "# another\n")
    refused(f"{task} has changed since: give it with --task to run it as it is now")
    task.unlink()
    refused(f"{task} is gone: give it with --task, wherever it is now")
    task.write_text(MINE)
    for note in own_notes.iterdir():
        note.unlink()
    refused("which is code that was not run from here before: give it with --task to run it")
    assert evaluate.main([str(tmp_path / "run"), "--task=mine.py:Mine", "--episodes=1", "--num-envs=1"]) == 0
    assert commands(tmp_path)["eval"]() == 0, "now it was"


def test_a_stranger_s_run_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither code that lies beside it, nor another Task than the note is of, nor a known file at another place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    assert train(tmp_path) == 0
    touched = tmp_path / "touched"
    (tmp_path / "evil.py").write_text(f"open({str(touched)!r}, 'w')\n{MINE}")
    (tmp_path / "copy.py").write_text(MINE)
    path = tmp_path / "run/checkpoint.pt"
    saved = torch.load(path, weights_only=True)
    note = saved["task_code"]
    evil = {"task": "evil.py:Mine", "file": str(tmp_path / "evil.py"), "sha256": note["sha256"]}
    for task, forged in [
        ("evil.py:Mine", note),
        ("evil.py:Mine", evil),
        ("evil.py:Mine", note | {"task": "evil.py:Mine"}),
        ("mine.py:Mine", note | {"file": str(tmp_path / "copy.py")}),
        ("mine.py:Mine", note | {"more": "x"}),
        ("mine.py:Mine", {"task": "mine.py:Mine", "file": 1, "sha256": 2}),
        ("mine.py:Mine", None),
    ]:
        saved["args"]["task"], saved["task_code"] = task, forged
        torch.save(saved, path)
        for name, command in commands(tmp_path).items():
            assert command() == 2, name
            assert "not run from here before" in capsys.readouterr().err
    assert not touched.exists()


def test_a_task_of_a_package_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared with what would be imported, before anything is."""
    package = tmp_path / "games/redtasks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "flags.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path / "games"))
    __import__("redtasks.flags")
    note = remember("redtasks.flags:Mine")
    assert note["file"] == str(package / "flags.py")
    for name in [name for name in sys.modules if name.startswith("redtasks")]:
        monkeypatch.delitem(sys.modules, name)
    assert recall("redtasks.flags:Mine", note, Path("run")) == "redtasks.flags:Mine"
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.startswith(str(tmp_path))])
    assert recall("redtasks.flags:Mine", note, Path("run")) == "redtasks.flags:Mine", "its folder is looked in"
    other = tmp_path / "other/redtasks"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit")
    (other / "flags.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    with pytest.raises(StateError, match=r"but redtasks.flags is now .*other"):
        recall("redtasks.flags:Mine", note, Path("run"))


def test_without_a_place_for_notes_a_training_goes_on(
    own_notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a cache on a read-only disk: then --task has to be given again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    own_notes.write_text("a file, where the folder of notes would be")
    assert train(tmp_path) == 0
    capsys.readouterr()
    assert commands(tmp_path)["eval"]() == 2
    assert "not run from here before" in capsys.readouterr().err
