"""Areas of addresses, each of which is plain memory as a whole or is not: what the common path may access.

A table has the area of each address. Fast.plain has eight bits behind each flag of descriptors.ACCESSES, one for each
area: whether an access with that flag is plain there. So the word, rotated to the right by the area of an address, has
the answer for each flag in the flag's own place.
"""

import numpy as np

from gbxcule_puffer.emulator import hardware as hw

ROM_LOW, ROM_HIGH, VRAM, CART_RAM, WRAM, P1, HIGH_RAM, OTHER = range(8)
"""OTHER: echo RAM, OAM, registers, IE, and bytes behind which a word would leave its area or bank."""

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
