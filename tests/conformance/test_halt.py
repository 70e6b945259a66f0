"""HALT and code between STAT's interrupts, beside PyBoy: which changes of the LCD end it, with a timer or without, and
what IF says of interrupts that IE keeps from the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.code import Code, Random
from tests.fuzz.generator import header
from tests.fuzz.lockstep import compare
from tests.fuzz.parts import DIV, IE, IF, LCDC, LY, LYC, SCX, STAT, TAC, TMA

MAIN, FRAMES = 0x150, 24
BEGIN = bytes.fromhex(
    "F3 31 FE FF AF E0 40 21 00FE 11 0030 06 A0 1A 22 13 05 20 FA 11 00D0"
)  # OAM from 3000; log at DE
NOTE = bytes.fromhex("12 1C")  # ld [de],a / inc e
HANDLER = bytes.fromhex("F5 F0 0F 12 1C F0 44 12 1C F1 D9")  # logs IF and LY


def begin(code: Code, stat: int, enabled: int) -> None:
    """Which interrupts come, and which of them the CPU gets. Sometimes DIV begins again, at an odd time where HALT has
    ended at one."""
    random = code.random
    code.store(STAT, stat)
    code.store(LYC, random.integer(0, 153))
    code.store(SCX, random.byte())
    if random.chance(0.3):
        code.store(DIV, 0)
    code.store(IF, 0)
    code.store(IE, enabled)
    code.emit(random.choice((0xF3, 0xFB, 0xFB, 0xFB)))  # di, ei


def note(code: Code, *registers: int) -> None:
    """Log some of the registers."""
    for register in registers:
        if code.random.chance(0.3):
            code.emit(0xF0, register)
            code.data += NOTE


def await_timer(code: Code) -> None:
    """The timer ends HALT, 128 to 1,024 T-cycles later, also while modes request interrupts that IE keeps away."""
    random = code.random
    begin(code, random.choice((0x00, 0x00, 0x40, 0x08, 0x28)), random.choice((4, 4, 4, 5)))
    code.store(TMA, random.integer(0xC0, 0xF8))
    code.store(TAC, 5)
    for _ in range(random.integer(4, 16)):
        code.emit(0x76, 0x00)  # halt
        code.nops(3)
        note(code, IF, LY)
    code.store(TAC, 0)


def await_stat(code: Code) -> None:
    """A mode ends HALT, the timer perhaps."""
    random = code.random
    begin(code, random.choice((0x08, 0x08, 0x20, 0x28, 0x48)), random.choice((2, 2, 3, 6)))
    code.store(TAC, random.choice((0, 5)))
    for _ in range(random.integer(1, 6)):
        code.nops(20)
        code.emit(0x76, 0x00)
        note(code, IF, LY, STAT)
    code.store(TAC, 0)


def look_at_if(code: Code) -> None:
    """Without HALT: IF has what IE keeps from the CPU."""
    begin(code, code.random.choice((0x08, 0x20, 0x28)), 1)
    for _ in range(code.random.integer(2, 8)):
        code.nops(80)
        code.emit(0xF0, IF)
        code.data += NOTE
        if code.random.chance(0.3):
            code.store(IF, 0)


def image(seed: int) -> bytes:
    """A game that waits in HALT, changes who may end it, and logs IF, LY and DIV."""
    random = Random(seed)
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, MAIN & 0xFF, MAIN >> 8
    for vector in (0x40, 0x48, 0x50):
        rom[vector : vector + 3] = 0xC3, 0x00, 0x20
    rom[0x2000 : 0x2000 + len(HANDLER)] = HANDLER
    oam = np.array([[random.integer(0, 160), random.integer(0, 170), 0, 0] for _ in range(40)], np.uint8)
    rom[0x3000:0x30A0] = oam.tobytes()
    code = Code(random, MAIN)
    code.data += BEGIN
    code.store(LCDC, random.choice((0x91, 0x93, 0x97, 0x97)))
    loop = code.here
    for _ in range(40):
        random.choice((await_timer, await_timer, await_stat, look_at_if))(code)
    code.emit(0xC3, loop & 0xFF, loop >> 8)
    rom[MAIN : MAIN + len(code.data)] = code.data
    header(rom, 0, 0)
    return bytes(rom)


@pytest.mark.parametrize("seed", [1, 2, 7, 20, 22])
def test_halt_ends_as_in_pyboy(seed: int) -> None:
    result = compare(image(seed), np.zeros((FRAMES, 1), np.uint8), check_every=4)
    assert not result.difference and result.frames == FRAMES
