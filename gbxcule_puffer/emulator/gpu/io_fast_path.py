"""Frequent accesses that concern little: writes of P1, sound and ROM banks, reads of DIV. They have a way of their own.

What such a write changes is known beforehand, so nothing has to be worked out anew, as after slow_path.access.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import registers
from gbxcule_puffer.emulator.gpu import color, lane_state
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import Fast, Turn
from gbxcule_puffer.emulator.hw import joypad, model, timer
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.hw.color import registers as color_registers
from gbxcule_puffer.emulator.hw.lcd import drawing, lcd_registers, ppu
from gbxcule_puffer.emulator.register_code import is_one_of
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
@is_one_of(registers.addresses(registers.OF_PICTURE))
def is_for_picture(address: int) -> bool:
    """True for a register where only the picture shows a write."""


@wp.func
def is_quiet_register(c: wp.ref[Cpu], address: int) -> bool:
    """True for those while no line is drawn: then nothing else notices that they are written."""
    is_free = int(ppu.is_vram_unlocked(c)) & int(not drawing.is_drawing(c))
    return is_for_picture(address) and is_free != 0


@wp.func
def touch_color_device(m: wp.ref[Machine], c: wp.ref[Cpu], is_write: int, address: int, value: int, t: int) -> int:
    """`touch_device` of FF4C-FF7F on a Game Boy Color, but for what ends the batch, copies, or draws before."""
    found = int(-1)
    if is_write == 0:
        found = color_registers.read(c, address)
    elif address != hw.KEY1 and address != hw.HDMA5 and not color_registers.must_draw(c, address):
        color_registers.write(m, c, address, value, t, 0)
        found = 0
    return found


@wp.func(inline=False)
def touch_device(m: wp.ref[Machine], c: wp.ref[Cpu], is_write: int, address: int, value: int, t: int) -> int:
    """Writes of a ROM bank and of registers that nothing else notices, reads of DIV and of no register. The byte read,
    0 for a write, -1 for any other access."""
    if model.COLOR:
        if address > hw.WX and address < hw.HRAM:
            return touch_color_device(m, c, is_write, address, value, t)
    found = int(-1)
    if is_write != 0:
        if address > hw.WX and address < hw.HRAM:
            found = 0
        elif address < hw.VRAM:
            if mbc.only_selects_rom(m, address):
                mbc.write_register(m, c, address, value, t)
                found = 0
        elif is_quiet_register(c, address):
            lcd_registers.store(c, address, value)
            found = 0
    elif address == hw.DIV:
        found = timer.read(c, address, t)
    elif address > hw.WX and address < hw.HRAM:
        found = 0xFF
    return found


@wp.func
def touch(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """Do an access for which stops.is_io holds. 0 if it is not one of those that are done here."""
    value = i.x & 0xFF
    is_write = (i.d3 & ds.WRITE) != 0
    is_sound = i.address >= hw.NR10 and i.address < hw.WAVE_RAM_END
    found = int(0)
    if is_write and i.address == hw.P1:
        joypad.write(c, value)
    elif is_write and (i.address >> 13) == 1 and m.bank_mask != 0:
        mbc.select_rom_at_once(m, c, i.address, value)
    elif not (is_write and is_sound):
        found = touch_device(m, c, i.d3 & ds.WRITE, i.address, value, r.now + i.t_cycles - 8)
    if found >= 0:
        if is_write and i.address < hw.VRAM:
            lane_state.map_rom(m, c, r)
        if model.COLOR:
            color.map_banks(c, r)
        i.y = wp.where(is_write, i.y, found)
        i.d3 = i.d3 & ~ds.WRITE
    return int(found >= 0)
