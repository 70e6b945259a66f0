"""Snippets about the devices: LCD, timer, OAM DMA, serial port, buttons, mappers."""

from __future__ import annotations

from gbxcule_puffer.emulator.loops.codes import first_loops
from tests.fuzz.code import Code
from tests.fuzz.cpu_snippets import memory
from tests.fuzz.parts import (
    BGP,
    DIV,
    DMA,
    IE,
    IF,
    LCDC,
    LY,
    LYC,
    OBP0,
    OBP1,
    P1,
    SB,
    SC,
    SCX,
    SCY,
    STAT,
    TAC,
    TIMA,
    TMA,
    VALUES,
    WX,
    WY,
    address,
    io_pair,
    log,
)

MOVES = [loop.code for loop in first_loops()]


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
            jump, mask = random.choice((0x20, 0x28)), random.choice((1, 2, 3))
            test, back = random.choice((((0xE6, mask), 0xFA), ((0xE6, mask, 0xA7), 0xF9), ((0xCB, 0x4F), 0xFA)))
            code.emit(0xF0, STAT, *test, jump, back)
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
    address = random.choice((0xFF80, 0xFF90, 0xFFB3, 0xC700, 0xE710))
    load, decrease = random.choice(((0x3E, 0x3D), (0x06, 0x05), (0x0E, 0x0D)))
    body = bytes((0xE0, DMA, load, random.choice((40, 40, 41, 39, 30, 5, 1)), decrease, 0x20, 0xFD)) + random.choice(
        (b"\xc9", b"\x00\xc9", b"\xf0\x44\xc9", b"\x34\xc9", b"\xfb\xc9", b"\x7e\x34\xc9", b"\xd9")
    )
    code.word(0x21, code.here + 15)
    code.word(0x11, address)
    code.emit(0x06, len(body), 0x2A, 0x12, 0x13, 0x05, 0x20, 0xFA, 0x18, len(body))
    code.data[-1:] = bytes((len(body) + 1,))
    code.emit(0x00)
    code.data += body
    if random.chance(0.6):
        code.emit(0xF0, LY, 0xFE, random.choice((144, 145, 150, 153, 10)), 0x20, 0xFA)
    code.word(0x21, random.choice((0xC150, 0xC10A, 0xFE10, 0xFF0F)))
    for _ in range(random.integer(1, 2)):
        code.emit(0x3E, random.choice(VALUES[DMA]))
        code.word(0xCD, address)
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


def move_loop(code: Code) -> None:
    """A copy or fill loop of those that are skipped, between any two addresses, often one beside the other."""
    random = code.random
    ends = [random.choice((0xC000, 0xCF80, 0xDE00, 0x8000, 0x9800, 0x0150, 0x4000, 0x7F80, address(random)))]
    ends.append(
        random.choice((0xC100, 0xCFF0, 0xD000, 0x8FF0, 0x9C00, 0xFE00, ends[0] + random.integer(-9, 9))) & 0xFFFF
    )
    if random.chance(0.5):
        ends.reverse()
    code.word(0x21, ends[0])
    code.word(0x11, ends[1])
    code.word(0x01, random.choice((0x0140, 0x0108, 0x0200, 0x0001, 0x0301, random.byte(), random.byte() << 8)))
    if random.chance(0.3):
        code.emit(0x37)
    code.data += random.choice(MOVES)
    log(code)


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
