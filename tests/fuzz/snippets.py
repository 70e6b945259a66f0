"""The grammar: small pieces of machine code, each aimed at something that emulators get wrong, and how often."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.code import Code, Random
from tests.fuzz.cpu_snippets import alu, borders, flags, flow, interrupt_switches, memory, moved_code, odd_stack
from tests.fuzz.device_snippets import (
    cartridge_ram,
    change_in_place,
    fill,
    high_ram_routine,
    joypad,
    lcd_switch,
    look,
    mapper_writes,
    mid_frame,
    move_loop,
    oam_dma,
    pause,
    poll,
    registers,
    serial,
    sprites,
    timer,
    wait,
)
from tests.fuzz.parts import (
    BGP,
    DIV,
    HL_OPCODES,
    IE,
    IF,
    LCDC,
    LOG,
    LY,
    LYC,
    OBP0,
    SCX,
    SCY,
    STAT,
    TIMA,
    VALUES,
    WX,
    WY,
    address,
    instructions,
    io_pair,
    log,
)


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


def subroutine(random: Random, address: int) -> bytes:
    """Up to 62 bytes that end in RET."""
    code = Code(random, address)
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
    alu: 7, flags: 6, memory: 12, poll: 6, high_ram_routine: 4, registers: 10, change_in_place: 4, wait: 8, look: 8,
    pause: 5, interrupt_switches: 8, odd_stack: 5, oam_dma: 6, fill: 4, sprites: 4, lcd_switch: 4, mid_frame: 3,
    move_loop: 8, timer: 8, serial: 2, joypad: 5, mapper_writes: 5, cartridge_ram: 5, moved_code: 5, borders: 2,
    flow: 5,
}  # fmt: skip


def snippet(code: Code) -> None:
    """One piece of a program."""
    code.random.weighted(SNIPPETS)(code)
