"""Reads that an OAM DMA does not change: ROM, VRAM, cartridge RAM, WRAM and its echo; IO registers."""

import warp as wp

# The rows of registers.py call lcd_registers, serial, sound_registers and timer.
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import registers
from gbxcule_puffer.emulator.hw import intrinsics, model, row, serial, timer  # noqa: F401
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.color import registers as color_registers
from gbxcule_puffer.emulator.hw.lcd import lcd_registers, ppu  # noqa: F401
from gbxcule_puffer.emulator.hw.sound import registers as sound_registers  # noqa: F401
from gbxcule_puffer.emulator.register_code import reads
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def is_vram_locked(c: wp.ref[Cpu]) -> bool:
    """True where VRAM reads FF: in mode 3 and in the last 4 T-cycles of mode 2."""
    mode = c.stat & hw.STAT_MODE
    left = c.lcd_target - c.lcd_last
    if model.COLOR:
        left = wp.where(c.lcd_wrapped != 0, -1, left >> c.double_speed)
    return (c.lcdc & hw.LCDC_ENABLE) != 0 and (mode == 3 or (mode == 2 and left >= 0 and left <= 4))


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at `address` < FE00 at time `t`; only an access with lookahead notices the lock of VRAM."""
    if address < 0x4000:
        return intrinsics.load_byte(c.rom, c.rom_low + address)
    if address < hw.VRAM:
        return intrinsics.load_byte(c.rom, c.rom_high + address)
    if address >= hw.WRAM:
        if model.COLOR:
            return row.load(c, banks.row_offset(c, hw.WRAM + (address & 0x1FFF)))
        return row.load(c, hw.WRAM + (address & 0x1FFF))
    if address >= hw.CART_RAM:
        return mbc.read_ram(m, c, address, t)
    if lookahead != 0 or model.HARDWARE == 1:
        ppu.advance(m, c, t + lookahead)
        if is_vram_locked(c):
            return 0xFF
    if model.COLOR:
        return row.load(c, banks.row_offset(c, address))
    return row.load(c, address)


@wp.func
def read_dma(m: wp.ref[Machine], c: wp.ref[Cpu], t: int) -> int:
    """DMA; PyBoy also updates the LCD."""
    ppu.advance(m, c, t)
    return c.dma_source


@wp.func
@reads(registers.OF_DMG)
def read_register(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """FF00-FF4B."""


@wp.func
def read_io(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """FF00-FF7F."""
    if model.COLOR:
        if address >= hw.KEY0:
            return color_registers.read(c, address, t)
    return read_register(m, c, address, t, lookahead)
