"""Training on a Task without a goal's picture; code is never taken from a stranger's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import a2c_streaming, evaluate
from gbxcule_puffer import cli
from gbxcule_puffer.apps.plot.plot import read_run
from gbxcule_puffer.apps.watch.watch import Player
from tests.support.envs import STAGE, make_test_task

ROMS = STAGE.parent.parent
ROM, ERRAND = str(ROMS / "homeward.gb"), f"{ROMS / 'homeward/errand.py'}:Errand"
ALONE = ROMS / "micro/alu_loop.gb"  # without symbols beside it
NAMES = f"--symbols={ROMS / 'homeward.sym'}"
SHORT = ["--smoke", "--device=cpu", "--num-envs=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of A2C on the errand from power-on, in run/, and a start beside the bed."""
    out = tmp_path_factory.mktemp("own")
    make_test_task(out / "task")
    words = [f"--rom={ROM}", f"--task={ERRAND}", NAMES, f"--run-dir={out / 'run'}", *SHORT]
    assert a2c_streaming.main(words) == 0
    return out


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_task_needs_no_goal(folder: Path) -> None:
    found = {name for record in records(folder / "run") for name in record}
    assert {"env/task/flags", "env/task/cells", "eval/return"} <= found
    assert not (folder / "run/stage").exists()


def test_statistics_are_shown_everywhere_and_no_success_where_there_is_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "from gbxcule_puffer.tasks.task import StepResult, Task\nclass Column(Task):\n"
    text += "    def step(self, ram, picture, info):\n        x = ram['player_x']\n"
    (tmp_path / "column.py").write_text(f"{text}        return StepResult(x, statistics={{'column': x}})\n")
    run, task = tmp_path / "run", f"--task={tmp_path / 'column.py'}:Column"
    start = f"--start-state={folder / 'task/start.state'}"
    capsys.readouterr()
    assert a2c_streaming.main([f"--rom={ROM}", task, NAMES, start, f"--run-dir={run}", *SHORT]) == 0
    shown = capsys.readouterr()
    lines = {line[:14].strip(): line[15:] for line in shown.out.splitlines()}
    assert all("   column " in lines[name] for name in ("mean return", "greedy", "random policy"))
    assert ", column " in shown.err and "success" not in shown.out + shown.err
    found = {name for record in records(run) for name in record}
    names = {f"eval/{kind}task/column" for kind in ("", "greedy_", "random_")}
    assert {"env/task/column", *names} <= found
    assert not {name for name in found if "success" in name or "done_rate" in name}
    assert not list((run / "media").glob("failure*")) and list((run / "media").glob("episode*"))
    assert set(read_run(run).curves) >= {"env/task/column", "charts/episodic_return"}
    assert cli.main(["plot", str(run)]) == 0
    capsys.readouterr()
    assert evaluate.main([str(run), "--episodes=2", "--num-envs=2", f"--trajectory={tmp_path / 'one.json'}"]) == 0
    shown = capsys.readouterr()
    assert "task/column " in shown.out and "success" not in shown.out and "the goal" not in shown.out
    player = Player(run, 2, "cpu", 1, False)
    while not player.episodes:
        player.step()
    status = player.status()
    assert status["env/task/column"] >= 0 and "charts/success_rate" not in status
    film = ["record", ROM, "--policy", str(run), "--out", str(tmp_path / "a.gif"), "--steps", "2"]
    assert cli.main(film) == 0
    assert "solved" not in capsys.readouterr().out


def test_a_saved_task_is_not_imported(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\n")
    saved = torch.load(folder / "run/checkpoint.pt", weights_only=True)
    saved["args"]["task"] = "evil.py:Evil"
    torch.save(saved, tmp_path / "checkpoint.pt")
    assert evaluate.main([str(tmp_path / "checkpoint.pt")]) == 2
    assert a2c_streaming.main([f"--resume={tmp_path / 'checkpoint.pt'}"]) == 2
    assert "evil.py" in capsys.readouterr().err
    assert not (tmp_path / "touched").exists()


def test_a_task_that_fails_in_its_first_step_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it was mended, the same command was refused: the folder held a run, of no step."""
    run = tmp_path / "run"

    def train(name: str, result: str) -> int:
        """A training of a Task in a file of its own, since a process loads a file once."""
        text = (
            "from gbxcule_puffer.tasks.task import Task\nclass Mine(Task):\n    def step(self, ram, picture, info):\n"
        )
        (tmp_path / f"{name}.py").write_text(f"{text}        return {result}\n")
        task = f"--task={tmp_path / name}.py:Mine"
        return a2c_streaming.main([f"--rom={ROM}", task, NAMES, *SHORT, f"--run-dir={run}"])

    assert train("mistyped", "ram['quest_flag']") == 2
    assert "did you mean quest_flags" in capsys.readouterr().err
    assert not run.exists()
    assert train("unknown", "undefined") == 2
    message = capsys.readouterr().err
    assert "task Mine: " in message and "unknown.py, line 4, in step: NameError: name 'undefined'" in message
    assert message.count("\n") == 1
    assert not run.exists()
    assert train("mended", "ram['quest_flags']") == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([f"--rom={ROM}"], "--rom needs --goal-dir, --stages, --task or --game"),
        ([f"--rom={ROM}", "--task=nothing:Here"], "there is no module 'nothing'"),
        ([f"--rom={ALONE}", f"--task={ERRAND}"], "task Errand: symbol 'quest_flags' needs a symbol file"),
        ([f"--rom={ROM}", f"--task={ERRAND}", "--symbols=no.sym"], "symbols no.sym: cannot be read"),
    ],
)
def test_what_is_refused(words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert a2c_streaming.main([*words, *SHORT, f"--run-dir={tmp_path / 'run'}"]) == 2
    message = capsys.readouterr().err
    assert told in message
    assert message.count("\n") == 1
    assert not (tmp_path / "run").exists()
