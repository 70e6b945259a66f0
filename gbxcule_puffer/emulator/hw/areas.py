"""Areas of addresses. Each area as a whole is plain memory, which has no side effects until the next event, or is not.
A set of areas is a word with bit i for area i.

For the data path, a table has the area of each address. Its Fast.plain has a set of areas from each flag of
descriptors.ACCESSES on: those in which an access with that flag is plain. So the word, rotated right by the area of an
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
SIZE = 0x10100  # bytes of the table: INC HL in a group can reach 10000h
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
    """WRAM, and cartridge RAM if its bank 0 is selected and is plain memory."""
    is_bank0 = c.ram_enabled == 1 and c.ram_offset == hw.CART_RAM - hw.ROW_BASE
    return wp.where(is_bank0 and m.has_plain_ram == 1, 1 << CART_RAM, 0) | (1 << WRAM)


@wp.func
def readable(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """The set of areas below E000 that can be read without side effects; of 0000-3FFF, only bank 0."""
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
    """Bytes from `address` to the end of its 4 KiB, if it is below E000 and in one of a set of areas, else 0."""
    page = address >> 12
    area = wp.where(page < 8, page >> 2, (page >> 1) - 2)
    return ((areas >> area) & int(address < hw.ECHO)) * (PAGE - (address & (PAGE - 1)))
