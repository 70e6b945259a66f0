"""A step's path, by which twins are found: the same for the same instructions at the same PCs, else another one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from tests.support.roms import tiny_rom

# 0150 and 0158: inc a / jr to it, 16 T-cycles; 0160: five times nop / jr 0150, 32 T-cycles
LOOPS = bytes.fromhex("3C18FD0000000000 3C18FD0000000000 0000000000 18E9")


@pytest.mark.parametrize(
    ("pc", "sp"),
    [(0x158, 0xFFF0), (0x150, 0xFFE0), (0x160, 0xFFF0)],
    ids=["another PC", "another SP", "more instructions"],
)
def test_what_differs_takes_another_path(tmp_path: Path, pc: int, sp: int) -> None:
    emulator = Emulator(tiny_rom(tmp_path / "loops.gb", LOOPS), 3, kernel="datapath")
    for env, (counter, stack) in enumerate([(0x150, 0xFFF0), (0x150, 0xFFF0), (pc, sp)]):
        emulator.set_registers(env, pc=counter, sp=stack)
    emulator.step(torch.zeros(3, dtype=torch.uint8))
    assert emulator._lanes is not None
    first, same, other = emulator._lanes.path.tolist()
    assert first == same != other
