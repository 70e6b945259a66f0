"""benchmarks.emulators: its contenders play the same game."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from benchmarks import emulators
from benchmarks.pages.emulators import table
from benchmarks.workload import find_rom


@pytest.mark.kernel
@pytest.mark.slow
def test_contenders_see_pyboys_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulators, "WARMUP", 140)  # more than an episode has by default
    monkeypatch.setattr(emulators, "SECONDS", 0.02)
    monkeypatch.setattr(emulators, "SIZES", {"gbxcule": (3,)})
    names, core = ["pyboy", "gbxcule"], max(os.sched_getaffinity(0))
    rows = emulators.measure(find_rom("orchard"), names, {"pyboy": sys.executable}, core, turns=2)
    assert [(row["emulator"], row["num_envs"]) for row in rows] == [("pyboy", 1), ("gbxcule", 3)]
    assert all(row["pixels_as_pyboy"] == 1 and row["least"] <= row["frames_per_second"] for row in rows)
    assert table(rows).count("\n") == 3


def test_an_emulator_that_is_absent_is_named() -> None:
    with pytest.raises(SystemExit, match="stable-retro has ended"):
        emulators.Contender(str(shutil.which("false")), "stable-retro", find_rom("homeward"), 1, 0)
