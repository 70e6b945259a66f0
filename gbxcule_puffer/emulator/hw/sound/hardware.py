"""The sound registers of a muted env. In PyBoy without sound they read 00. On hardware they keep the written value;
unused and write-only bits read 1. There is no sound, so NR52's channel bits stay off, except as the boot ROM left them.

INACCURATE: a triggered channel does not show in NR52 (blargg, dmg_sound).
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.state import Cpu

# Bits that read 1, of NR10 to NR51 by address (Pan Docs, "Audio Registers"; mooneye, bits/unused_hwio).
UNREADABLE = (
    0x80, 0x3F, 0x00, 0xFF, 0xBF, 0xFF, 0x3F, 0x00, 0xFF, 0xBF, 0x7F, 0xFF, 0x9F, 0xFF, 0xBF, 0xFF, 0xFF, 0x00, 0x00,
    0xBF, 0x00, 0x00, 0x70, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
)  # fmt: skip
MASKS = wp.constant(wp.types.vector(len(UNREADABLE), wp.int32)(UNREADABLE))


@wp.func
def read(c: wp.ref[Cpu], address: int) -> int:
    """FF10-FF3F."""
    if model.HARDWARE == 1:
        value = row.load(c, address)
        if address < hw.WAVE_RAM:
            masks = MASKS
            value = value | masks[address - hw.NR10]
        return value
    return 0


@wp.func
def write(c: wp.ref[Cpu], address: int, value: int):
    """FF10-FF3F; switching off with NR52 clears the other registers, and they stay clear until sound is switched on."""
    if model.HARDWARE == 1:
        if address == hw.NR52:
            row.store(c, address, value & 0x80)
            if (value & 0x80) == 0:
                for register in range(hw.NR10, hw.NR52):
                    row.store(c, register, 0)
        elif address >= hw.WAVE_RAM or row.load(c, hw.NR52) >= 0x80:
            row.store(c, address, value)
