"""The rare cases of the data path: an event, an instruction of the interpreter, an access that is not to plain memory.

A visit handles one lane. It leaves every case that it does not know to the interpreter, so both are exact by
construction: the lane falls asleep until the interpreter runs for all sleeping lanes together. gpu/datapath.py has the
rest of the loop.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import arithmetic
from gbxcule_puffer.emulator.gpu import color, datapath, lane_state, loops, operations, spots
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import Fast, Fixed, Lane, Turn
from gbxcule_puffer.emulator.hw import areas, bus, counters, interrupts, intrinsics, model
from gbxcule_puffer.emulator.hw.lcd import drawing, lcd_registers, ppu, timing
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.loops import packed, table
from gbxcule_puffer.emulator.state import Cpu, Machine

PUSH_AF = (7 - ds.KIND_PUSH_AF) << ds.KIND.shift
READ_AHEAD = wp.constant(ds.READ | ds.LOOKAHEAD)
WRITE_AHEAD = wp.constant(ds.WRITE | ds.LOOKAHEAD)
RARE_WRITE = wp.constant(ds.WRITE | ds.WRITE_WORD | ds.RARE)
WRITABLE_VRAM = wp.constant(areas.VRAM + ds.WRITE.bit_length() - 1)  # a bit of Fast.plain
LOCKED_T = wp.constant(13)  # from the start of an instruction to mode 3, at double speed; 8 at single speed
LATEST_READ_T = wp.constant(8)  # except for the stack, no instruction reads later than this after its start


@wp.func
def part(
    r: wp.ref[Fast], i: wp.ref[Turn], fixed: wp.ref[Fixed], lane: wp.ref[Lane], rom: wp.uint64, areas: wp.uint64
) -> bool:
    """Begin the turn again with only the first instruction of the group. Returns whether it needs attention."""
    datapath.fetch(r, lane.singles, r.index)
    datapath.begin_turn(r, i, fixed, rom, areas)
    i.special = datapath.special(fixed.plain, i.d3)
    return datapath.needs_attention(r, i, fixed)


@wp.func
def is_before_event(r: wp.ref[Fast]) -> bool:
    """True if no event is due for the lane, also while its wake is AT_ONCE, which is negative."""
    return wp.uint32(r.now) < wp.uint32(r.wake)


@wp.func
def kind_to_prepare(r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """The KIND of an instruction for `prepare`, 0 if the lane needs a visit."""
    marks = r.d2 & (ds.WAIT | ds.LOOP)
    kind = wp.where(
        marks == 0, 7 - ((r.d0 >> ds.KIND.shift) & ds.KIND.most), wp.where(marks == ds.WAIT, ds.KIND_HOOK, 0)
    )
    is_prepared = r.now < r.wake and i.special == 0 and (r.d3 & ds.RARE) != 0 and (r.d2 & ds.EI) == 0
    return wp.where(is_prepared, kind, 0)


@wp.func
def prepare(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], kind: int):
    """Do the part of an instruction of a KIND that the common path cannot do."""
    if kind == ds.KIND_HOOK:
        operations.count_one(m.hooks, loops.mark_at_pc(c, r) - table.FIRST_HOOK, c.env)
    elif kind == ds.KIND_POP_AF:
        r.hi = (r.hi & 0xFFFF) | ((i.y >> 8) << 16)
        r.flags = packed.pack_flags(i.y & 0xFF)
    elif kind == ds.KIND_IME:  # DI, RETI
        c.ime = wp.where((i.d3 & ds.JUMP) != 0, 1, 0)
        if c.ime != 0 and (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
            c.next_event = r.now
            r.wake = r.now
    elif kind == ds.KIND_CCF:
        r.flags = (r.flags & ~(ds.MASK_H | ds.MASK_N)) ^ ds.MASK_C
        i.d3 = i.d3 & ~ds.MASK_ALL
    else:  # DAA
        c.a = (r.hi >> 16) & 0xFF
        c.f = intrinsics.flags_byte(r.flags)
        arithmetic.decimal_adjust(c)
        i.x = c.a
        i.y = 0
        r.flags = packed.pack_flags(c.f)
        i.d3 = i.d3 & ~ds.MASK_ALL


@wp.func
def is_settled(c: wp.ref[Cpu], r: wp.ref[Fast]) -> bool:
    """True if reads of LCD registers neither need nor change the LCD's state: no change is due."""
    return c.stat_mode_hidden == 0 and c.dma_active == 0 and r.now < c.lcd_target - LATEST_READ_T


@wp.func
def glance(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], attention: bool) -> bool:
    """Handle PUSH AF, and reads of LCDC, STAT, LY and LYC where the LCD is settled; returns whether the lane still
    needs attention. Without branches, for all lanes of the warp at once."""
    access = i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.LOOKAHEAD | ds.RARE)
    is_before = int(i.begin < r.wake)
    is_read = is_before & int((i.address & 0xFFFA) == hw.LCDC) & int(access == ds.READ)
    is_read = is_read & int((c.stat_mode_hidden | c.dma_active) == 0) & int(i.begin < c.lcd_target - LATEST_READ_T)
    is_push = is_before & int((r.d0 & ds.KIND.mask) == PUSH_AF) & int(access == RARE_WRITE) & int(i.special == 0)
    even = wp.where((i.address & 4) != 0, c.ly, c.lcdc)
    odd = wp.where((i.address & 4) != 0, c.lyc, c.stat)
    i.y = wp.where(is_read != 0, wp.where((i.address & 1) != 0, odd, even), i.y)
    i.x = wp.where(is_push != 0, i.x | intrinsics.flags_byte(r.flags), i.x)
    return attention and (is_read | is_push) == 0


@wp.func
def is_lcd_read(c: wp.ref[Cpu], i: wp.ref[Turn]) -> bool:
    """True if the instruction reads LCDC or STAT in a way that needs no visit."""
    is_read = (i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.LOOKAHEAD | ds.RARE)) == ds.READ
    return is_read and (i.address == hw.LCDC or i.address == hw.STAT) and c.dma_active == 0


@wp.func(inline=False)
def read_lcd(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, now: int, previous: int, t: int) -> int:
    """LCDC or STAT at time `t`, for the instruction that begins `now`. Brings the LCD up to date."""
    c.now = now
    c.previous = previous
    ppu.bring_up(m, c, t)
    return lcd_registers.value(c, address)


@wp.func
def is_free_vram(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """1 for an access of one byte to VRAM with lookahead that is not locked while the LCD is settled: the common path
    can do it. 0 for a write while a line may have to be drawn first."""
    access = i.d3 & (ds.READ | ds.WRITE | ds.WORD | ds.LOOKAHEAD | ds.RARE)
    is_free = int(access == READ_AHEAD) | (int(access == WRITE_AHEAD) & (r.plain >> WRITABLE_VRAM))
    is_free = is_free & int((c.stat & hw.STAT_MODE) != 3) & int(r.now + i.t_cycles < wp.min(c.lcd_target, r.wake))
    is_free = is_free & int((c.stat_mode_hidden | c.dma_active) == 0)
    if model.COLOR:  # mode 2 locks at its end; its dots are twice as many T-cycles at double speed
        is_free = is_free & int(c.lcd_wrapped == 0) & int(r.now + LOCKED_T < c.lcd_target)
    return is_free


@wp.func
def is_short_loop(i: wp.ref[Turn]) -> bool:
    """True if a loop begins that adds or multiplies."""
    return (i.d2 & (ds.LOOP | ds.WAIT)) == ds.LOOP and (i.d3 & (ds.READ | ds.WRITE)) == 0


@wp.func
def do_at_once(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """Do frequent work that needs no visit, before the next event: reads of LCDC and STAT, short loops, accesses to
    VRAM, and those of spots.py. 0 if it needs a visit."""
    done = int(1)
    t = r.now + i.t_cycles - 8
    if spots.is_light(m, c, r, i):
        spots.touch_light(m, c, r, i)
    elif is_lcd_read(c, i):
        i.y = read_lcd(m, c, i.address, r.now, r.previous, t)
        loops.skip_stat_poll(c, r, i)
    elif is_short_loop(i):
        loops.skip_arithmetic(m, c, r, i)
    elif (i.address & 0xE000) == hw.VRAM and i.special != 0:
        done = is_free_vram(c, r, i)
    else:
        found = int(-1)
        if spots.is_spot(c, r, i):
            found = spots.touch(m, c, i.d3 & ds.WRITE, i.address, i.x & 0xFF, t)
        if found >= 0:
            spots.end_touch(m, c, r, i, found)
        else:
            done = 0
    return done


@wp.func
def end_batch(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """End the batch with this instruction and begin the next one. If an interrupt has to be dispatched or a block of
    VRAM DMA is due, leave that to the interpreter. No frame ends before c.next_event."""
    c.previous = r.now
    c.now = r.now + i.t_cycles
    if model.COLOR:
        interrupts.next_batch(m, c)
    else:
        interrupts.end_batch(m, c)
        if c.ime != 0 and c.ei_delay == 0 and (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
            c.next_event = c.now
        else:
            interrupts.begin_batch(m, c)
    r.wake = c.next_event


@wp.func
def may_write(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True if a visit may write the register, though that may end the batch. False if the write switches the LCD,
    starts an OAM DMA or a VRAM DMA, or something else happens before the instruction ends."""
    is_switch = i.address == hw.LCDC and ((c.lcdc ^ i.x) & hw.LCDC_ENABLE) != 0
    if model.COLOR:
        is_switch = is_switch or i.address == hw.HDMA5
    return r.now + i.t_cycles < c.next_event and i.address != hw.DMA and not is_switch


@wp.func
def access(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """Do an access of one byte that is not to plain memory, at its own time. 0 if the interpreter has to do it."""
    done = int(0)
    address = i.address
    kind = i.d3 & (ds.READ | ds.WRITE | ds.WORD)
    t = r.now + i.t_cycles - 8
    lookahead = wp.where((i.d3 & ds.LOOKAHEAD) != 0, 4, 0)
    c.now = r.now
    c.previous = r.previous
    is_left = c.dma_active != 0
    if model.COLOR:  # code that draws would cost the common path registers
        is_left = is_left or (kind == ds.WRITE and drawing.is_drawing(c))
    if model.SOUND:  # a write to a mapper may end the batch, too
        is_left = is_left or (kind == ds.WRITE and words.is_exact(c) and t + 8 >= c.next_event)
    if is_left:
        done = 0
    elif kind == ds.WRITE and c.tima_reload == 0 and (address < hw.IO or may_write(c, r, i)):
        value = i.x & 0xFF
        if model.COLOR:
            bus.write_drawn(m, c, address, value, t, lookahead)
        elif address >= hw.LCDC and address <= hw.WX and address != hw.DMA:  # with fewer calls than bus.write
            counters.changed(c, -1, value)
            lcd_registers.write(m, c, address, value, t)
            bus.end_write_io(c, address)
        else:
            bus.write(m, c, address, value, t, lookahead)
        if c.next_event == c.now:
            end_batch(m, c, r, i)
        lane_state.map_memory(m, c, r)
        i.d3 = i.d3 & ~ds.WRITE
        done = 1
    elif kind == ds.READ and address < hw.HRAM:
        if address >= hw.LCDC and address <= hw.WX and address != hw.DMA and lookahead == 0 and is_settled(c, r):
            i.y = lcd_registers.register(c, address)
            done = 1
        elif address == hw.LY and loops.skip_poll_of_ly(c, r, i) != 0:
            done = 1
        elif address >= hw.LCDC and address <= hw.WX and address != hw.DMA:
            i.y = read_lcd(m, c, address, r.now, r.previous, t + lookahead)
            done = 1
        else:
            done = 1
            if model.COLOR:
                done = color.read(m, c, i, t, lookahead)
            else:
                i.y = bus.read(m, c, address, t, lookahead)
    return done


@wp.func
def can_enable(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> bool:
    """True if an EI that begins now ends the batch, and nothing else does before EI ends."""
    return c.dma_active == 0 and c.settle_from <= r.now and r.now + i.t_cycles < c.next_event


@wp.func
def begin_enable(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """EI: end the batch; interrupts are enabled after the next instruction."""
    c.ei_delay = 1
    end_batch(m, c, r, i)
    r.wake = lane_state.AT_ONCE


@wp.func
def end_enable(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """The instruction after EI: a pending interrupt ends the batch after it."""
    c.ei_delay = 0
    c.ime = 1
    if (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
        c.next_event = r.now + i.t_cycles
        c.settle_from = c.next_event
    r.wake = c.next_event


@wp.func
def visit(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], lane: wp.ref[Lane]):
    """Handle a rare case of one lane."""
    is_loop = (i.d2 & (ds.LOOP | ds.WAIT)) != 0
    is_rare = (i.d3 & ds.RARE) != 0 and not is_loop
    is_ei = is_rare and (i.d2 & ds.EI) != 0
    if model.COLOR:
        is_ei = is_ei and not timing.is_late(c)
        is_rare = is_rare or timing.is_late(c)
    if model.DMG_SOUND:
        if (i.address & 0xFFF0) == hw.WAVE_RAM:
            c.before = lane_state.begin_before(m, r, lane)
    if c.ei_delay != 0 and r.now < c.next_event and i.special == 0 and (i.d3 & ds.RARE) == 0:
        end_enable(c, r, i)
    elif (
        r.now >= c.next_event
        or c.ei_delay != 0
        or c.overrun != 0
        or (is_rare and not is_ei)
        or (is_ei and not can_enable(c, r, i))
        or (i.special != 0 and access(m, c, r, i) == 0)
    ):
        lane_state.sleep(m, c, r, i, lane)
    elif is_loop:
        if (i.d2 & ds.WAIT) != 0:
            loops.skip_wait(m, c, r, i, lane)
        elif i.special == 0 and (i.d3 & (ds.READ | ds.WRITE)) != 0:
            loops.skip_move(m, c, r, i)
    elif is_ei:
        begin_enable(m, c, r, i)
