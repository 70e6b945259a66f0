"""Areas of addresses, each of which is plain memory as a whole or is not: what can be accessed without side effects
until the next event. A set of areas is a word with bit i for area i.

For the data path a table has the area of each address. Its Fast.plain has a set behind each flag of
descriptors.ACCESSES: where an access with that flag is plain. So the word, rotated to the right by the area of an
address, has the answer for each flag at the flag's own bit.
"""

import numpy as np
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu
from gbxcule_puffer.emulator.state import Cpu, Machine

ROM_LOW, ROM_HIGH, VRAM, CART_RAM, WRAM, P1, HIGH_RAM, OTHER = range(8)
"""OTHER: echo RAM, OAM, registers, IE, and bytes behind which a word would leave its area or bank."""

ALL = (1 << OTHER) - 1
PAGE = 0x1000
SIZE = 0x10100  # of the table, in bytes: INC HL in a group leads up to 10000h
ENDS = (hw.ROM_BANK_SIZE, hw.VRAM, hw.CART_RAM, hw.WRAM, hw.WRAM + hw.WRAM_BANK_SIZE, hw.ECHO)


def table() -> np.ndarray:
    """The area of each address, uint8, shape (SIZE,)."""
    areas = np.full(SIZE, OTHER, np.uint8)
    areas[: hw.ROM_BANK_SIZE] = ROM_LOW
    areas[hw.ROM_BANK_SIZE : hw.VRAM] = ROM_HIGH
    areas[hw.VRAM : hw.CART_RAM] = VRAM
    areas[hw.CART_RAM : hw.WRAM] = CART_RAM
    areas[hw.WRAM : hw.ECHO] = WRAM
    areas[[end - 1 for end in ENDS]] = OTHER
    areas[hw.P1] = P1
    areas[hw.HRAM : hw.IE - 1] = HIGH_RAM
    return areas


@wp.func
def ram(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """WRAM, and cartridge RAM where its bank 0 is seen and is nothing but memory."""
    is_bank0 = c.ram_enabled == 1 and c.ram_offset == hw.CART_RAM - hw.ROW_BASE
    return wp.where(is_bank0 and m.has_plain_ram == 1, 1 << CART_RAM, 0) | (1 << WRAM)


@wp.func
def readable(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """The set of areas below E000 that can be read without side effects; of 0000-3FFF, bank 0 alone."""
    rom = wp.where(c.rom_low == 0, 1 << ROM_LOW, 0) | (1 << ROM_HIGH)
    return rom | (1 << VRAM) | ram(m, c)


@wp.func
def writable(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """The set of areas below E000 that can be written without side effects until the next event."""
    return wp.where(drawing.is_drawing(c), 0, 1 << VRAM) | ram(m, c)


@wp.func
def unlocked(c: wp.ref[Cpu]) -> int:
    """The set of areas that the LCD does not lock before the next event."""
    return wp.where(ppu.is_vram_unlocked(c), ALL, ALL & ~(1 << VRAM))


@wp.func
def plain_run(areas: int, address: int) -> int:
    """Bytes from `address` to the end of its 4 KiB where it is below E000 and in one of a set of areas, else 0."""
    page = address >> 12
    area = wp.where(page < 8, page >> 2, (page >> 1) - 2)
    return ((areas >> area) & int(address < hw.ECHO)) * (PAGE - (address & (PAGE - 1)))
