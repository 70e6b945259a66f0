"""Frequent accesses with small effects: the data path does them at once, without a visit (gpu/slow_path.py).

The effects of a write to P1 or to a ROM bank register are known in advance, so nothing has to be recomputed.
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
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.register_code import is_one_of
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
@is_one_of(registers.addresses(registers.OF_PICTURE))
def is_for_picture(address: int) -> bool:
    """True for a register whose writes only the picture shows."""


@wp.func
def is_quiet_register(c: wp.ref[Cpu], address: int) -> bool:
    """True for such a register while no line is being drawn: nothing else notices the write."""
    is_free = int(ppu.is_vram_unlocked(c)) & int(not drawing.is_drawing(c))
    return is_for_picture(address) and is_free != 0


@wp.func
def is_spot(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True for an access of one byte that ends before anything else happens, without an OAM DMA or a reload of TIMA:
    `touch` may handle it."""
    access = i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.RARE)
    is_byte = access == ds.READ or access == ds.WRITE
    if model.SOUND:
        is_byte = is_byte and not words.is_exact(c)  # a write would end the batch
    return is_byte and r.now + i.t_cycles < r.wake and (c.dma_active | c.tima_reload) == 0


@wp.func
def is_light(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True for a write to P1, to a sound register of a muted env or, with most mappers, to the ROM bank register, that
    ends before anything else happens."""
    is_write = (i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.RARE)) == ds.WRITE
    is_light = i.address == hw.P1
    if model.SOUND:
        is_write = is_write and not words.is_exact(c)  # it would end the batch
    else:
        is_light = is_light or (i.address >= hw.NR10 and i.address < hw.WAVE_RAM_END)
    is_light = is_light or ((i.address >> 13) == 1 and m.bank_mask != 0)
    return is_light and is_write and r.now + i.t_cycles < r.wake and (c.dma_active | c.tima_reload) == 0


@wp.func
def touch_light(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """Do the write that `is_light` accepts."""
    if model.SOUND:
        words.note_bail(c, r.now)
    if i.address < hw.VRAM:
        mbc.select_rom_at_once(m, c, i.address, i.x & 0xFF)
        lane_state.map_rom(m, c, r)
    elif i.address == hw.P1:
        joypad.write(c, i.x & 0xFF)
    i.d3 = i.d3 & ~ds.WRITE


@wp.func
def touch_color(m: wp.ref[Machine], c: wp.ref[Cpu], is_write: int, address: int, value: int, t: int) -> int:
    """`touch` for FF4C-FF7F on a Game Boy Color. Not for a write that ends the batch, copies, or needs lines drawn
    first."""
    found = int(-1)
    if is_write == 0:
        found = color_registers.read(c, address, t)
    elif address != hw.KEY1 and address != hw.HDMA5 and not color_registers.must_draw(c, address):
        color_registers.write(m, c, address, value, t, 0)
        found = 0
    return found


@wp.func(inline=False)
def touch(m: wp.ref[Machine], c: wp.ref[Cpu], is_write: int, address: int, value: int, t: int) -> int:
    """Frequent accesses with small effects: writes to P1, to a ROM bank and to registers that nothing else notices,
    reads of DIV and of unused registers. Returns the byte read, 0 for a write, -1 if it needs a visit."""
    if model.COLOR:
        if address > hw.WX and address < hw.HRAM:
            return touch_color(m, c, is_write, address, value, t)
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
def end_touch(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], found: int):
    """After `touch`: give the instruction its byte, or mark it as written."""
    if model.SOUND:
        if (i.d3 & ds.WRITE) != 0 and (i.address < hw.VRAM or i.address <= hw.WX):
            words.note_bail(c, r.now)
    if (i.d3 & ds.WRITE) != 0 and i.address < hw.VRAM:
        lane_state.map_rom(m, c, r)
    if model.COLOR:
        color.map_banks(c, r)
    i.y = wp.where((i.d3 & ds.WRITE) != 0, i.y, found)
    i.d3 = i.d3 & ~ds.WRITE
