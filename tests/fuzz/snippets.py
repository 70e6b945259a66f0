"""The grammar: small pieces of machine code, each aimed at something that emulators get wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.code import Code, Random

P1, SB, SC, DIV, TIMA, TMA, TAC, IF = 0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x0F
LCDC, STAT, SCY, SCX, LY, LYC, DMA, BGP, OBP0, OBP1, WY, WX, IE = (*range(0x40, 0x4C), 0xFF)
LOG = 0xD000  # results go to D000-D0FF
ALU_OPCODES = [op for op in range(0x80, 0xC0) if op & 7 != 6] + [
    op for op in range(0x40, 0x80) if op & 7 != 6 and op & 0x38 != 0x30
] + [0x03, 0x04, 0x05, 0x07, 0x09, 0x0B, 0x0C, 0x0D, 0x0F, 0x13, 0x14, 0x15, 0x17, 0x19, 0x1B, 0x1C, 0x1D, 0x1F, 0x23,
     0x24, 0x25, 0x27, 0x29, 0x2B, 0x2C, 0x2D, 0x2F, 0x37, 0x39, 0x3C, 0x3D, 0x3F]  # fmt: skip
ALU_IMMEDIATE = (0x06, 0x0E, 0x16, 0x1E, 0x26, 0x2E, 0x3E, 0xC6, 0xCE, 0xD6, 0xDE, 0xE6, 0xEE, 0xF6, 0xFE, 0xF8)
HL_OPCODES = [0x22, 0x2A, 0x32, 0x34, 0x35, 0x3A, 0x46, 0x4E, 0x56, 0x5E, 0x66, 0x6E, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75,
              0x77, 0x7E, 0x7E, 0x7E, 0x86, 0x8E, 0x96, 0x9E, 0xA6, 0xAE, 0xB6, 0xBE]  # fmt: skip
REGIONS = {
    (0x8000, 0x97FF): 10, (0x9800, 0x9FFF): 8, (0xA000, 0xBFFF): 9, (0xC000, 0xDFFF): 8, (0xE000, 0xFDFF): 3,
    (0xFE00, 0xFE9F): 12, (0xFEA0, 0xFEFF): 2, (0xFF80, 0xFFFE): 3, (0xFF00, 0xFF7F): 4, (0x0000, 0x7FFF): 2,
}  # fmt: skip
EDGES = (0x3FFF, 0x7FFF, 0x8000, 0x9FFF, 0xA000, 0xBFFF, 0xC000, 0xDDFF, 0xDFFF, 0xE000, 0xFDFF, 0xFE00, 0xFE9F, 0xFEA0,
         0xFEFF, 0xFF00, 0xFF7F, 0xFF80, 0xFFFE, 0xFFFF)  # fmt: skip
REGISTERS = {P1: 2, SB: 1, SC: 2, DIV: 3, TIMA: 4, TMA: 3, TAC: 4, IF: 4, LCDC: 4, STAT: 7, SCY: 2, SCX: 4, LY: 4, LYC: 5,
             DMA: 3, BGP: 2, OBP0: 1, OBP1: 1, WY: 3, WX: 3, IE: 3, 0x03: 0.5, 0x26: 0.5, 0x4D: 0.3, 0x50: 0.3}  # fmt: skip
VALUES: dict[int, tuple[int, ...]] = {
    P1: (0x00, 0x10, 0x20, 0x30), SC: (0x80, 0x81, 0x81, 0x01, 0x00), TAC: (0, 4, 5, 5, 5, 6, 7, 1), IF: (0, 0, 1, 2, 4, 31),
    TIMA: (0xFF, 0xFE, 0xFD, 0xF0, 0x00), TMA: (0xFF, 0xFE, 0xF0, 0x00, 0x80),
    LCDC: (0x91, 0x93, 0x97, 0x81, 0xB3, 0xF7, 0xE3, 0x80, 0x92, 0xB2, 0xA0, 0x8B, 0x11),
    STAT: (0x00, 0x00, 0x00, 0x40, 0x40, 0x08, 0x10, 0x20, 0x28, 0x68, 0x78, 0xFF), LYC: (0, 1, 2, 10, 72, 142, 143, 144, 145, 152, 153, 154),
    DMA: (0x00, 0x40, 0x7F, 0x80, 0x98, 0xA0, 0xC0, 0xC1, 0xC1, 0xC1, 0xDF, 0xE1, 0xFE, 0xFF), WY: (0, 0, 1, 40, 100, 143, 144),
    WX: (0, 1, 6, 7, 8, 80, 159, 165, 166, 167, 255), IE: (0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x07, 0x1F, 0xFF, 0x09, 0x11),
    SCX: (0, 1, 3, 4, 5, 7, 8, 255),
}  # fmt: skip


def address(random: Random) -> int:
    """Somewhere in memory, with a liking for edges, OAM and VRAM."""
    if random.chance(0.12):
        return random.choice(EDGES)
    low, high = random.weighted(REGIONS)
    return random.integer(low, high)


def io_pair(random: Random) -> tuple[int, int]:
    """A register and a value for it, mostly a telling one. Switching the LCD off is left to a snippet of its own."""
    register = random.weighted(REGISTERS)
    value = random.byte()
    if register in VALUES and random.chance(0.8):
        value = random.choice(VALUES[register])
    if register == LCDC and random.chance(0.85):
        value |= 0x80
    return register, value


def instructions(random: Random, count: int) -> bytes:
    """Register instructions, CB ones among them, that keep SP."""
    data = bytearray()
    for _ in range(count):
        kind = random.integer(0, 9)
        if kind < 2:
            operation = random.byte()
            data += bytes((0xCB, operation if operation & 7 != 6 else operation | 1))
        elif kind < 4:
            data += bytes((random.choice(ALU_IMMEDIATE), random.byte()))
        elif kind == 4:
            data.append(random.choice((0x07, 0x0F, 0x17, 0x1F, 0x27, 0x2F, 0x37, 0x3F)))
        else:
            data.append(random.choice(ALU_OPCODES))
    return bytes(data)


def log(code: Code) -> None:
    """Keep A or the flags where the comparison sees them, or AF and HL on the stack."""
    way = code.random.integer(0, 9)
    if way <= 3:
        code.word(0xEA, LOG + code.random.byte())
    elif way <= 7:
        code.emit(0xF5, 0xD1, 0x7B)
        code.word(0xEA, LOG + code.random.byte())
    else:
        code.emit(0xF5, 0xE5, 0xE1, 0xF1)


def start(code: Code) -> None:
    """SP, interrupts and a picture to begin with."""
    random = code.random
    code.word(0x31, 0xDFF0)
    code.store(IE, random.choice((0x00, 0x01, 0x03, 0x05, 0x07, 0x1F)))
    code.store(STAT, random.choice(VALUES[STAT]))
    if random.chance(0.5):
        code.emit(0xFB)
    mapper_writes(code)


def recover(code: Code) -> None:
    """Back to a machine that runs on: SP in WRAM, LCD on, mostly interrupts too."""
    random = code.random
    code.word(0x31, random.choice((0xDFF0, 0xDFF0, 0xFFFE, 0xCFFF, 0xDE00)))
    if random.chance(0.7):
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)
    if random.chance(0.5):
        code.store(IE, random.choice(VALUES[IE]))
        code.emit(random.choice((0xFB, 0xFB, 0xF3)))
    if random.chance(0.6):
        joypad(code)


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


def registers(code: Code) -> None:
    """IO registers written and read."""
    for _ in range(code.random.integer(1, 7)):
        register, value = io_pair(code.random)
        if code.random.chance(0.7):
            code.store(register, value)
        else:
            code.emit(0xF0, register)
            log(code)
        code.nops(2)


def change_in_place(code: Code) -> None:
    """Read-modify-write on a register."""
    random = code.random
    for _ in range(random.integer(1, 4)):
        code.word(0x21, 0xFF00 | random.choice((LY, STAT, DIV, IF, TIMA, LCDC, LYC, P1, SC, DMA, IE, TAC, SCX)))
        code.emit(*random.choice(((0x34,), (0x35,), (0xCB, random.byte() & 0xF8 | 6), (0x86, 0x77), (0x7E, 0x77))))
        if random.chance(0.5):
            code.emit(0x7E)
            log(code)
    if random.chance(0.7):
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)


def wait(code: Code) -> None:
    """Poll LY or STAT, for a bounded time, then do something at once."""
    random = code.random
    code.emit(0x06, random.byte())
    top = len(code.data)
    if random.chance(0.5):
        code.emit(0xF0, LY, 0xFE, random.choice((0, 1, 5, 70, 143, 144, 152, 153, random.integer(0, 153))))
    else:
        code.emit(0xF0, STAT, 0xE6, random.choice((3, 3, 3, 7, 4)), 0xFE, random.choice((0, 1, 2, 3, 4)))
    code.emit(0x28, 0x03, 0x05, 0x20)
    code.emit(top - len(code.data) - 1)
    code.nops(3)
    random.choice((registers, memory, look, change_in_place, log))(code)


def poll(code: Code) -> None:
    """The loops that games wait with; LY and STAT polls only end while the LCD is on."""
    random = code.random
    if random.chance(0.5):
        code.emit(0xF3)
    if random.chance(0.85):
        code.store(STAT, random.choice((0x00, 0x00, 0x40, 0x08)))
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)
    for _ in range(random.integer(1, 3)):
        way = random.integer(0, 5)
        line = random.choice((0, 1, 2, 143, 144, 145, 153, random.integer(0, 153)))
        if way <= 2:
            jump = random.choice((0x20, 0x20, 0x28, 0x30, 0x38))
            code.emit(0xF0, LY, 0xFE, max(line, 1) if jump in (0x30,) else line, jump, 0xFA)
        elif way == 3:
            code.emit(0xF0, STAT, 0xE6, random.choice((1, 2, 3)), random.choice((0x20, 0x28)), 0xFA)
        elif way == 4:
            code.word(0x21, 0xFF44)
            code.emit(0x3E, line, 0xBE, 0x20, 0xFD)
        else:
            code.emit(0x06, random.byte(), 0xF0, LY, 0x05, 0x20, 0xFB)
        code.nops(2)
        if random.chance(0.6):
            code.emit(0xF0, random.choice((LY, STAT, DIV, TIMA, IF)))
            log(code)


def high_ram_routine(code: Code) -> None:
    """The routine of most games: start an OAM DMA from HRAM (or WRAM) and wait there until it is over, or not quite."""
    random = code.random
    place = random.choice((0xFF80, 0xFF90, 0xFFB3, 0xC700, 0xE710))
    load, decrease = random.choice(((0x3E, 0x3D), (0x06, 0x05), (0x0E, 0x0D)))
    body = bytes((0xE0, DMA, load, random.choice((40, 40, 41, 39, 30, 5, 1)), decrease, 0x20, 0xFD)) + random.choice(
        (b"\xc9", b"\x00\xc9", b"\xf0\x44\xc9", b"\x34\xc9", b"\xfb\xc9", b"\x7e\x34\xc9", b"\xd9")
    )
    code.word(0x21, code.here + 15)
    code.word(0x11, place)
    code.emit(0x06, len(body), 0x2A, 0x12, 0x13, 0x05, 0x20, 0xFA, 0x18, len(body))
    code.data[-1:] = bytes((len(body) + 1,))
    code.emit(0x00)
    code.data += body
    if random.chance(0.6):
        code.emit(0xF0, LY, 0xFE, random.choice((144, 145, 150, 153, 10)), 0x20, 0xFA)
    code.word(0x21, random.choice((0xC150, 0xC10A, 0xFE10, 0xFF0F)))
    for _ in range(random.integer(1, 2)):
        code.emit(0x3E, random.choice(VALUES[DMA]))
        code.word(0xCD, place)
        code.emit(random.choice((0x34, 0x7E, 0x00, 0x77)))
    code.word(0xFA, 0xFE00 + random.integer(0, 0x9F))
    log(code)


def look(code: Code) -> None:
    """A row of reads of one register or cell, as fast as possible."""
    random = code.random
    target = random.weighted({LY: 3, STAT: 5, TIMA: 3, DIV: 2, IF: 3})
    if random.chance(0.4):
        code.word(0x21, random.choice((0xFF00 | target, 0xFE00, 0xFE50, 0x8000, 0x9800)))
        code.word(0x11, random.choice((0x8001, 0xFE01, 0xFF00 | target)))
        for _ in range(random.integer(2, 12)):
            code.emit(random.choice((0x7E, 0x46, 0x4E, 0x7E, 0x1A, 0x80, 0xA8)))
            code.nops(1)
        code.emit(0x78)
        log(code)
        code.emit(0x79)
    else:
        for _ in range(random.integer(2, 8)):
            code.emit(0xF0, target, random.choice((0x47, 0x4F, 0x57, 0x80, 0xA9)))
    log(code)


def pause(code: Code) -> None:
    """Let time go by."""
    code.delay(code.random.choice((3, 20, 100, 255)))


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
            (0xFB, 0xC7), (0xFB, 0xF0, IF), (0xFB, 0xE0, DIV), (0x3E, random.byte(), 0xFB, 0xE0, DMA), (0x00,) * random.integer(1, 9),
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


def oam_dma(code: Code) -> None:
    """A transfer, and reads and writes of OAM while it runs."""
    random = code.random
    code.store(DMA, random.choice(VALUES[DMA]))
    for _ in range(random.integer(0, 12)):
        code.nops(3)
        choice = random.integer(0, 6)
        if choice == 0:
            code.word(0xFA, 0xFE00 + random.integer(0, 0x9F))
        elif choice == 1:
            code.word(0x21, 0xFE00 + random.integer(0, 0x9F))
            code.emit(random.choice((0x7E, 0x77, 0x34, 0x46, 0x36)), 0x00)
        elif choice == 2:
            code.word(0x11, 0xFE00 + random.integer(0, 0x9F))
            code.emit(random.choice((0x1A, 0x12)))
        elif choice == 3:
            code.store(DMA, random.choice(VALUES[DMA]))
        elif choice == 4:
            code.emit(0xF0, random.choice((LY, STAT, DMA, 0x80)))
        elif choice == 5:
            code.word(0xEA, random.choice((0xC100, 0x8000, 0xA000, 0x2000)) + random.byte())
        else:
            code.delay(14)
        log(code)


def fill(code: Code) -> None:
    """A block of memory filled with a running pattern: tiles, maps, sprites."""
    random = code.random
    code.word(
        0x21, random.choice((0x8000, 0x8800, 0x9000, 0x9800, 0x9C00, 0xC100, 0xC100, 0xFE00, 0xA000, address(random)))
    )
    code.emit(0x06, random.choice((0x00, 0x80, 0xA0, 0x40)), 0x3E, random.byte())
    step = random.choice(
        ((0xC6, random.byte()), (0xCE, random.byte()), (0xEE, random.byte()), (0x07, 0x00), (0x80, 0x00))
    )
    code.emit(random.choice((0x22, 0x22, 0x22, 0x32)), *step, 0x05, 0x20, 0xFA)


def sprites(code: Code) -> None:
    """Sprites close together in OAM's shadow at C100, then a transfer."""
    random = code.random
    line = random.integer(0, 159)
    code.word(0x21, random.choice((0xC100, 0xC100, 0xFE00)))
    for _ in range(random.integer(1, 14)):
        x = random.choice((0, 1, 7, 8, 9, 80, 81, 84, 160, 166, 167, 168, 169, 255, random.byte()))
        for value in ((line + random.integer(-3, 3)) & 0xFF, x, random.byte(), random.byte()):
            code.emit(0x36, value, 0x2C)
    code.store(DMA, 0xC1)


def lcd_switch(code: Code) -> None:
    """LCD off anywhere in the frame, changes, and on again."""
    random = code.random
    if random.chance(0.3):
        code.delay(255)
    code.store(LCDC, random.choice((0x00, 0x11, 0x7F)))
    for _ in range(random.integer(0, 3)):
        random.choice((registers, look, pause, memory, fill, change_in_place))(code)
    code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)
    for _ in range(random.integer(0, 2)):
        random.choice((look, pause, registers, wait))(code)


def mid_frame(code: Code) -> None:
    """Registers changed line after line."""
    random = code.random
    code.emit(0x06, random.integer(2, 60))
    top = len(code.data)
    code.emit(0x78)
    for _ in range(random.integer(1, 3)):
        target = random.choice((SCX, SCY, BGP, OBP0, OBP1, WX, WY, LYC))
        code.emit(*random.choice(((0x07,), (0x87,), (0xEE, random.byte()), ())), 0xE0, target)
    if random.chance(0.2):
        code.emit(0xF6, 0x80, 0xE0, LCDC)
    code.emit(0x3E, random.choice((2, 10, 24, 25, 26, 27, 28, 29, 60)), 0x3D, 0x20, 0xFD)
    code.nops(5)
    code.emit(0x05, 0x20)
    code.emit(top - len(code.data) - 1)


def timer(code: Code) -> None:
    """TIMA about to overflow, read and written around that moment."""
    random = code.random
    code.store(TAC, random.choice((5, 5, 5, 5, 6, 7, 4, 0)))
    code.store(TMA, random.choice(VALUES[TMA]))
    code.store(TIMA, random.choice((0xFF, 0xFF, 0xFE, 0xFD)))
    for _ in range(random.integer(1, 8)):
        code.nops(5)
        way = random.integer(0, 6)
        if way <= 2:
            code.emit(0xF0, random.choice((TIMA, TIMA, IF, DIV)))
            log(code)
        elif way == 3:
            code.emit(0xE0, random.choice((TIMA, TMA, DIV, TAC)))
        elif way == 4:
            code.store(TAC, random.choice(VALUES[TAC]))
        elif way == 5:
            code.word(0x08, random.choice((0xFF04, 0xFF05, 0xFF06, 0xFF03)))
        else:
            code.store(random.choice((DIV, TIMA, TMA)), random.byte())


def serial(code: Code) -> None:
    """Transfers on both clocks."""
    random = code.random
    for _ in range(random.integer(1, 3)):
        code.store(SB, random.byte())
        code.store(SC, random.choice(VALUES[SC]))
        code.delay(random.choice((2, 90)))
        code.emit(0xF0, random.choice((SC, SB, IF)))
        log(code)


def joypad(code: Code) -> None:
    """Both rows, kept."""
    for _ in range(code.random.integer(1, 3)):
        code.store(P1, code.random.choice(VALUES[P1]))
        code.emit(0xF0, P1)
        log(code)


def mapper_writes(code: Code) -> None:
    """Bank registers, mostly RAM enabled, then code and data of the bank."""
    random = code.random
    for _ in range(random.integer(1, 5)):
        area = random.choice((0x0000, 0x2000, 0x2000, 0x3000, 0x4000, 0x6000))
        value = random.choice((0x0A, 0x00, 0x01, 0x02, 0x08, 0x0C, 0x10, 0x20, 0x1F, 0x60, 0xFF, random.byte()))
        code.emit(0x3E, 0x0A if area == 0 and random.chance(0.75) else value)
        code.word(0xEA, area + random.integer(0, 0xFFF) if random.chance(0.5) else area + random.choice((0, 0x100)))
    code.word(0xFA, random.choice((0x7FF0, 0x7FF1, 0x4000, 0xA000, 0xBFFF, 0x3FFF)))
    log(code)
    if random.chance(0.5):
        code.word(0xCD, 0x4000 + 64 * random.integer(0, 250))


def cartridge_ram(code: Code) -> None:
    """RAM or clock registers written and read back, now and then latched."""
    random = code.random
    code.emit(0x3E, random.choice((0x0A, 0x0A, 0x0A, 0x1A, 0x00)))
    code.word(0xEA, random.choice((0x0000, 0x1FFF, 0x0100)))
    for _ in range(random.integer(1, 4)):
        code.emit(0x3E, random.choice((0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 15)))
        code.word(0xEA, 0x4000 + random.byte())
        where = 0xA000 + random.choice((0, 1, 0x1FF, 0x200, 0x1FFF))
        code.emit(0x3E, random.choice((0, 1, 23, 58, 59, 63, 0x40, 0x80, 0xC1, 0xFF, random.byte())))
        if random.chance(0.5):
            code.word(0xEA, where)
        if random.chance(0.4):
            code.emit(0x3E, 0x00, 0xEA, 0x00, 0x60, 0x3E, 0x01, 0xEA, 0x00, 0x60)
        code.word(0xFA, where)
        log(code)


def moved_code(code: Code) -> None:
    """Instructions copied to RAM of any kind and run there."""
    random = code.random
    body = random.choice((instructions, _memory_bytes))(random, random.integer(2, 8)) + b"\xc9"
    place = random.choice(
        (0x8000, 0x9000, 0x9C10, 0xA010, 0xC200, 0xD800, 0xE300, 0xFE00, 0xFE20, 0xFEA0, 0xFF90, 0xFFC0)
    )
    off = place < 0xA000 and random.chance(0.6)
    if off:
        code.store(LCDC, 0x11)
    source = code.here + 17
    code.word(0x21, source)
    code.word(0x11, place)
    code.emit(0x06, len(body), 0x2A, 0x12, 0x13, 0x05, 0x20, 0xFA)
    code.emit(0x18, len(body) + 1, 0x00)
    code.data += body
    code.emit(0x00)
    if off:
        code.store(LCDC, 0x91)
        code.nops(4)
        code.delay(30)
    code.word(0xCD, place)


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


def subroutine(random: Random, place: int) -> bytes:
    """Up to 62 bytes that end in RET."""
    code = Code(random, place)
    for _ in range(random.integer(1, 2)):
        part = Code(random, code.here)
        random.choice((alu, look, registers, memory, log))(part)
        if len(code.data) + len(part.data) <= 58:
            code.data += part.data
    code.emit(random.choice((0xC9, 0xC9, 0xC9, 0xD9)))
    return bytes(code.data)


def handler(code: Code, vector: int) -> None:
    """An interrupt handler: short, or with register work, mostly ending in RETI."""
    random = code.random
    way = random.integer(0, 5)
    if way <= 1:
        code.emit(random.choice((0x0C, 0x04, 0x14, 0x00)))
    else:
        code.emit(0xF5)
        part = Code(random, code.here)
        if way == 2:
            code.emit(0xF0, random.choice((LY, STAT, DIV, TIMA, IF)), 0xEA, vector, LOG >> 8)
        elif way == 3:
            code.emit(0xF0, LY, 0xC6, random.integer(1, 40), 0xE0, LYC)
        elif way == 4:
            code.emit(0x3E, random.byte(), 0xE0, random.choice((SCX, SCY, BGP, WX, WY, TIMA, OBP0)))
        else:
            registers(part)
            code.data += part.data[:20] if len(part.data) <= 20 else b""
        code.emit(0xF1)
    code.emit(random.choice((0xD9, 0xD9, 0xD9, 0xD9, 0xD9, 0xC9)))


def wild(code: Code) -> None:
    """One instruction of a stream: anything legal, operands chosen with care; writes to MBC and IO are frequent."""
    random = code.random
    kind = random.integer(0, 19)
    if kind <= 5:
        code.data += instructions(random, 1)
    elif kind <= 7:
        code.word(random.choice((0x01, 0x11, 0x21, 0x21)), address(random))
    elif kind <= 9:
        code.emit(random.choice((*HL_OPCODES, 0x02, 0x0A, 0x12, 0x1A)))
    elif kind == 10:
        code.emit(0xCB, random.byte())
    elif kind == 11:
        code.word(random.choice((0xEA, 0xFA, 0x08)), address(random))
    elif kind <= 14:
        register, value = io_pair(random)
        code.emit(0x3E, value, random.choice((0xE0, 0xE0, 0xF0)), register)
    elif kind == 15:
        code.emit(random.choice((0xFB, 0xFB, 0xF3, 0x76, 0xFB, 0x00, 0xFB, 0xFB)))
    elif kind == 16:
        code.emit(random.choice((0xC5, 0xD5, 0xE5, 0xF5, 0xC1, 0xD1, 0xE1, 0xF1, 0xC0, 0xC8, 0xD0, 0xD8)))
    elif kind == 17:
        code.emit(random.choice((0x20, 0x28, 0x30, 0x38, 0x18)), random.integer(0, 6))
    elif kind == 18:
        code.word(0x31, random.choice((0xDFF0, 0xFFFE, 0xCFFF, address(random))))
    else:
        random.choice((pause, timer, lcd_switch, mapper_writes))(code)


SNIPPETS: dict[Callable[[Code], None], float] = {
    alu: 7, flags: 6, memory: 12, poll: 6, high_ram_routine: 4, registers: 10, change_in_place: 4, wait: 8, look: 8, pause: 5, interrupt_switches: 8,
    odd_stack: 5, oam_dma: 6, fill: 4, sprites: 4, lcd_switch: 4, mid_frame: 3, timer: 8, serial: 2, joypad: 5,
    mapper_writes: 5, cartridge_ram: 5, moved_code: 5, borders: 2, flow: 5,
}  # fmt: skip


def snippet(code: Code) -> None:
    """One piece of a program."""
    code.random.weighted(SNIPPETS)(code)
