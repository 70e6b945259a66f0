"""Lanes of one warp do not change each other: the data path's loop with four of them, beside each one alone."""

import faulthandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.kernel.warp_of_threads import WarpOfThreads
from benchmarks.workload import ROOT, find_rom, random_buttons, seed_of
from gbxcule_puffer.emulator import Emulator
from tests.fuzz.generator import make_rom

LANES = 3
HANGS_AFTER_SECONDS = 300  # what takes 10
SHORT: dict[str, Any] = {"frames_per_step": 8, "release_after_frames": 4}
MICRO = [ROOT / f"roms/micro/{name}.gb" for name in ("joy_diverge_persist", "mbc5_banks", "midframe")]


def assert_lanes_are_independent(
    rom: Path | bytes, steps: int, *, lanes: int = LANES, warmup: int = 0, seed: int = 5, **options: Any
) -> None:
    warp, alone = WarpOfThreads(rom, lanes, **options), Emulator(rom, lanes, num_threads=1, **options)
    rows = torch.from_numpy(random_buttons(seed, warmup + steps, lanes))
    for row in rows[:warmup]:
        alone.step(row)
    warp.load(alone.save())
    for row in rows[warmup:]:
        warp.step(row)
        alone.step(row)
        np.testing.assert_array_equal(warp.state_hash(), alone.state_hash())


@pytest.mark.parametrize(
    "rom",
    [pytest.param(rom, id=rom.stem, marks=[pytest.mark.long] * (rom.stem == "midframe")) for rom in MICRO],
)
def test_micro_roms(rom: Path) -> None:
    assert_lanes_are_independent(rom, 1, **SHORT)


def test_homeward() -> None:
    assert_lanes_are_independent(ROOT / "roms/homeward.gb", 8)


def test_lanes_that_end_a_step_while_others_sleep() -> None:
    """A pass without an end, in which all lanes sleep, would end the process."""
    rom = ROOT / "roms/homeward.gb"
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    assert_lanes_are_independent(rom, 2, lanes=12, warmup=60, seed=seed_of("homeward"))
    faulthandler.cancel_dump_traceback_later()


def test_a_game(shared: Path) -> None:
    del shared  # skips where there is none
    assert_lanes_are_independent(find_rom("libbet"), 4, **SHORT)


@pytest.mark.long
def test_a_random_rom() -> None:
    assert_lanes_are_independent(make_rom(0).data, 1, **SHORT)
