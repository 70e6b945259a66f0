"""Snippets about the CPU: arithmetic, addressing, interrupts, stacks and code at odd addresses."""

from __future__ import annotations

from tests.fuzz.code import Code, Random
from tests.fuzz.parts import (
    DIV,
    DMA,
    HL_OPCODES,
    IE,
    IF,
    LCDC,
    LOG,
    LYC,
    REGISTERS,
    SB,
    SC,
    STAT,
    TAC,
    VALUES,
    address,
    instructions,
    log,
)


def alu(code: Code) -> None:
    """Arithmetic, and what came out."""
    for _ in range(code.random.integer(2, 10)):
        code.data += instructions(code.random, code.random.integer(1, 4))
        log(code)


def flags(code: Code) -> None:
    """One instruction with any AF before it, and the flags after it."""
    random = code.random
    for _ in range(random.integer(2, 8)):
        code.word(0x01, random.byte() << 8 | random.byte())
        code.emit(0xC5, 0xF1)
        if random.chance(0.6):
            code.emit(random.choice((0x07, 0x0F, 0x17, 0x1F, 0x27, 0x27, 0x2F, 0x37, 0x3F)))
        else:
            code.data += instructions(random, 1)
        code.emit(0xF5, 0xD1, 0x7B)
        code.word(0xEA, LOG + random.byte())


def memory(code: Code) -> None:
    """Every way to address memory, anywhere."""
    random = code.random
    for _ in range(random.integer(1, 8)):
        where = address(random)
        way = random.integer(0, 11)
        if way == 0:
            code.word(random.choice((0x01, 0x11)), where)
            code.emit(random.choice((0x02, 0x0A, 0x12, 0x1A, 0x12, 0x1A)))
        elif way <= 4:
            code.word(0x21, where)
            code.emit(*(random.choice(HL_OPCODES) for _ in range(random.integer(1, 4))))
        elif way == 5:
            code.word(0x21, where)
            code.emit(0x36, random.byte())
        elif way == 6:
            code.word(0x21, where)
            code.emit(0xCB, random.byte() & 0xF8 | 6)
        elif way == 7:
            code.word(random.choice((0xEA, 0xFA)), where)
        elif way == 8:
            code.word(0x08, where)
        elif way == 9:
            code.emit(random.choice((0xE0, 0xF0)), random.weighted(REGISTERS))
        elif way == 10:
            code.word(0x11, where)
            code.nops(3)
            code.emit(0x1A, 0x12)
        else:
            code.emit(0x0E, random.weighted(REGISTERS), random.choice((0xE2, 0xF2)))
        if random.chance(0.5):
            log(code)


def interrupt_switches(code: Code) -> None:
    """EI, DI, HALT in all orders, next to register writes."""
    random = code.random
    if random.chance(0.7):  # something that wakes a HALT
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)
        code.store(TAC, random.choice((5, 6, 7)))
    code.store(IE, random.choice((0x01, 0x03, 0x05, 0x07, 0x1F, 0x04, 0x05, 0x01)))
    for _ in range(random.integer(1, 5)):
        parts: tuple[tuple[int, ...], ...] = (
            (0xFB, 0x76), (0xFB,), (0xF3,), (0xFB, 0xF3), (0x76,), (0xFB, 0xFB), (0xF3, 0x76), (0xFB, 0x76, 0x76),
            (0xFB, 0x00, 0x76), (0xFB, 0x3E, 0xFF, 0xE0, IF), (0x3E, random.byte(), 0xFB, 0xE0, IF),
            (0x3E, random.choice(VALUES[STAT]), 0xFB, 0xE0, STAT), (0x3E, random.choice(VALUES[LYC]), 0xFB, 0xE0, LYC),
            (0x3E, 0x80 | random.byte(), 0xFB, 0xE0, LCDC), (0xFB, 0x10, 0x00), (0x3E, random.byte(), 0xFB, 0xE0, IE),
            (0x3E, random.choice(VALUES[TAC]), 0xFB, 0xE0, TAC), (0x3E, 0x81, 0xFB, 0xE0, SC, 0xF0, SB, 0xF0, IF),
            (0xFB, 0xC7), (0xFB, 0xF0, IF), (0xFB, 0xE0, DIV), (0x3E, random.byte(), 0xFB, 0xE0, DMA),
            (0x00,) * random.integer(1, 9),
        )  # fmt: skip
        code.emit(*random.choice(parts))
    if random.chance(0.3):
        code.emit(0xF3)


def odd_stack(code: Code) -> None:
    """Pushes, calls and interrupts with SP somewhere else, put right afterwards."""
    random = code.random
    where = (
        address(random)
        if random.chance(0.6)
        else random.choice((0xFF10, 0xFF48, 0xFF46, 0x0000, 0x0001, 0x2100, 0xFF08))
    )
    code.emit(0xF3)
    code.word(0x31, where)
    way = random.integer(0, 4)
    if way == 0:
        code.emit(random.choice((0xC5, 0xD5, 0xE5, 0xF5)), random.choice((0xC1, 0xD1, 0xE1, 0xF1)))
    elif way == 1:
        code.store(IE, random.choice(VALUES[IE]))
        code.store(IF, random.choice((1, 2, 4, 8, 16, 31)))
        code.emit(0xFB, 0x00, 0x00, 0xF3)
    elif way == 2:
        code.emit(0xC7)  # comes back only if the return address could be stored
    elif way == 3:
        code.emit(0xE8, random.byte(), 0xF8, random.byte(), 0xC1, 0xD1)
    else:
        code.emit(random.choice((0xC1, 0xD1, 0xE1, 0xF1)), random.choice((0xC5, 0xD5, 0xE5, 0xF5)))
        code.emit(0x33, random.choice((0xC1, 0xD1, 0xE1, 0xF1)), 0x3B)
    code.word(0x31, 0xDFF0)
    if random.chance(0.5):
        code.emit(0xFB)


def moved_code(code: Code) -> None:
    """Instructions copied to RAM of any kind and run there."""
    random = code.random
    body = random.choice((instructions, _memory_bytes))(random, random.integer(2, 8)) + b"\xc9"
    address = random.choice(
        (0x8000, 0x9000, 0x9C10, 0xA010, 0xC200, 0xD800, 0xE300, 0xFE00, 0xFE20, 0xFEA0, 0xFF90, 0xFFC0)
    )
    off = address < 0xA000 and random.chance(0.6)
    if off:
        code.store(LCDC, 0x11)
    source = code.here + 17
    code.word(0x21, source)
    code.word(0x11, address)
    code.emit(0x06, len(body), 0x2A, 0x12, 0x13, 0x05, 0x20, 0xFA)
    code.emit(0x18, len(body) + 1, 0x00)
    code.data += body
    code.emit(0x00)
    if off:
        code.store(LCDC, 0x91)
        code.nops(4)
        code.delay(30)
    code.word(0xCD, address)


def _memory_bytes(random: Random, count: int) -> bytes:
    """Loads and stores with 16-bit addresses, which look ahead where code is not in ROM."""
    part = Code(random, 0)
    for _ in range(count):
        kind = random.integer(0, 4)
        where = random.choice((0xFF44, 0xFF41, 0xFF05, 0xFE00, 0x8100, 0x9900, 0xC000, 0xFF45, 0xFF0F, 0xFF43, 0xFF80))
        if kind <= 1:
            part.word(random.choice((0xFA, 0xEA, 0x08)), where)
        elif kind == 2:
            part.emit(0xF0, where & 0xFF)
        elif kind == 3:
            part.word(0x21, where)
            part.emit(0x7E)
        else:
            part.emit(0xCB, random.byte() & 0xF8 | 7)
    return bytes(part.data)


def borders(code: Code) -> None:
    """Code that flows over 4000h or 8000h."""
    random = code.random
    if random.chance(0.5):
        code.word(0xCD, 0x3FF0 + random.integer(0, 15))
    else:
        code.store(LCDC, 0x11)
        for offset in range(random.integer(1, 6)):
            code.emit(0x3E, random.choice((0x00, 0x3C, 0x04, 0xC9)))
            code.word(0xEA, 0x8000 + offset)
        code.emit(0x3E, 0xC9)
        code.word(0xEA, 0x8006)
        if random.chance(0.5):
            code.store(LCDC, 0x91)
        code.word(0xCD, 0x7FF2 + random.integer(0, 13))


def flow(code: Code) -> None:
    """Conditional jumps, calls and returns of subroutines in the switchable bank."""
    random = code.random
    for _ in range(random.integer(1, 6)):
        code.data += instructions(random, 2)
        way = random.integer(0, 4)
        if way == 0:
            code.emit(random.choice((0x18, 0x20, 0x28, 0x30, 0x38)), random.integer(0, 2), 0x00, 0x00)
        elif way == 1:
            code.word(random.choice((0xC4, 0xCC, 0xD4, 0xDC, 0xCD)), 0x4000 + 64 * random.integer(0, 250))
        elif way == 2:
            code.word(random.choice((0xC2, 0xCA, 0xD2, 0xDA)), code.here + 3 + random.integer(0, 2))
            code.emit(0x00, 0x00)
        elif way == 3:
            code.emit(random.choice((0xC7, 0xCF, 0xD7, 0xDF, 0xE7, 0xEF, 0xF7)))
        else:
            code.word(0x21, code.here + 4)
            code.emit(0xE9)
