"""The reasons why a lane stops: what the common path cannot finish by itself. slow_path.act does it."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import Fast, Turn
from gbxcule_puffer.emulator.hw import areas, model
from gbxcule_puffer.emulator.hw.lcd import timing
from gbxcule_puffer.emulator.state import Cpu

PREPARE = 1  # an instruction with a KIND, before the common path executes it
SHORT_LOOP = 2  # a loop begins that adds or multiplies
LOOP = 3  # another loop that can be skipped
AFTER_EI = 4  # the instruction after EI
EI = 5
EVENT = 6  # an event is due: the interpreter's, as the next two
OVERRUN = 7  # EI takes effect, or a batch goes on although a register was written
INTERPRET = 8  # a RARE instruction
LCD_READ = 9  # LCDC or STAT is read; from here on by address
FREE_VRAM = 10  # VRAM is accessed that is not locked
IO = 11  # an access of one byte that io_fast_path.py may know
ACCESS = 12  # any other access that is not to plain memory

READ_AHEAD, WRITE_AHEAD = ds.READ | ds.LOOKAHEAD, ds.WRITE | ds.LOOKAHEAD
ALL_OF_ACCESS = ds.READ | ds.WRITE | ds.WORD | ds.LOOKAHEAD | ds.RARE
WRITABLE_VRAM = areas.VRAM + ds.WRITE.bit_length() - 1  # a bit of Fast.plain
LOCKED_T = 13  # before mode 3, from an instruction's begin, at double speed; at single speed 8


@wp.func
def sort(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """The reason of a lane that needs attention, by the first test that holds: what is frequent and needs no visit, if
    no event is due; then what the interpreter has to do; then the rest."""
    if r.now < r.wake:
        if kind_to_prepare(r, i) != 0:
            return PREPARE
        if is_lcd_read(c, i):
            return LCD_READ
        if is_short_loop(i):
            return SHORT_LOOP
        if (i.address & 0xE000) == hw.VRAM and i.special != 0:
            if is_free_vram(c, r, i) != 0:
                return FREE_VRAM
        elif is_io(c, r, i):
            return IO
    if r.now >= c.next_event:
        return EVENT
    if c.ei_delay != 0 and i.special == 0 and (i.d3 & ds.RARE) == 0:
        return AFTER_EI
    if c.ei_delay != 0 or c.overrun != 0:
        return OVERRUN
    if model.COLOR:
        if timing.is_late(c):
            return INTERPRET
    if (i.d3 & ds.RARE) != 0 and (i.d2 & (ds.LOOP | ds.WAIT)) == 0:
        return wp.where((i.d2 & ds.EI) != 0 and can_enable(c, r, i), EI, INTERPRET)
    return wp.where(i.special != 0, ACCESS, LOOP)


@wp.func
def kind_to_prepare(r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """The KIND of an instruction for slow_path.prepare, 0 for others."""
    marks = r.d2 & (ds.WAIT | ds.LOOP)
    kind = wp.where(
        marks == 0, 7 - ((r.d0 >> ds.KIND.shift) & ds.KIND.most), wp.where(marks == ds.WAIT, ds.KIND_HOOK, 0)
    )
    is_prepared = i.special == 0 and (r.d3 & ds.RARE) != 0 and (r.d2 & ds.EI) == 0
    return wp.where(is_prepared, kind, 0)


@wp.func
def is_lcd_read(c: wp.ref[Cpu], i: wp.ref[Turn]) -> bool:
    """True where the instruction reads LCDC or STAT, and that without a visit."""
    is_read = (i.d3 & ALL_OF_ACCESS) == ds.READ
    return is_read and (i.address == hw.LCDC or i.address == hw.STAT) and c.dma_active == 0


@wp.func
def is_short_loop(i: wp.ref[Turn]) -> bool:
    """True where a loop begins that adds or multiplies."""
    return (i.d2 & (ds.LOOP | ds.WAIT)) == ds.LOOP and (i.d3 & (ds.READ | ds.WRITE)) == 0


@wp.func
def is_free_vram(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """1 for an access of one byte to VRAM, with lookahead, that is not locked where the LCD is settled: the common path
    has all that it takes. Not for a write while a line may have to be drawn before."""
    access = i.d3 & ALL_OF_ACCESS
    is_free = int(access == READ_AHEAD) | (int(access == WRITE_AHEAD) & (r.plain >> WRITABLE_VRAM))
    is_free = is_free & int((c.stat & hw.STAT_MODE) != 3) & int(r.now + i.t_cycles < wp.min(c.lcd_target, r.wake))
    is_free = is_free & int((c.stat_mode_hidden | c.dma_active) == 0)
    if model.COLOR:  # mode 2 locks at its end, for dots that are twice as many T-cycles at double speed
        is_free = is_free & int(c.lcd_wrapped == 0) & int(r.now + LOCKED_T < c.lcd_target)
    return is_free


@wp.func
def is_io(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True for an access of one byte that is over before anything else happens, with no OAM DMA and no reload of TIMA
    under way."""
    access = i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.RARE)
    is_byte = access == ds.READ or access == ds.WRITE
    return is_byte and r.now + i.t_cycles < r.wake and (c.dma_active | c.tima_reload) == 0


@wp.func
def can_enable(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True where an EI that begins now ends the batch, and nothing else does before it is over."""
    return c.dma_active == 0 and c.settle_from <= r.now and r.now + i.t_cycles < c.next_event
