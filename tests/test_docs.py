"""The documentation is right: links lead somewhere, code runs, commands exist, outputs are what is printed."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks import performance, state_table
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.emulator import Emulator
from tests.support.pages import (
    ROOT,
    Block,
    blocks,
    check_arguments,
    commands,
    is_output,
    output_of,
    output_of_python,
    sessions,
    unknown_imports,
)

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("roms/*.md")])
README = ROOT / "README.md"
RUNNING = [page for page in PAGES if page != README and any(block.runs for block in blocks(page))]


def of_language(*languages: str) -> list[Block]:
    """The blocks of all pages in some languages."""
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_blocks_run(page: Path, folder: Path) -> None:
    """The blocks of a page in order, in one process; what they print is what the page shows."""
    if page.name == "goals.md":
        play_first_stage(folder)
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


@pytest.mark.parametrize("block", of_language("python"), ids=str)
def test_python_imports_what_is_there(block: Block) -> None:
    """Also of blocks that do not run here."""
    assert unknown_imports(block.text) == []


@pytest.mark.parametrize("block", of_language("sh", "console"), ids=str)
def test_commands_and_flags_exist(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command is parsed by the program itself."""
    script = commands(block.text) if block.language == "sh" else [command for command, _ in sessions(block.text)]
    assert script
    for command in script:
        try:
            check_arguments(command)
        except SystemExit as end:  # with code 0 after --help
            assert not end.code, f"{' '.join(command)}: {capsys.readouterr().err}"


def test_emulator_page_is_complete() -> None:
    """docs/emulator.md has every argument, method and attribute of the class."""
    page = (ROOT / "docs/emulator.md").read_text()
    names = {*inspect.signature(Emulator).parameters, *(name for name in dir(Emulator) if not name.startswith("_"))}
    names |= {name for name in vars(Emulator("roms/homeward.gb")) if not name.startswith("_")}
    assert {name for name in names if f"`{name}`" not in page and f"`{name}(" not in page} == set()


def test_state_page_is_generated() -> None:
    """docs/state.md is what `python -m benchmarks.state_table` writes."""
    assert (ROOT / "docs/state.md").read_text() == state_table.page()


def test_figures_are_those_of_the_records() -> None:
    """README.md and docs/performance.md are what `python -m benchmarks.performance` writes."""
    records = performance.load_records()
    assert performance.README.read_text() == performance.readme(records)
    assert performance.PAGE.read_text() == performance.page(records)


def test_files_named_are_there() -> None:
    """A file of code that a page names in backticks is there, by the end of its path."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {"/" + "/".join(Path(file).parts[i:]) for file in files for i in range(len(Path(file).parts))}
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            names = re.findall(r"`([\w./*]+\.(?:py|md|asm|sh|inc))`", page.read_text())
            assert [name for name in names if "*" not in name and f"/{name}" not in known] == [], page.name


@pytest.mark.parametrize("block", of_language("json"), ids=str)
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


def test_a_wrong_page_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The checks above can fail."""
    for text in ("```bash\nls\n```\n", "text\n\n    indented\n"):
        (tmp_path / "page.md").write_text(text)
        with pytest.raises(AssertionError):
            blocks(tmp_path / "page.md")
    with pytest.raises(AssertionError):
        commands("rm -r runs")
    for command in ("puffer bench --fast", "puffer fly", "python cleanrl_style/ppo_lite.py --learning-speed 1"):
        with pytest.raises(SystemExit):
            check_arguments(command.split())
    with pytest.raises(AssertionError):
        check_arguments(["make", "coffee"])
    with pytest.raises((AssertionError, KeyError)):
        check_arguments(["puffer", "train", "gbxcule", "--train.speed", "1"])
    assert unknown_imports("from baselines.pyboy_machine import Nothing") == ["baselines.pyboy_machine.Nothing"]
    assert not is_output("tau 0.05", "tau 0.06\n") and is_output("a ... c", "a b c\n")
