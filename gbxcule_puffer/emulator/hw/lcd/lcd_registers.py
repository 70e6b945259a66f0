"""The LCD's registers FF40h to FF4Bh other than DMA, read and written at the time of the access.

An access first brings the LCD up to date (ppu.py). Lines that a write would change are drawn before it. Pan Docs, "LCD
Control", "LCD Status Registers", "LCD Position and Scrolling" and "Palettes".
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import registers
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu
from gbxcule_puffer.emulator.register_code import reads, writes
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def write_lcdc(c: wp.ref[Cpu], value: int, t: int):
    """LCDC; switching the LCD off or on ends the frame at the end of the instruction."""
    was_on = c.lcdc & hw.LCDC_ENABLE
    if model.COLOR:
        if c.color_mode != 0 and (c.lcdc & ~value & hw.LCDC_WINDOW_ENABLE) != 0:
            c.window_hit = 0
    c.lcdc = value
    if was_on != 0 and (value & hw.LCDC_ENABLE) == 0:
        c.lcd_zero = t
        c.lcd_target = t
        if model.COLOR:
            c.lcd_wrapped = 0
        requested = c.interrupt_flag
        ppu.set_mode(c, 0)
        c.interrupt_flag = requested  # the STAT line may rise, but PyBoy requests nothing
        c.ly = 0
    elif was_on == 0 and (value & hw.LCDC_ENABLE) != 0:
        c.lcd_target = t
        c.lcd_first_frame = 1
        c.lcd_restart = 1
        if c.lyc_written_off != 0:
            if model.COLOR:
                c.stat_mode_hidden = wp.where(c.color_mode != 0, c.stat_mode_hidden, 1)
            else:
                c.stat_mode_hidden = 1
            c.lyc_written_off = 0
        if (c.stat & hw.STAT_LYC_INT) != 0:
            ppu.compare_lyc(c)


@wp.func(inline=False)
@reads(registers.OF_LCD, "lcd")
def register(c: wp.ref[Cpu], address: int) -> int:
    """An LCD register other than DMA, as after the LCD's last change."""


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int) -> int:
    """An LCD register other than DMA at time `t`."""
    ppu.advance(m, c, t)
    return value(c, address)


@wp.func
def value(c: wp.ref[Cpu], address: int) -> int:
    """The same, if the LCD is up to date."""
    value = wp.where(address == hw.STAT, c.stat, wp.where(address == hw.LY, c.ly, c.lcdc))
    if address != hw.STAT and address != hw.LY and address != hw.LCDC:
        value = register(c, address)
    if address == hw.STAT and c.stat_mode_hidden != 0:
        c.stat_mode_hidden = 0
        value = value & ~hw.STAT_MODE
    return value


@wp.func
def write_stat(c: wp.ref[Cpu], value: int):
    """STAT, bits 6-3: which sources raise its interrupt line."""
    if model.HARDWARE == 1 and (c.lcdc & hw.LCDC_ENABLE) != 0:  # for a moment all sources are enabled
        c.stat = c.stat | 0x58 | wp.where((c.stat & hw.STAT_MODE) == 2, 0, hw.STAT_MODE2_INT)
        ppu.update_stat_line(c)
    c.stat = (c.stat & 0x87) | (value & 0x78)
    ppu.update_stat_line(c)


@wp.func
def write_lyc(c: wp.ref[Cpu], value: int):
    """LYC."""
    c.lyc = value
    if (c.lcdc & hw.LCDC_ENABLE) != 0:
        ppu.compare_lyc(c)
    else:
        c.lyc_written_off = 1


@wp.func(inline=False)
@writes(registers.OF_PICTURE, "lcd")
def store(c: wp.ref[Cpu], address: int, value: int):
    """SCY, SCX and BGP to WX: only drawing uses them."""


@wp.func
@writes(registers.OTHERS_OF_LCD, "lcd", otherwise="store(c, address, value)")
def set_register(c: wp.ref[Cpu], address: int, value: int, t: int):
    """An LCD register other than DMA becomes `value`; LY is read-only."""


@wp.func(inline=False)
def write(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """An LCD register other than DMA at time `t`."""
    ppu.bring_up(m, c, t)
    if c.render != 0:
        drawing.draw_pending(m, c)
    set_register(c, address, value, t)


@wp.func(inline=False)
def write_drawn(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """`write` when all finished lines are drawn."""
    ppu.advance(m, c, t)
    set_register(c, address, value, t)


@wp.func
def write_at(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, is_drawn: int):
    """`write`, or `write_drawn` if the constant `is_drawn` is 1."""
    if is_drawn == 0:
        write(m, c, address, value, t)
    else:
        write_drawn(m, c, address, value, t)
