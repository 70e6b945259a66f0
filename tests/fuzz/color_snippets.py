"""Snippets about what only a Game Boy Color has: banks, palettes, VRAM DMA, the speed switch, its other registers."""

from __future__ import annotations

from tests.fuzz.code import Code
from tests.fuzz.parts import BGP, HL_OPCODES, LCDC, LY, OBP0, OBP1, SCX, SCY, STAT, VALUES, WX, WY, address, log

KEY0, KEY1, VBK, HDMA1, HDMA5, RP, BCPS, BCPD, OCPS, OCPD, OPRI, SVBK = (
    0x4C, 0x4D, 0x4F, 0x51, 0x55, 0x56, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x70,
)  # fmt: skip
REGISTERS = {KEY1: 3, VBK: 4, BCPS: 3, BCPD: 4, OCPS: 3, OCPD: 4, OPRI: 1, SVBK: 2, RP: 0.5, KEY0: 0.5, HDMA5: 1,
             **dict.fromkeys((*range(HDMA1, HDMA5), *range(0x72, 0x78), 0x4E, 0x57), 0.4)}  # fmt: skip
VALUES_OF = {
    VBK: (0, 1, 1, 0xFF),
    SVBK: (0, 1, 1, 2, 3, 7, 0xF9),
    BCPS: (0x80, 0x80, 0xBE, 0x3F, 0xC0),
    KEY1: (0, 1, 1),
}


def registers(code: Code) -> None:
    """Registers written and read."""
    random = code.random
    for _ in range(random.integer(1, 7)):
        register = random.weighted(REGISTERS)
        if random.chance(0.65):
            code.store(register, random.choice(VALUES_OF.get(register, (random.byte(),))))
        else:
            code.emit(0xF0, register)
            log(code)
        code.nops(2)


def speed(code: Code) -> None:
    """STOP, which switches the speed or does not, and what shows it."""
    random = code.random
    if random.chance(0.8):
        code.store(KEY1, random.choice((1, 1, 1, 0, 0x81)))
    code.nops(2)
    code.emit(0x10, 0x00)
    for _ in range(random.integer(0, 4)):
        code.emit(0xF0, random.choice((KEY1, LY, STAT, 0x04, 0x05, 0x0F)))
        log(code)


def vram_dma(code: Code) -> None:
    """A transfer of either kind, from anywhere, and what happens meanwhile."""
    random = code.random
    if random.chance(0.9):
        source = random.choice(
            (0x0150, 0x4000, 0x7FF0, 0xC000, 0xC100, 0xD000, 0xDFC0, 0xA000, 0x8000, address(random))
        )
        target = random.integer(0x8000, 0x9FFF)
        for register, value in zip(range(HDMA1, HDMA5), (*source.to_bytes(2), *target.to_bytes(2)), strict=True):
            code.emit(0x3E, value, 0xE0, register)
    if random.chance(0.15):
        code.store(LCDC, 0x11)
    if random.chance(0.5):
        code.store(HDMA5, random.choice((0, 1, 7, 0x3F)))
    else:
        code.store(HDMA5, random.choice((0x80, 0x81, 0x83, 0x8F, 0xBF)))
        for _ in range(random.integer(0, 4)):
            kind = random.integer(0, 5)
            if kind <= 1:
                code.delay(random.choice((10, 60, 255)))
            elif kind == 2:
                code.store(STAT, random.choice(VALUES[STAT]))
            elif kind == 3:
                code.store(HDMA5, random.choice((0, 0x80, 0x05)))
            else:
                code.emit(0x76)
            code.emit(0xF0, HDMA5)
            log(code)
    if random.chance(0.7):
        code.store(LCDC, random.choice(VALUES[LCDC]) | 0x80)


def palettes(code: Code) -> None:
    """A palette memory filled, while lines are drawn or not."""
    random = code.random
    index, data = random.choice(((BCPS, BCPD), (OCPS, OCPD)))
    code.emit(0x3E, random.choice((0x80, 0x80, 0x88, 0xA1, 0x00)), 0xE0, index, 0x06, random.choice((64, 64, 8, 130)))
    code.emit(0x3E, random.byte())
    step = random.choice(((0xC6, random.byte()), (0xCE, random.byte()), (0x07, 0x80)))
    code.emit(0xE0, data, *step, 0x05, 0x20, 0xF9)
    code.emit(0xF0, data)
    log(code)


def attributes(code: Code) -> None:
    """VRAM of bank 1: tiles and attributes of the maps."""
    random = code.random
    code.emit(0x3E, 0x01, 0xE0, VBK)
    code.word(0x21, random.choice((0x8000, 0x8800, 0x9000, 0x9800, 0x9800, 0x9900, 0x9C00)))
    code.emit(0x06, random.choice((0x00, 0x80, 0xA0)), 0x3E, random.byte())
    code.emit(0x22, *random.choice(((0xC6, random.byte()), (0xEE, random.byte()), (0x07, 0x80))), 0x05, 0x20, 0xFA)
    code.store(VBK, random.choice((0, 0, 0, 1)))


def wram_banks(code: Code) -> None:
    """A bank of WRAM, and memory of it."""
    random = code.random
    code.store(SVBK, random.choice(VALUES_OF[SVBK]))
    for _ in range(random.integer(1, 4)):
        code.word(0x21, random.choice((0xCFFE, 0xD000, 0xDF00, 0xDFFE, 0xF000, 0xD123)))
        code.emit(*(random.choice(HL_OPCODES) for _ in range(random.integer(1, 5))))
        log(code)
    if random.chance(0.7):
        code.store(SVBK, 0)


def objects(code: Code) -> None:
    """Sprites beside and on each other, with all attributes, in OAM at once."""
    random = code.random
    line, x = random.integer(0, 159), random.integer(0, 168)
    code.word(0x21, 0xFE00)
    for _ in range(random.integer(2, 12)):
        for value in (line + random.integer(-3, 3), x + random.integer(-6, 6), random.byte(), random.byte()):
            code.emit(0x36, value, 0x2C)


def scene(code: Code) -> None:
    """A picture of random tiles, attributes, palettes and sprites, for some frames; some of it changes meanwhile."""
    random = code.random
    code.store(LCDC, 0x11)
    for bank in (1, 0):
        code.store(VBK, bank)
        code.word(0x21, 0x8000)
        code.word(0x11, random.integer(0x150, 0x7000))
        code.word(0x01, 0x0400)
        code.emit(0x1A, 0x13, 0x22, 0x0B, 0x78, 0xB1, 0x20, 0xF8)  # 64 tiles, from the ROM
        mask = random.choice((0x3F, 0xFF)) if bank else 0x3F
        code.word(0x21, random.choice((0x9800, 0x9800, 0x9C00)))
        code.word(0x01, 0x0240)
        step = random.byte()
        code.emit(0x16, random.byte(), 0x7A, 0xC6, step, 0x57, 0xE6, mask, 0x22, 0x0B, 0x78, 0xB1, 0x20, 0xF4)
    for _ in range(4):
        palettes(code)
    code.word(0x21, 0xFE00)
    y_mask, tile_mask = random.choice((0x1F, 0x3F, 0x7F)), random.choice((0x0F, 0x3F))
    code.emit(0x06, 40, 0x3E, random.byte(), 0xC6, random.byte() | 1, 0x4F, 0xE6, y_mask, 0xC6, 0x10, 0x22)
    code.emit(0x79, 0xC6, random.byte(), 0x22, 0x79, 0xE6, tile_mask, 0x22, 0x79, 0x07, 0xEE, random.byte(), 0x22)
    code.emit(0x79, 0x05, 0x20, 0xE7)
    for register in (BGP, OBP0, OBP1):
        code.store(register, random.choice((0xE4, 0x1B, random.byte())))
    for register, value in ((SCX, random.byte()), (SCY, random.byte()), (WX, random.integer(0, 170)), (WY, 0)):
        code.store(register, value)
    if random.chance(0.4):
        code.store(OPRI, random.choice((0, 1)))
    code.store(LCDC, 0x80 | random.choice((0x13, 0x17, 0x12, 0x16, 0x33, 0x37, random.byte() & 0x7F)))
    for _ in range(random.integer(1, 4)):
        turns = random.choice((16, 40, 120))
        code.emit(0x0E, turns, 0x06, 0x00, 0x05, 0x20, 0xFD, 0x0D, 0x20, 0xF8)
        random.choice((palettes, attributes, objects, registers, speed))(code)
        code.store(LCDC, 0x80 | random.choice((0x13, 0x17, 0x12, 0x16, random.byte() & 0x7F)))


def stop_outside(code: Code) -> None:
    """STOP in VRAM, OAM or WRAM: its second byte is read ahead of the LCD, and the switch looks back."""
    random = code.random
    address = random.choice((0x8000, 0x9FF0, 0xFE00, 0xDE00))
    code.store(STAT, random.choice((0x08, 0x20, 0x28, 0x40, 0x78)))
    code.store(KEY1, 1)
    code.emit(0x10, 0x00)
    code.word(0x21, address)
    code.emit(0x36, 0x10, 0x2C, 0x36, 0x00, 0x2C, 0x36, 0xC9)
    code.store(KEY1, random.choice((1, 1, 1, 0)))
    code.delay(60)
    code.word(0xCD, address)
    code.emit(0xF0, random.choice((LY, STAT, 0x0F)))
    log(code)


SNIPPETS = {registers: 8, speed: 5, vram_dma: 8, palettes: 6, attributes: 6, wram_banks: 4, objects: 3}
