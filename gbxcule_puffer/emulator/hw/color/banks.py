"""Banks of VRAM and WRAM: offsets of addresses in the memory row (hardware.py, "memory row"). Pan Docs, "CGB
Registers", VBK and SVBK."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import row
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def map_banks(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Compute the offsets of the banks that the registers select."""
    c.color_base = row.color_base(m)
    c.vram_shift = wp.where(c.vram_bank != 0, c.color_base - hw.VRAM, 0)
    wram = c.color_base + hw.COLOR_WRAM + (c.wram_bank - 2) * hw.WRAM_BANK_SIZE
    c.wram_shift = wp.where(c.wram_bank > 1, wram - hw.BANKED_WRAM, 0)


@wp.func
def row_offset(c: wp.ref[Cpu], address: int) -> int:
    """The offset in the memory row, as hw/row.py counts, of an address that is memory of the console."""
    shift = int(0)
    if address >= hw.BANKED_WRAM and address < hw.ECHO:
        shift = c.wram_shift
    elif address >= hw.VRAM and address < hw.CART_RAM:
        shift = c.vram_shift
    return address + shift


@wp.func
def is_unshifted(c: wp.ref[Cpu], first: int, last: int) -> bool:
    """True if the addresses from `first` to `last` have no banked WRAM other than bank 1."""
    return c.wram_shift == 0 or last < hw.BANKED_WRAM or first >= hw.ECHO
