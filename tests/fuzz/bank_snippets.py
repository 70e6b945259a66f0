"""Snippets about cartridges with many banks: any bank at 0000, 4000 and A000, and code and data of each of them.

The banks tell themselves apart: TABLE of those that MBC1 shows at 0000 and DATA of the others hold random bytes, and a
routine at SIGNS logs the number of the bank that it stands in. Code at 4000 looks at what is at 0000, too.
"""

from __future__ import annotations

from gbxcule_puffer.emulator.loops.codes import counted_loops
from gbxcule_puffer.emulator.loops.table import COPY_FROM_DE, COPY_FROM_HL
from tests.fuzz.code import Code, Random
from tests.fuzz.parts import DMA, LOG, log

BANK = 0x4000
TABLE, TABLE_END = 0x3EC0, 0x3F00
SIGNS, SIGN_SIZE, NUM_SIGNS = 0x3F40, 16, 11
DATA, DATA_END = 0x6000, 0x7000  # as seen at 4000
SUBROUTINES = range(0x4200, 0x6000, 64)
READS = (0x2A, 0x3A, 0x7E, 0x46, 0x4E, 0x86, 0x8E, 0x96, 0x9E, 0xA6, 0xAE, 0xB6, 0xBE)  # all by HL
LD_A_HL_INC = 0x2A
COPIES = [loop.code for loop in counted_loops() if loop.kind in (COPY_FROM_HL, COPY_FROM_DE)]
LOW_STEP = 0x10  # banks that can be at 0000 are multiples of it


def sign(rom: bytearray, random: Random) -> None:
    """Give each bank what tells it apart; banks that can be at 0000 get the code of bank 0."""
    looks = [_subroutine(random) for _ in range(48)]
    for bank in range(len(rom) // BANK):
        start = bank * BANK
        if bank % LOW_STEP == 0:
            rom[start : start + 0x3FF0] = rom[:0x3FF0]
            rom[start + TABLE : start + TABLE_END] = random.generator.bytes(TABLE_END - TABLE)
            for address in range(SIGNS, SIGNS + SIGN_SIZE * NUM_SIGNS, SIGN_SIZE):
                routine = bytes((0x3E, bank, 0xEA, LOG & 0xFF, LOG >> 8, 0xC9))  # ld a,bank / ld [LOG],a / ret
                rom[start + address : start + address + len(routine)] = routine
        else:
            rom[start + DATA - BANK : start + DATA_END - BANK] = random.generator.bytes(DATA_END - DATA)
            for address in SUBROUTINES[::2]:
                body = random.choice(looks)
                rom[start + address - BANK : start + address - BANK + len(body)] = body


def _subroutine(random: Random) -> bytes:
    """Up to 62 bytes that look at any bank and return."""
    code = Code(random, SUBROUTINES[0])
    while not code.data or random.chance(0.5):
        part = Code(random, code.here)
        look(part, keeps_stack=True)
        if len(code.data) + len(part.data) > 61:
            break
        code.data += part.data
    code.emit(0xC9)
    return bytes(code.data)


def any_address(random: Random) -> int:
    """Somewhere in what tells banks apart, or at the border of an area."""
    kind = random.integer(0, 9)
    if kind < 5:
        return random.integer(TABLE, TABLE_END - 1)
    if kind < 8:
        return random.integer(DATA, DATA_END - 1)
    return random.choice((0x0000, 0x0150, 0x0FFF, 0x3FFE, 0x3FFF, 0x4000, 0x7FF0, 0xA000, 0xA1FF, 0xBFFF))


def select(code: Code) -> None:
    """Bank registers: those of MBC1, which the other mappers understand in their own way."""
    random = code.random
    for _ in range(random.integer(1, 4)):
        area, value = random.choice(
            (
                (0x0000, 0x0A), (0x2000, random.byte()), (0x2000, random.byte()), (0x3000, random.integer(0, 1)),
                (0x4000, random.integer(0, 3)), (0x4000, random.integer(0, 15)), (0x6000, 1), (0x6000, 1), (0x6000, 0),
            )
        )  # fmt: skip
        code.emit(0x3E, value)
        code.word(0xEA, area + random.choice((0, 0x100, 0xFFF)))


def look(code: Code, keeps_stack: bool = False) -> None:
    """Bytes read in one of many ways."""
    random = code.random
    way = random.integer(1 if keeps_stack else 0, 6)
    if way == 0:  # the stack in ROM: only POPs, and no interrupt
        code.emit(0xF3)
        code.word(0x31, any_address(random))
        code.emit(*(random.choice((0xC1, 0xD1, 0xE1, 0xF1)) for _ in range(random.integer(1, 3))))
        code.word(0x31, 0xDFF0)
        code.emit(0x78)
    elif way == 1:
        code.word(0x21, any_address(random))
        for _ in range(random.integer(1, 6)):
            code.emit(random.choice(READS))
    elif way == 2:
        code.word(0x11, any_address(random))
        code.emit(0x1A)
    elif way == 3:
        code.word(0xFA, any_address(random))
    elif way == 4:
        loop = random.choice(COPIES)
        target = random.choice((0xC000, 0xC0F8, 0xCFF0, 0x8000, 0x9800, 0xA000, 0xD100))
        ends = (any_address(random), target) if loop[0] == LD_A_HL_INC else (target, any_address(random))
        code.word(0x21, ends[0])
        code.word(0x11, ends[1])
        code.word(0x01, random.choice((0x0120, 0x0108, 0x0301, 0x2000)) + random.integer(0, 31))
        code.data += loop
    elif way == 5:
        code.store(DMA, any_address(random) >> 8)
        code.delay(60)
        code.word(0xFA, 0xFE00 + random.integer(0, 0x9F))
    else:
        code.emit(0xE5, 0xC5)
        code.word(0x21, any_address(random))
        code.emit(0xCB, 0x46 + 8 * random.integer(0, 7))  # bit n,[hl]
        code.emit(0xC1, 0xE1)
    log(code)


def call(code: Code) -> None:
    """Code of the bank at 0000, or of the one at 4000."""
    random = code.random
    if random.chance(0.5):
        code.word(0xCD, SIGNS + SIGN_SIZE * random.integer(0, NUM_SIGNS - 1))
    else:
        code.word(0xCD, random.choice(SUBROUTINES))
    log(code)
