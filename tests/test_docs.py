"""The documentation is right: links lead somewhere, commands, flags and names exist, figures are those of the records.

Nothing here runs a Game Boy; tests/test_docs_run.py does."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pages import emulators, performance, scan, state_table, versions
from gbxcule_puffer.apps.sweep.space import space_of
from gbxcule_puffer.apps.train.scripts import FLAGS, flags_module
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.games import load_game
from gbxcule_puffer.layout import trainers
from tests.support.pages import (
    PAGES,
    ROOT,
    Block,
    blocks,
    check_arguments,
    commands,
    is_output,
    sessions,
    unknown_imports,
    write_files,
)

CODE = ("benchmarks", "cleanrl_style", "gbxcule_puffer", "tests")  # folders of the root


MY_GAME = f'''format = "gbxcule-game"
version = 1
name = "my_game"
[rom]
sha256 = "{hashlib.sha256((ROOT / "roms/homeward.gb").read_bytes()).hexdigest()}"
'''


def of_language(*languages: str) -> list[Block]:
    """The blocks of all pages in some languages."""
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


def test_the_first_page_cuts_no_code_off() -> None:
    """On a screen of 1280 pixels the site shows 78 columns of code."""
    lines = [line for block in blocks(ROOT / "README.md") for line in block.text.splitlines()]
    assert lines and [line for line in lines if len(line) > 78] == []


def test_files_that_are_named_are_there() -> None:
    """In pages, docstrings and comments: a path from the root, the package or the emulator."""
    roots = (ROOT, ROOT / "gbxcule_puffer", ROOT / "gbxcule_puffer/emulator")
    folders = {"docs", "roms", *CODE, *(path.name for path in roots[1].iterdir() if path.is_dir())}
    named = re.compile(rf"(?<![\w/.-])(?:{'|'.join(folders)})/[\w/.-]+\.(?:py|md|sh|png|ini)\b")
    code = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ({*PAGES, *code} - {ROOT / "CHANGELOG.md"})  # which names what is no more
        for name in named.findall(path.read_text())
        if not any((root / name).exists() for root in roots)
    }
    assert missing == set()


@pytest.mark.parametrize("block", of_language("python"), ids=str)
def test_python_imports_what_is_there(block: Block) -> None:
    """Also of blocks that do not run here."""
    assert unknown_imports(block.text) == []


def with_start(block: Block) -> Any:
    """A block of a page with a game that plays actions before its flags are known."""
    marks = [pytest.mark.kernel] if block.page.name in ("games.md", "long-games.md", "gateward.md") else []
    return pytest.param(block, marks=marks, id=str(block))


@pytest.mark.parametrize("block", [with_start(block) for block in of_language("sh", "console")])
def test_commands_and_flags_exist(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command is parsed by the program itself, in a folder with the page's files."""
    for name in ("roms", "cleanrl_style", "docs", "benchmarks", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    write_files(block.page, tmp_path)
    if not (own := tmp_path / "my_game").exists():  # as the pages call what `puffer game new my_game.gb` writes
        own.mkdir()
        (own / "game.toml").write_text(MY_GAME)
    for game in tmp_path.glob("*/game.toml"):
        (game.parent / "homeward.gb").symlink_to(ROOT / "roms/homeward.gb")
    monkeypatch.chdir(tmp_path)
    script = commands(block.text) if block.language == "sh" else [command for command, _ in sessions(block.text)]
    assert script
    for command in script:
        for word in command:  # a trainer looks for its ROM before its flags' defaults
            if "/" not in word and word.endswith((".gb", ".gbc")) and not (tmp_path / word).exists():
                (tmp_path / word).symlink_to(ROOT / "roms/homeward.gb")
        try:
            check_arguments(command)
        except SystemExit as end:  # with code 0 after --help
            assert not end.code, f"{' '.join(command)}: {capsys.readouterr().err}"


def test_state_page_is_generated() -> None:
    """docs/state.md is what `python -m benchmarks.pages.state_table` writes."""
    assert (ROOT / "docs/state.md").read_text() == state_table.page()


def test_the_table_of_emulators_is_of_its_record() -> None:
    """docs/lab/emulators.md has what `python -m benchmarks.pages.emulators` writes."""
    text = emulators.PAGE.read_text()
    assert emulators.page(text, json.loads(emulators.RECORD.read_text())) == text


def test_the_table_of_versions_is_of_its_record() -> None:
    """docs/lab/versions.md has what `python -m benchmarks.pages.versions` writes; a failure is explained."""
    runs, text = json.loads(versions.RECORD.read_text()), versions.PAGE.read_text()
    assert versions.page(text, runs) == text
    assert runs and all(run["failed"] == 0 or "note" in run for run in runs)


def test_the_figures_of_scan_are_of_its_record() -> None:
    """docs/scan.md and docs/lab/scan.md have what `python -m benchmarks.pages.scan` writes."""
    for path, text in scan.pages().items():
        assert Path(path).read_text() == text


def test_figures_are_those_of_the_records() -> None:
    """README.md and docs/performance.md are what `python -m benchmarks.pages.performance` writes."""
    records = performance.load_records()
    assert performance.README.read_text() == performance.readme(records)
    assert performance.PAGE.read_text() == performance.page(records)
    assert performance.GAMES.read_text() == performance.games_page()


def test_files_named_are_there() -> None:
    """A file of code that a page names in backticks is there, by the end of its path."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {"/" + "/".join(Path(file).parts[i:]) for file in files for i in range(len(Path(file).parts))}
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            names = re.findall(r"`([\w./*]+\.(?:py|md|asm|sh|inc))`", page.read_text())
            assert [name for name in names if "*" not in name and f"/{name}" not in known] == [], page.name


def test_json_is_json() -> None:
    for block in of_language("json"):
        json.loads(block.text)


@pytest.mark.parametrize("block", of_language("toml"), ids=str)
def test_toml_is_toml_and_a_game_is_one(block: Block, tmp_path: Path) -> None:
    content = tomllib.loads(block.text)
    if block.page.name == "sweep.md":
        (tmp_path / "space.toml").write_text(block.text)
        known = flags_of(getattr(flags_module(trainers()["ppo"]), FLAGS))
        assert len(space_of(known, {"gamma": "0.9,0.99"}, (), f"{tmp_path}/space.toml", ())) == len(content) > 0
        return
    head = 'format = "gbxcule-game"\nversion = 1\nname = "part"\n[rom]\nsha256 = "' + 64 * "0" + '"\n'
    numbers = '[numbers]\nmoney = {address = "C0A0", size = 2}\n'
    (tmp_path / "game.toml").write_text(block.text if "format" in content else f"{head}{numbers}{block.text}")
    (tmp_path / "hard.ips").write_bytes(b"PATCHEOF")
    load_game(tmp_path)


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
    module = "gbxcule_puffer.baselines.pyboy_machine"
    assert unknown_imports(f"from {module} import Nothing") == [f"{module}.Nothing"]
    assert not is_output("tau 0.05", "tau 0.06\n") and is_output("a ... c", "a b c\n")


def test_benchmarks_are_in_their_index() -> None:
    index = (ROOT / "benchmarks/README.md").read_text()
    names = [path.stem for path in (ROOT / "benchmarks").rglob("*.py") if path.stem != "__init__"]
    assert [name for name in names if f"`{name}`" not in index and f"`{name}.py`" not in index] == []
