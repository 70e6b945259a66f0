"""Programs whose stack lies among the registers: the pushes of a dispatch switch the LCD, and start and stop much else.

Each handler sets SP anew and starts the program over. What matters is the batch that such a push falls into, so the
code around it writes registers that end a batch and such as do not, by the instruction after EI, too.
"""

from __future__ import annotations

from tests.fuzz.code import Code, Random
from tests.fuzz.parts import BGP, DIV, DMA, IE, IF, LCDC, LYC, P1, SCX, SCY, STAT, TAC, TIMA, TMA, WX

STACKS = (0xFF41, 0xFF42, 0xFF41, 0xFF42, 0xFF43, 0xFF46, 0xFF06, 0xFF08, 0xFF10, 0xFF47, 0xFF48, 0x0000, 0xDFF0)
LCDC_VALUES = (0x91, 0x11, 0x81, 0x01, 0xE3, 0x63)
VECTORS = (0x40, 0x48, 0x50, 0x58, 0x60)
MAIN, HANDLERS, SEA = 0x0150, 0x1000, 0x2800
SEA_OPCODES = (0x00, 0x00, 0x00, 0x00, 0x04, 0x0C, 0x7E, 0x1A)  # NOP, INC, LD A,[HL], LD A,[DE]
PUSHED = (0x2811, 0x2923, 0x2A31, 0x2C39, 0x313B, 0x3391)  # PCs whose bytes are telling ones in LCDC and STAT


def io_stack_program(random: Random, banks: int) -> bytes:
    """An image with such a program."""
    rom = bytearray(banks * 0x4000)
    rom[0x100:0x104] = bytes((0x00, 0xC3, MAIN & 0xFF, MAIN >> 8))
    stack = random.choice(STACKS)
    for number, vector in enumerate(VECTORS):
        handler = Code(random, HANDLERS + 0x400 * number)
        rom[vector : vector + 3] = bytes((0xC3, handler.start & 0xFF, handler.start >> 8))
        _steps(handler, random.integer(1, 7), with_ei=random.chance(0.2))
        handler.word(0x31, 0xDFF0)
        handler.word(0xC3, MAIN)
        _put(rom, handler)
    main = Code(random, MAIN)
    main.word(0x31, stack)
    main.store(IE, random.choice((0x1F, 0x0F, 3, 2, 1, 7)))
    _steps(main, random.integer(0, 5), with_ei=False)
    main.word(0x31, stack)
    if random.chance(0.5):
        main.store(IF, random.integer(0, 31))
    _enable(main)
    _steps(main, random.integer(0, 9), with_ei=True)
    main.word(0xC3, random.choice(PUSHED) if random.chance(0.5) else random.integer(SEA, 0x3EFF))
    _put(rom, main)
    rom[SEA:0x3FF0] = bytes(random.choice(SEA_OPCODES) for _ in range(SEA, 0x3FF0))
    rom[0x3FF0:0x3FF7] = bytes((0x76, 0, 0, 0, 0xC3, MAIN & 0xFF, MAIN >> 8))  # HALT, and anew
    return bytes(rom)


def _put(rom: bytearray, code: Code) -> None:
    rom[code.start : code.here] = code.data


def _enable(code: Code) -> None:
    """EI, and what its delay covers."""
    choices = ((), (0xE0, LCDC), (0xE0, STAT), (0xE0, LYC), (0xF0, STAT), (0x76,), (0x00, 0x00, 0x00))
    code.emit(0xFB, *code.random.choice(choices))


def _steps(code: Code, count: int, with_ei: bool) -> None:
    """Writes, reads and waits."""
    random = code.random
    for _ in range(count):
        kind = random.integer(0, 12)
        if kind <= 1:
            code.store(LCDC, random.choice(LCDC_VALUES))
        elif kind == 2:
            code.store(STAT, random.byte() & 0x78)
        elif kind == 3:
            code.store(random.choice((SCY, SCX, BGP, WX, P1, 0x12, 0x26, LYC)), random.byte())
        elif kind == 4:
            code.emit(0x3E, random.byte(), 0xEA, 0x00, 0x20)  # ld [$2000],a: a ROM bank
        elif kind == 5:
            code.emit(0xF0, random.choice((LCDC, STAT, 0x44, SCY, DIV)))
        elif kind == 6:
            code.emit(0x21, random.byte() & 0x7F, random.choice((0x80, 0x98, 0xFE)), random.choice((0x7E, 0x70)))
        elif kind == 7:
            code.store(TAC, random.choice((4, 5, 6, 7, 0)))
        elif kind == 8:
            code.store(random.choice((TIMA, TMA, DIV, IF)), random.byte())
        elif kind == 9 and with_ei:
            _enable(code)
        elif kind == 10:
            code.delay(random.choice((4, 16, 128)))
        elif kind == 11 and random.chance(0.3):
            code.store(DMA, 0xC1)
        elif kind == 12:
            code.emit(0xF5, 0xF1)  # push af, pop af
        code.nops(random.choice((0, 1, 2, 5, 10, 20)))
