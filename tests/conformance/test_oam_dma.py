"""A routine in HRAM that writes to the source of the OAM DMA under way, beside PyBoy: when each byte is copied."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from tests.fuzz.generator import header

OFFSETS = range(-6, 19)  # from the byte that is copied about when the first write comes
ROUTINES, LOG, FRAMES = 0x2000, 0xD000, 12
SIZE = hw.OAM_END - hw.OAM


def word(value: int) -> bytes:
    return value.to_bytes(2, "little")


def routine(kind: str, offset: int) -> bytes:
    """Code at FF80 that starts the transfer from C100 and writes C1 to its source: at C100 + offset first."""
    begin = b"\xe0\x46"  # ldh [DMA],a
    if kind == "ld [imm16],a":  # four bytes are copied meanwhile
        writes = b"".join(b"\xea" + word(0xC110 + offset + 4 * number) for number in range(30))
    elif kind == "ld [hl],imm8":
        writes = bytes.fromhex("36 5A 2C 2C 2C") * 20
    else:
        writes = b"\x22" * 80  # ld [hl+],a
    return begin + writes + bytes.fromhex("3E 28 3D 20 FD C9")  # wait and return


def image(kind: str) -> bytes:
    """A game that tries all offsets with the LCD off, and copies OAM to the log after each."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytearray.fromhex("F3 31 F0 CF AF E0 40")  # di; ld sp; switch the LCD off
    for number, offset in enumerate(OFFSETS):
        source = ROUTINES + 0x80 * number
        body = routine(kind, offset)
        assert len(body) <= 0x7F
        rom[source : source + len(body)] = body
        code += bytes.fromhex("21 00C1 06 A0 7D 22 05 20 FB")  # each byte of the source is its index
        code += b"\x21" + word(source) + bytes.fromhex("11 80FF 06") + bytes([len(body)])
        code += bytes.fromhex("2A 12 13 05 20 FA")
        code += b"\x21" + word(0xC110 + offset) + bytes.fromhex("3E C1 CD 80FF")
        code += bytes.fromhex("21 00FE 11") + word(LOG + SIZE * number) + bytes.fromhex("06 A0 2A 12 13 05 20 FA")
    code += b"\x18\xfe"
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, 0, 0)
    return bytes(rom)


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
@pytest.mark.parametrize("kind", ["ld [imm16],a", "ld [hl],imm8", "ld [hl+],a"])
def test_writes_to_the_source_are_seen_as_in_pyboy(kernel: str, kind: str) -> None:
    rom = image(kind)
    emulator = Emulator(rom, 1, kernel=kernel, frames_per_step=FRAMES, release_after_frames=1)
    machine = PyBoyMachine(rom, FRAMES, 1)
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    machine.step(0)
    expected = np.array(machine.pyboy.memory[LOG : LOG + SIZE * len(OFFSETS)]).reshape(-1, SIZE)
    found = emulator.read_memory(0, LOG, SIZE * len(OFFSETS)).reshape(-1, SIZE)
    np.testing.assert_array_equal(found, expected)
    assert len({bytes(row.astype(np.uint8)) for row in expected}) > len(OFFSETS) // 2
