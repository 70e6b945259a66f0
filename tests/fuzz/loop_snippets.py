"""Snippets about loops that are skipped: all of them, between any two addresses, with counters of all sizes, and
interrupts in the middle."""

from __future__ import annotations

from gbxcule_puffer.emulator.loops.codes import counted_loops
from tests.fuzz.code import Code
from tests.fuzz.parts import DIV, DMA, IE, IF, LCDC, LY, P1, STAT, TAC, TIMA, TMA, VALUES, address, log

DEC = (0x05, 0x0D, 0x15, 0x1D, 0x25, 0x2D, 0x3D)  # b c d e h l a
PLACES = (0xC000, 0xC0F8, 0xCFF0, 0xD100, 0xDE00, 0x8000, 0x8FF0, 0x9800, 0x0150, 0x4000, 0x7F80, 0xA000, 0xFE00)
COUNTS = (0x0001, 0x0100, 0x0101, 0x0140, 0x0203, 0x1020)


def counted_loop(code: Code) -> None:
    """A loop that copies, fills, adds or multiplies, and all registers after it."""
    random = code.random
    loop = random.choice(counted_loops())
    first = random.choice((*PLACES, address(random)))
    code.word(0x21, first)  # hl
    code.word(0x11, random.choice((*PLACES, address(random), (first + random.integer(-9, 9)) & 0xFFFF)))  # de
    code.word(0x01, random.choice((*COUNTS, random.integer(0, 0x1FFF))))  # bc
    if random.chance(0.6):
        code.emit(0x3E, random.byte())
    if random.chance(0.4):
        code.emit(random.choice((0x37, 0xB7, 0x97)))  # flags
    if random.chance(0.1):
        code.data += random.choice(counted_loops()).code[:-2]  # bytes of another, which is no loop
    code.data += loop.code
    keep(code)


def delay(code: Code) -> None:
    """A loop that counts down, and may push and pop; what it left below the stack."""
    random = code.random
    if random.chance(0.5):
        code.emit(0xF3)
        code.word(0x31, random.choice((0xDFF0, 0xFFFE, 0xFF98, 0xFF90, 0xC010, 0xC008, 0xE000, 0xFE80, 0xA010, 0x9010)))
    code.word(0x01, random.choice((*COUNTS, random.integer(0, 0xFFFF))))
    counter = random.choice(DEC)
    body = Code(random, 0)
    for _ in range(random.integer(0, 3)):
        pair = random.integer(0, 2) << 4
        popped = pair if random.chance(0.9) else random.integer(0, 3) << 4
        nops = (0x00,) * random.integer(1, 5)
        body.emit(*random.choice((nops, (0x18, 0x00), (0xC5 | pair, 0xC1 | popped), (0xC5 | pair, 0xC1 | popped))))
    body.emit(counter, 0x20, -len(body.data) - 3)
    code.data += body.data
    keep(code)
    code.word(0x31, random.choice((0xDFF0, 0xDFF0, 0xFFFE)))


def nested_delay(code: Code) -> None:
    """A delay of B to L in a loop that counts a pair, which may be the same, or is done otherwise."""
    random = code.random
    counter = random.integer(0, 5)
    pair = random.choice([pair for pair in range(3) if pair != counter // 2 or random.chance(0.05)])
    code.word(0x01 | pair << 4, random.choice((0x0001, 0x0002, 0x0005, 0x0020, 0x0101, random.integer(1, 0x60))))
    fillers = ((), (0x00,), (0x18, 0x00), (0xC5, 0xC1))
    load = (0x06 | counter << 3, random.choice((0x01, 0x02, 0x33, 0xFF, 0x00, random.byte())))
    delay = (*random.choice(fillers[:3]), DEC[counter])
    inner = (*delay, 0x20, -len(delay) - 2)
    half = random.integer(0, 1)
    count = (0x0B | pair << 4, 0x78 + 2 * pair + half, 0xB0 + 2 * pair + random.choice((1 - half, 1 - half, half)))
    filler = random.choice(fillers if random.chance(0.2) else fillers[:3])
    if random.chance(0.5):  # counted behind the delay
        body = (*load, *inner, *filler, *count)
        code.emit(*body, 0x20, -len(body) - 2)
    else:  # before it, as GBDK's
        body = (*load, *inner, *filler)
        begin = (*count, 0x28, len(body) + 2)
        code.emit(*begin, *body, 0x18, -len(begin) - len(body) - 2)
    keep(code)


def vram_copy(code: Code) -> None:
    """GBDK's loops: a poll of STAT before each access to VRAM, perhaps with interrupts, during an OAM DMA or late."""
    random = code.random
    if random.chance(0.9):
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)
    if random.chance(0.3):
        interrupts(code)
    code.word(0x21, random.choice((0xC000, 0x8000, 0x9000, 0x0150, address(random))))  # hl
    code.word(0x11, random.choice((0x8000, 0x8FF0, 0x9800, 0x9BF0, 0xC300)))  # de
    if random.chance(0.2):
        code.emit(0x3E, random.choice((0x80, 0x9F, 0xC0)), 0xE0, DMA)
    code.emit(0x06, random.integer(1, 60))
    access = random.choice(
        ((0x2A, 0x12, 0x13), (0x1A, 0x22, 0x13), (0x12, 0x1C), (0x7E, 0x13), (0x34, 0x2C), (0x1A, 0x77))
    )
    late = (0x00,) * random.choice((0, 0, 1, 3, 12, 30))
    body = (0xF0, STAT, 0xE6, 0x02, 0x20, 0xFA, *late, *access, 0x05)
    code.emit(*body, 0x20, -len(body) - 2)
    keep(code)


def long_poll(code: Code) -> None:
    """A loop that waits for the LCD, a button or VBlank, and whose rounds do more, mostly what changes nothing."""
    random = code.random
    if random.chance(0.4):
        interrupts(code)
    code.store(LCDC, random.choice((0x91, 0x91, 0x93, 0xE3)))
    register = random.choice((LY, LY, STAT, P1, P1, DIV, TIMA, IF, 0xA0))
    code.word(0x21, 0xFF00 | register)  # hl
    code.word(0x11, random.choice((0xC300, 0xC300, 0x8000, 0x9800, 0xFE00, 0xA000)))  # de
    body = Code(random, 0)
    for _ in range(random.integer(0, 6)):
        body.emit(*_part_of_poll(code))
    load = (0x7E,) if register == LY and random.chance(0.7) else (0xF0, LY)  # ld a,[hl] or ldh a,[LY]
    exits = {  # what ends the round, and the jump back
        (*load, 0xFE, random.integer(0, 153), 0x20): 5,
        (*load, 0xE6, random.choice((0x07, 0x10, 0x40)), 0x28): 2,
        (0xF0, STAT, 0xE6, random.choice((1, 2, 3)), random.choice((0x20, 0x28))): 2,
        (0x3E, random.choice((0x10, 0x20)), 0xE0, P1, 0xF0, P1, 0x2F, 0xE6, 0x0F, 0x28): 4,
        (0xF0, IF, 0xE6, 0x01, 0x28): 1,
        (0x1A, 0x3C, 0x12, 0xE6, 0x1F, 0x20): 0.3,  # of the byte at DE: ld a,[de]; inc a; ld [de],a; and 1F
    }
    body.emit(*random.weighted(exits))
    body.emit(-len(body.data) - 1)
    code.data += body.data
    keep(code)


def _part_of_poll(code: Code) -> tuple[int, ...]:
    """Instructions of a round: reads, writes of what is there already; seldom something that changes."""
    random = code.random
    register = random.choice((LY, STAT, P1, P1, 0x42, DIV, IF, 0xA0))
    row = random.choice((0x10, 0x20, 0x30))
    quiet = ((0xF0, register), (0xBE,), (0xCB, 0x46), (0xE5, 0xE1), (0xF5, 0xF1), (0x00,), (0x1A, 0x12), (0x7E,),
             (0x3E, row, 0xE0, P1), (0x3E, 0x55, 0xEA, 0x80, 0xC3), (0xFA, 0x80, 0xC3, 0xEA, 0x81, 0xC3),
             (0xE0, 0xA1), (0x79, 0xA7), (0x18, 0x00), (0x0E, row, 0x79, 0xE0, P1))  # fmt: skip
    loud = ((0x0C,), (0x34,), (0x13,), (0x27,), (0xF3,), (0xE0, 0x42), (0x3E, 0x91, 0xE0, LCDC), (0x7B, 0x12, 0x1C))
    return random.choice(quiet if random.chance(0.9) else loud)


def keep(code: Code) -> None:
    """HL, DE, BC and AF go below the stack, and some of them to the log."""
    code.emit(0xE5, 0xD5, 0xC5, 0xF5)
    log(code)
    code.emit(0xF1, 0xC1, 0xD1, 0xE1)
    log(code)


def interrupts(code: Code) -> None:
    """Interrupts often enough to fall into a loop."""
    random = code.random
    code.store(TMA, random.choice((0x00, 0xC0, 0xF0, 0xFC)))
    code.store(TAC, random.choice((5, 5, 6, 7, 0)))
    code.store(TIMA, random.byte())
    code.store(STAT, random.choice(VALUES[STAT]))
    code.store(IE, random.choice((0x00, 0x01, 0x04, 0x05, 0x07)))
    code.store(LCDC, random.choice((0x91, 0x91, 0x91, 0x11, 0xE3)))
    code.emit(random.choice((0xFB, 0xFB, 0xF3)))
