"""Our own files are found from any folder, by name and as the pages write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleanrl_style import a2c_streaming
from gbxcule_puffer import cli
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.layout import ROMS, find_own, find_rom


def test_our_files_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_rom("homeward") == find_rom("roms/homeward.gb") == str(ROMS / "homeward.gb")
    assert find_rom("micro/alu_loop") == str(ROMS / "micro/alu_loop.gb")
    assert find_own("homeward", ".sym") == find_own("roms/homeward.sym") == str(ROMS / "homeward.sym")
    assert find_own("roms/homeward/stages.json") == str(ROMS / "homeward/stages.json")
    for other in ("homeward.gb", "roms/../setup.py", "setup.py", "roms", "roms/nowhere.gb", "/roms/homeward.gb", ""):
        assert find_rom(other) == other
    (tmp_path / "homeward").mkdir()
    assert find_rom("homeward") == str(ROMS / "homeward.gb"), "a folder is not a ROM"
    (tmp_path / "roms").mkdir()
    (tmp_path / "roms/homeward.gb").write_text("mine")
    assert find_rom("roms/homeward.gb") == "roms/homeward.gb", "one's own file comes first"


def test_the_pages_examples_run_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for rom, symbols in (("homeward", "homeward"), ("roms/homeward.gb", "roms/homeward.sym")):
        env = GBxCuLEEnv(rom, symbols=symbols, task="roms/homeward/errand.py:Errand")
        env.reset()
        assert env.ram["player_x"].shape == (1,)
        env.close()
    words = "--rom homeward --symbols homeward --task roms/homeward/errand.py:Errand --smoke --device cpu --run-dir run"
    assert a2c_streaming.main(words.split()) == 0
    monkeypatch.chdir("/")
    assert cli.main(["eval", str(tmp_path / "run"), "--episodes", "1", "--num-envs", "1"]) == 0


def test_what_is_here_already_is_not_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROMS.parent)
    assert cli.main(["copy", "homeward"]) == 2
    line = capsys.readouterr().err
    assert "is there already, as this is a clone: use it as it is, from this folder, or give another --out" in line
    assert "`homeward`" in line and line.count("\n") == 1
    assert cli.main(["copy", "homeward", "--out", str(tmp_path / "copy")]) == 0
    monkeypatch.chdir(tmp_path)
    assert cli.main(["copy", "homeward", "--out", "copy"]) == 2
    assert "is there already: give another --out" in capsys.readouterr().err
