"""Games that have crashed: `rst 38` at 0038 pushes through all of memory, and is skipped with PyBoy's results."""

from __future__ import annotations

import numpy as np
import pytest

from gbxcule_puffer.emulator import Emulator
from tests.emulator.loops.test_waits import skipped
from tests.fuzz.faults import FAULTS, OF_CRASHES, faulty_step
from tests.fuzz.generator import header
from tests.fuzz.lockstep import compare

# LCD on; STAT: LYC; a timer interrupt every 16 * 200 T-cycles; IE VBlank, STAT, timer; EI. RAM of the cartridge is on.
START = "3E 0A EA 00 00 3E 91 E0 40 3E 40 E0 41 3E 28 E0 45 3E 38 E0 06 3E 05 E0 07 3E 07 E0 FF AF E0 0F FB"
SIZES = {"none": 0x8000, "none with RAM": 0x8000, "MBC1": 0x20_0000, "MBC2": 0x4_0000, "MBC3": 0x4_0000}
SIZES |= {"MBC3 with a clock": 0x4_0000, "MBC5": 0x10_0000}
TYPES = {"none": (0, 0), "none with RAM": (8, 2), "MBC1": (3, 3), "MBC2": (6, 0), "MBC3": (0x13, 3)}
TYPES |= {"MBC3 with a clock": (0x10, 3), "MBC5": (0x1B, 3)}


def crash(name: str, sp: int, handler: int) -> bytes:
    """A ROM of bytes FF. handler: the opcode at the vectors of interrupts."""
    rom = bytearray(b"\xff" * SIZES[name])
    rom[0x100:0x104] = bytes.fromhex("00 C3 50 01")
    header(rom, *TYPES[name])
    code = bytes([0x31, *sp.to_bytes(2, "little")]) + bytes.fromhex(START)
    rom[0x150 : 0x150 + len(code)] = code
    for vector in (0x40, 0x48, 0x50):
        rom[vector] = handler
    if name == "MBC1":  # whose second register may map another bank at 0000
        rom[0x8_0038:0x8_003B] = bytes.fromhex("00 18 FD")
    return bytes(rom)


@pytest.mark.parametrize(
    ("name", "sp", "model"),
    [
        pytest.param(name, sp, model, marks=[pytest.mark.long] * ((sp == 0xFFFE) != (model == "dmg")))
        for name in SIZES
        for sp in (0xFFFE, 0xDFFF)
        for model in ("dmg", "cgb")
    ],
)
def test_a_crash_leaves_what_it_leaves_on_pyboy(name: str, sp: int, model: str) -> None:
    rom = crash(name, sp, 0xD9 if sp == 0xDFFF else 0xFF)
    result = compare(rom, np.zeros((12, 1), np.uint8), 2, 3, model=model)
    assert not result.difference, "\n".join(result.difference)
    leaves_bank = name == "MBC1" and sp == 0xFFFE
    if model == "dmg" and not leaves_bank:
        assert skipped(rom, "interpreter") > 10_000


@pytest.mark.long
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte, the stack, a register of a mapper or the time is wrong."""
    step = faulty_step()
    monkeypatch.setattr(Emulator, "_kernel", lambda emulator: step)
    missed = {env for env, fault in enumerate(FAULTS) if fault in OF_CRASHES}
    for name in SIZES:
        lines = compare(
            crash(name, 0xFFFE, 0xFF), np.zeros((36, len(FAULTS)), np.uint8), with_datapath=False
        ).difference
        missed -= {env for env in missed if any(line.startswith(f"env {env}:") for line in lines)}
    assert not missed, [FAULTS[env] for env in missed]
