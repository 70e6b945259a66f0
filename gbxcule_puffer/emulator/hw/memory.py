"""Reads below FE00: ROM, VRAM, cartridge RAM, WRAM and its echo."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import accuracy, intrinsics, row
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def is_vram_locked(c: wp.ref[Cpu]) -> bool:
    """True where VRAM reads FF: in mode 3 and in the last 4 T-cycles of mode 2."""
    mode = c.stat & hw.STAT_MODE
    left = c.lcd_target - c.lcd_last
    return (c.lcdc & hw.LCDC_ENABLE) != 0 and (mode == 3 or (mode == 2 and left >= 0 and left <= 4))


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at `address` < FE00 at time `t`; only an access with lookahead sees the lock of VRAM."""
    if address < 0x4000:
        return intrinsics.load_byte(c.rom, c.rom_low + address)
    if address < hw.VRAM:
        return intrinsics.load_byte(c.rom, c.rom_high + address)
    if address >= hw.WRAM:
        return row.load(c, hw.WRAM + (address & 0x1FFF))
    if address >= hw.CART_RAM:
        return mbc.read_ram(m, c, address, t)
    if lookahead != 0 or accuracy.HARDWARE == 1:
        ppu.advance(m, c, t + lookahead)
        if is_vram_locked(c):
            return 0xFF
    return row.load(c, address)
