"""Public test ROMs for the Game Boy Color, beside PyBoy, where a folder has them; what finds their verdicts, always.

GBXCULE_TEST_ROMS names the folder; public_roms.py says how it looks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.conformance.public_roms import SUITES, is_same_picture, roms, run, verdict

VARIABLE = "GBXCULE_TEST_ROMS"
EVERY = {"gambatte": 100, "blargg": 8, "mooneye-test-suite": 8, "same-suite": 8, "age-test-roms": 5}  # n: each n-th ROM


def chosen() -> list[tuple[str, Path]]:
    """Suite and path of the ROMs that this test runs; `python -m tests.conformance.public_roms` runs all."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return []
    return [(suite, path) for suite in SUITES for path in [*roms(Path(folder) / suite)][:: EVERY.get(suite, 1)]]


@pytest.mark.skipif(not chosen(), reason=f"no public test ROMs: name their folder in {VARIABLE}")
@pytest.mark.parametrize(("suite", "path"), chosen(), ids=lambda value: value if isinstance(value, str) else value.stem)
def test_public_roms_run_as_on_pyboy(suite: str, path: Path) -> None:
    """Equal in all that is compared, and the same verdict."""
    _, frames_per_step, steps = SUITES[suite]
    result = run(path, frames_per_step, steps)
    assert not result.difference, "\n".join(result.difference)
    assert result.ours == result.pyboy


def values_of(registers: tuple[int, ...] = (0,) * 6, tiles: bytes = b"") -> dict[str, Any]:
    vram = np.zeros(0x2000, np.uint8)
    vram[0x1800 : 0x1800 + len(tiles)] = list(tiles)
    return {**dict(zip("bcdehl", registers, strict=True)), "VRAM": vram}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("mooneye", values_of((3, 5, 8, 13, 21, 34)), "pass"),
        ("mooneye", values_of((0x42,) * 6), "fail"),
        ("mooneye", values_of((3, 5, 8, 13, 21, 35)), "none"),
        ("blargg", values_of(tiles=b"01-x  Passed"), "pass"),
        ("blargg", values_of(tiles=b"01-x  Failed #2"), "fail"),
        ("irq_dmg08_cgb04c_outE2", values_of(tiles=bytes([14, 2])), "pass"),
        ("irq_dmg08_out1_cgb04c_out3", values_of(tiles=bytes([1])), "fail"),
        ("irq_ds_out0", values_of(), "pass"),
    ],
)
def test_verdicts(name: str, values: dict[str, Any], expected: str, tmp_path: Path) -> None:
    colors = np.zeros((144, 160), np.uint16)
    assert verdict(tmp_path / f"{name}.gbc", values, colors) == expected
    colors[:, 1:] = 31 << 5
    assert verdict(tmp_path / f"{name}.gbc", values, colors) == expected


def test_a_green_screen_is_a_pass(tmp_path: Path) -> None:
    assert verdict(tmp_path / "magen.gbc", values_of(), np.full((144, 160), 31 << 5, np.uint16)) == "pass"


def test_verdicts_by_picture(tmp_path: Path) -> None:
    """Whatever RGB a suite makes of the colours; a picture for a DMG, or for a ROM with a longer name, is not meant."""
    colors = np.random.default_rng(0).integers(0, 4, (144, 160)).astype(np.uint16)
    palette = np.array([[0, 0, 0], [9, 99, 3], [1, 2, 3], [255, 255, 255]], np.uint8)
    Image.fromarray(palette[colors]).save(tmp_path / "a-cgbBCE.png")
    Image.fromarray(palette[3 - colors * 0]).save(tmp_path / "a-dmgC.png")
    Image.fromarray(palette[3 - colors * 0]).save(tmp_path / "a2-cgbBCE.png")
    assert verdict(tmp_path / "a.gb", values_of(), colors * 5) == "pass"
    assert verdict(tmp_path / "a2.gb", values_of(), colors) == "fail"
    other = colors.copy()
    other[143, 159] ^= 1
    assert verdict(tmp_path / "a.gb", values_of(), other) == "fail"
    assert not is_same_picture(colors[:100], colors.astype(np.int64))
