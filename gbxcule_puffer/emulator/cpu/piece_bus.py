"""The memory accesses of a piece of native code: plain reads and writes, which only change memory.

A piece works on a copy `r` of the hot registers, which the compiler keeps in machine registers. It asks before each
instruction whether that one's accesses are plain; where one is not, the piece ends before the instruction.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.hw.lcd import drawing
from gbxcule_puffer.emulator.state import Cpu, Machine

RAN = wp.constant(-1)  # in c.code: a piece has run, and there is no instruction to execute


@wp.func(inline=True)
def can_start(c: wp.ref[Cpu], pc: int, bound: int) -> bool:
    """True where a piece at `pc` may run: no event is due while it runs, whose last instruction begins at most `bound`
    T-cycles after it."""
    return c.pc == pc and c.now + bound < c.next_event


@wp.func(inline=True)
def enter(c: wp.ref[Cpu], r: wp.ref[Cpu]):
    """Copy the registers that a piece works on."""
    r.a = c.a
    r.f = c.f
    r.b = c.b
    r.c = c.c
    r.d = c.d
    r.e = c.e
    r.h = c.h
    r.l = c.l
    r.sp = c.sp
    r.pc = c.pc
    r.ime = c.ime
    r.ei_delay = c.ei_delay
    r.now = c.now
    r.previous = c.previous
    r.executed = c.executed
    r.next_event = c.next_event
    r.rom_low = c.rom_low
    r.rom_high = c.rom_high
    r.row = c.row
    r.rom = c.rom
    r.drawing = int(drawing.is_drawing(c))
    if model.COLOR:
        r.wram_shift = c.wram_shift
        r.vram_shift = c.vram_shift


@wp.func(inline=True)
def leave(c: wp.ref[Cpu], r: wp.ref[Cpu]):
    """Copy them back; a piece whose first instruction was not plain leaves it to the interpreter."""
    c.code = wp.where(r.executed != c.executed, RAN, c.code)
    c.a = r.a
    c.f = r.f
    c.b = r.b
    c.c = r.c
    c.d = r.d
    c.e = r.e
    c.h = r.h
    c.l = r.l
    c.sp = r.sp
    c.pc = r.pc
    c.ime = r.ime
    c.now = r.now
    c.previous = r.previous
    c.executed = r.executed


@wp.func(inline=True)
def is_ram(address: int) -> bool:
    """WRAM or HRAM."""
    return (address >= hw.WRAM and address < hw.ECHO) or (address >= hw.HRAM and address < hw.IE)


@wp.func(inline=True)
def can_read(r: wp.ref[Cpu], address: int) -> bool:
    """True where a read without lookahead is plain: ROM, VRAM, WRAM, HRAM."""
    return address < hw.CART_RAM or is_ram(address)


@wp.func(inline=True)
def can_read_ahead(r: wp.ref[Cpu], address: int) -> bool:
    """True where a read with lookahead is plain: ROM, WRAM, HRAM."""
    return address < hw.VRAM or is_ram(address)


@wp.func(inline=True)
def can_write(r: wp.ref[Cpu], address: int) -> bool:
    """True where a write without lookahead is plain: WRAM, HRAM, and VRAM where no line waits to be drawn."""
    return is_ram(address) or (address >= hw.VRAM and address < hw.CART_RAM and r.drawing == 0)


@wp.func(inline=True)
def can_write_ahead(r: wp.ref[Cpu], address: int) -> bool:
    """True where a write with lookahead is plain: WRAM, HRAM."""
    return is_ram(address)


@wp.func(inline=True)
def read(m: wp.ref[Machine], r: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at an address that can be read."""
    if address < hw.VRAM:
        return intrinsics.load_byte(r.rom, wp.where(address < hw.ROM_BANK_SIZE, r.rom_low, r.rom_high) + address)
    if model.COLOR:
        return row.load(r, banks.row_offset(r, address))
    return row.load(r, address)


@wp.func(inline=True)
def write(m: wp.ref[Machine], r: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """Store to an address that can be written."""
    if model.COLOR:
        row.store(r, banks.row_offset(r, address), value)
    else:
        row.store(r, address, value)
