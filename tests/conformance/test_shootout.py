"""benchmarks.shootout on a folder with one ROM of ours in the name of a listed test."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import shootout

HOMEWARD = Path(__file__).parents[2] / "roms" / "homeward.gb"
RECORD = HOMEWARD.parents[1] / "benchmarks" / "results" / "cpu" / "shootout.json"
NAME = "acid/dmg-acid2.gb"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose only ROM is ours."""
    rom = tmp_path / "testroms" / NAME
    rom.parent.mkdir(parents=True)
    rom.write_bytes(HOMEWARD.read_bytes())
    return tmp_path


def shown(folder: Path, after: float) -> Image.Image:
    """The picture of the ROM `after` some seconds."""
    flags = shootout.Flags(folder=str(folder))
    test = shootout.Test(NAME, "DMG", after - shootout.LATER)
    *_, last = shootout.pictures(flags, HOMEWARD.read_bytes(), test)
    return last


def test_the_list() -> None:
    tests = shootout.listed()
    assert len({test.name for test in tests}) == len(tests) == 264
    assert Counter(test.model for test in tests) == {"DMG": 167, "CGB": 94, "SGB": 3}
    assert sum(test.pictures != [] for test in tests) == 258
    assert next(test.rom for test in tests if test.name == "acid/which.gb (DMG)") == "acid/which.gb"


@pytest.mark.kernel
def test_a_picture_decides(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pass at the first picture that is like the reference, within 50 levels of grey; the JSON has the Shootout's
    keys."""
    reference = np.asarray(shown(folder, 0.5)).copy()
    out, record = folder / "out.json", folder / "record.json"
    for shift, result in ((40, "PASS"), (60, "FAIL")):
        darker = np.maximum(reference.astype(int) - shift, 0).astype(np.uint8)
        Image.fromarray(darker).save(folder / "testroms" / "acid" / "dmg-acid2.png")
        assert shootout.main([str(folder), "--out", str(out), "--record", str(record)]) == 0
        found = json.loads(out.read_text())
        assert set(found) == {"emulator", "date", "tests"} and list(found["tests"]) == [NAME]
        entry = found["tests"][NAME]
        assert set(entry) == {"result", "startuptime", "runtime", "screenshot"} and entry["result"] == result
        assert entry["runtime"] <= 0.5 if result == "PASS" else entry["runtime"] == 7.5
        assert json.loads(record.read_text())["gbxcule-puffer"][result] == [NAME]
    assert capsys.readouterr().out == "gbxcule-puffer: 1 of 1 pass\ngbxcule-puffer: 0 of 1 pass\n"


def test_the_record_has_pyboy_s_verdicts() -> None:
    """On each test, muted and with sound; and all tests of sound pass on hardware."""
    record = json.loads(RECORD.read_text())
    for how in ("", ", sound"):
        assert record[f"gbxcule-puffer{how}"]["PASS"] == record[f"PyBoy{how}"]["PASS"]
    failing = record["gbxcule-puffer, hardware, sound"]["FAIL"]
    assert len(failing) == 43 and not [name for name in failing if "_sound/" in name or "/apu/" in name]


def test_a_folder_without_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shootout.main([str(tmp_path)]) == 2
    assert "has no ROM of a test: give a clone of github.com/gbdev/GBEmulatorShootout" in capsys.readouterr().err
