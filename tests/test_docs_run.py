"""The documentation's code runs, ends, and prints what the pages show."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.emulator import Emulator
from tests.support.pages import (
    PAGES,
    ROOT,
    blocks,
    commands,
    is_output,
    output_of,
    output_of_python,
    sessions,
    write_files,
)

README = ROOT / "README.md"
RUNNING = [page for page in PAGES if page != README and any(block.runs for block in blocks(page))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the repository's root, so that what a page writes is gone afterwards: its ROMs and
    scripts, a ROM of one's own, and what a person has played to HOMEWARD's first goal."""
    for name in ("roms", "cleanrl_style"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "roms/homeward.gb", tmp_path / "my_game.gb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play_first_stage(folder: Path) -> None:
    """The files of `puffer play roms/homeward.gb --out play`: the keys that docs/goals.md says."""
    stage = json.loads((folder / "roms/homeward/stage1.json").read_text())
    session = PlaySession("roms/homeward.gb", "play")
    for name in stage["start_actions"]:
        session.press(name)
    session.mark()
    for name in stage["solve_actions"]:
        session.press(name)
    session.save_trace()


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_blocks_run(page: Path, folder: Path) -> None:
    """The blocks of a page in order, in one process; what they print is what the page shows."""
    if page.name == "goals.md":
        play_first_stage(folder)
    write_files(page, folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in blocks(page):
        if block.language == "text" and block.follows_code and printed is not None:
            assert is_output(block.text, printed), f"{block}: Python printed\n{printed}"
        printed = None
        if not block.runs:
            continue
        if block.language == "python":
            printed = output_of_python(block, namespace)
        elif block.language == "sh":
            for command in commands(block.text):
                output_of(command)
        elif block.language == "console":
            for command, expected in sessions(block.text):
                found = output_of(command)
                assert is_output(expected, found), f"{block}: {' '.join(command)} printed\n{found}"


def test_readme_runs_and_ends(folder: Path) -> None:
    """The README's Python as one script, as a reader would run it: it ends, and leaves no process behind."""
    script = "\n".join(block.text for block in blocks(README) if block.language == "python")
    (folder / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "script.py"], env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    try:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    finally:
        left = [pid for pid in psutil.pids() if session_of(pid) == process.pid]
        for pid in left:
            psutil.Process(pid).kill()
    assert left == []


def session_of(pid: int) -> int:
    """The session of a process; 0 where it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def test_emulator_page_is_complete() -> None:
    """docs/emulator.md has every argument, method and attribute of the class."""
    page = (ROOT / "docs/emulator.md").read_text()
    names = {*inspect.signature(Emulator).parameters, *(name for name in dir(Emulator) if not name.startswith("_"))}
    names |= {name for name in vars(Emulator("roms/homeward.gb")) if not name.startswith("_")}
    assert {name for name in names if f"`{name}`" not in page and f"`{name}(" not in page} == set()
