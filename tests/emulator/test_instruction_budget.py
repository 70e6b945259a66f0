"""A budget of instructions a step: nothing changes where it is not reached; where it is, the env is locked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from tests.fuzz.generator import header

ROM = Path(__file__).parents[2] / "roms" / "homeward.gb"
FRAME = 70_224 // 4  # instructions of a frame at most
BUDGET = 30_000


def busy_rom() -> bytes:
    """A game that looks at the buttons again and again while A is held, and once a frame otherwise."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytes.fromhex("3E01 E0FF FB  3E10 E000 F000 CB47 28F6 76 18F3")
    rom[0x150 : 0x150 + len(code)] = code
    rom[0x40] = 0xD9
    header(rom, 0x00, 0)
    return bytes(rom)


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
def test_a_busy_env_is_locked_and_the_others_are_as_without_a_budget(kernel: str) -> None:
    plain, bounded = (
        Emulator(busy_rom(), 4, kernel=kernel, instruction_budget=budget, num_threads=1) for budget in (0, BUDGET)
    )
    held = np.array([[0, 0, 0, 0], [0, 0x10, 0, 0], [0, 0x10, 0, 0x10]], np.uint8)
    for row in held:
        for emulator in (plain, bounded):
            emulator.step(torch.from_numpy(row))
    assert bounded.locked.tolist() == [0, 1, 0, 1] and plain.locked.tolist() == [0] * 4
    assert (plain.state_hash() == bounded.state_hash()).tolist() == [True, False, True, False]
    counts = [bounded.registers(env)["instructions"] for env in (1, 3)]
    assert all(BUDGET < count <= BUDGET + FRAME for count in counts), "it ends with the frame"


def test_both_kernels_lock_at_the_same_frame() -> None:
    hashes = []
    for kernel in ("interpreter", "datapath"):
        emulator = Emulator(ROM, 2, kernel=kernel, instruction_budget=9_000, num_threads=1)
        for buttons in (0, 8, 0, 16):
            emulator.step(torch.full((2,), buttons, dtype=torch.uint8))
        hashes.append((emulator.state_hash().tolist(), emulator.locked.tolist()))
    assert hashes[0] == hashes[1] and hashes[0][1] == [1, 1]


def test_an_env_truncates_the_episode() -> None:
    env = GBxCuLEEnv(ROM, 2, instruction_budget=1_000_000)
    env.reset()
    assert not env.step(np.zeros(2, np.int64))[3].any()
    env = GBxCuLEEnv(ROM, 2, instruction_budget=100)
    env.reset()
    assert env.step(np.zeros(2, np.int64))[3].all()


@pytest.mark.parametrize("budget", [-1, 2**31])
def test_no_other_number_is_a_budget(budget: int) -> None:
    with pytest.raises(ConfigError, match="instruction_budget"):
        Emulator(ROM, instruction_budget=budget)
