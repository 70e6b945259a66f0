"""The part of a Game Boy's state that its lane keeps in packed form: registers as words, banks, plain memory.

Also how a lane is left to the interpreter, and how it comes back.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import color, operations
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import Fast, Lane, Turn
from gbxcule_puffer.emulator.hw import areas, model
from gbxcule_puffer.emulator.hw.lcd import clock, timing
from gbxcule_puffer.emulator.loops import packed
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu, Machine

ASLEEP = wp.constant(2)  # Lane.running
AT_ONCE = wp.constant(-(1 << 30))
IDLE_1 = wp.constant(ds.idle_words()[1])
IDLE_3 = wp.constant(ds.idle_words()[3])
MOST_LEAD = wp.constant(16 * hw.LINE_T_CYCLES)
READ_WORD_SHIFT = wp.constant(ds.READ_WORD.bit_length() - 1)


@wp.func
def registers_of(r: wp.ref[Fast]) -> Registers:
    """Registers and time in packed form, to skip a loop or for the interpreter."""
    p = Registers()
    p.lo = r.lo
    p.hi = r.hi
    p.flags = r.flags
    p.sp = r.sp
    p.pc = r.pc
    p.now = r.now
    p.previous = r.previous
    return p


@wp.func
def set_registers(r: wp.ref[Fast], p: wp.ref[Registers]):
    """Take over registers and time from the packed form."""
    r.lo = p.lo
    r.hi = p.hi
    r.flags = p.flags
    r.sp = p.sp
    r.pc = p.pc
    r.now = p.now
    r.previous = p.previous


@wp.func
def map_rom(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Compute the table and memory offsets of the ROM bank at 4000."""
    r.rom_high = c.rom_high
    r.ram = r.row - wp.uint64(c.rom_high)
    bank = (c.rom_high >> 14) + 1
    r.table_high = wp.where(bank == 0, m.rom_banks, bank) * ds.BANK_STRIDE - hw.ROM_BANK_SIZE
    r.table_end = r.table_high + hw.VRAM


@wp.func
def map_memory(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Compute the offsets of the selected banks, and the memory that is plain until the next event."""
    map_rom(m, c, r)
    r.table_low = wp.where(c.rom_low == 0, 0, (m.rom_banks + 1) * ds.BANK_STRIDE)
    high = wp.where(c.dma_active == 0, 1 << areas.HIGH_RAM, 0)
    joypad = wp.where(c.dma_active == 0, 1 << areas.P1, 0)
    readable = areas.readable(m, c) | high
    writable = areas.writable(m, c) | high
    r.plain = ((readable | joypad) * ds.READ) | (writable * ds.WRITE) | (areas.unlocked(c) * ds.LOOKAHEAD)
    r.plain = r.plain | operations.rotate_right(readable, -READ_WORD_SHIFT)
    if model.COLOR:
        color.map_banks(c, r)


@wp.func
def from_cpu(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Take over registers and banks from the interpreter's struct."""
    p = packed.pack(c)
    set_registers(r, p)
    map_memory(m, c, r)
    r.wake = wp.where(c.ei_delay != 0 or c.overrun != 0, AT_ONCE, c.next_event)  # both are left to the interpreter
    if model.COLOR:
        r.wake = wp.where(timing.is_late(c), AT_ONCE, r.wake)  # so is this
    if model.DMG_SOUND:
        r.before = c.before
        r.source = -1


@wp.func(inline=False)
def begin_before(m: wp.ref[Machine], r: wp.ref[Fast], lane: wp.ref[Lane]) -> int:
    """The start of the instruction before the last one, as Cpu.before; in a group by its instructions."""
    begin = r.before
    if r.source >= 0:
        index = r.source
        group = operations.load_descriptor(lane.singles - wp.uint64(16 * (m.descriptors.shape[0] // 2)), index)
        begin = r.previous - 4 * ((group[2] >> ds.LEAD.shift) & ds.LEAD.most)
        end = int(begin)
        while end < r.previous:
            begin = end
            one = operations.load_descriptor(lane.singles, index)
            m_cycles = ((one[3] >> ds.TIME.shift) & ds.TIME.most) + operations.shift_right(one[3], 30)
            end = end + 4 * wp.max(m_cycles, 1)
            index = index + ((one[2] >> ds.LENGTH.shift) & ds.LENGTH.most)
    return begin


@wp.func
def idle(m: wp.ref[Machine], r: wp.ref[Fast]):
    """The lane stays at the table's last entry, an instruction without effect."""
    r.table_low = m.descriptors.shape[0] - 1 - hw.VRAM
    r.table_high = r.table_low
    r.table_end = r.table_high + hw.VRAM
    r.pc = hw.VRAM
    r.wake = hw.NEVER


@wp.func
def wait(r: wp.ref[Fast], i: wp.ref[Turn]):
    """Do nothing in this turn. In the next, the lane fetches at PC again."""
    i.d1 = IDLE_1
    i.d2 = 0
    i.d3 = IDLE_3
    i.begin = r.previous
    i.t_cycles = 0
    i.next_pc = r.pc
    i.sp = r.sp


@wp.func
def end_of_halt(c: wp.ref[Cpu]) -> int:
    """An estimate of the end of HALT: VBlank, the timer's overflow, or the next event. No result depends on it."""
    until = int(hw.NEVER)
    if (c.interrupt_enable & hw.INT_VBLANK) != 0 and (c.lcdc & hw.LCDC_ENABLE) != 0:
        until = clock.time_of_ly(c, hw.SCREEN_HEIGHT)
        until = until + wp.where(until <= c.now, model.dots(c, hw.FRAME_T_CYCLES), 0)
    if (c.interrupt_enable & hw.INT_TIMER) != 0:
        until = wp.min(until, c.timer_next)
    is_stat_used = (c.interrupt_enable & hw.INT_STAT) != 0 and (c.stat & 0x78) != 0
    return wp.where(is_stat_used or until == hw.NEVER or until < c.now, c.next_event, until)


@wp.func
def sleep(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], lane: wp.ref[Lane]):
    """Leave the lane to the interpreter. A lane that waits for an event wakes up once no lane of its warp is far behind
    that event. "Far" is half of the time since the previous event, at least 1 line and at most 16."""
    p = registers_of(r)
    packed.unpack(c, p)
    if model.DMG_SOUND:
        c.before = begin_before(m, r, lane)
    c.executed = c.executed + r.turns
    is_halt = (i.d2 & ds.HALT) != 0 and r.now < c.next_event
    has_waited = r.now >= c.next_event and r.now < lane.waited + hw.LINE_T_CYCLES
    lane.until = wp.where(is_halt, end_of_halt(c), wp.where(has_waited, r.now, 0))
    if lane.until != 0:
        lane.lead = wp.clamp((lane.until - lane.last) >> 1, hw.LINE_T_CYCLES, MOST_LEAD)
        lane.last = lane.until
    lane.running = ASLEEP
    idle(m, r)
    wait(r, i)


@wp.func
def time_reached(c: wp.ref[Cpu], r: wp.ref[Fast], lane: wp.ref[Lane]) -> int:
    """The time that a lane has reached in its step; in HALT, the time at which it continues."""
    t = wp.where(lane.running == ASLEEP, wp.max(c.now, lane.until), r.now)
    return wp.where(lane.running == 0, hw.NEVER, t)


@wp.func
def wake_up(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], lane: wp.ref[Lane], running: int):
    """Continue after the interpreter, or stay idle if the step is over."""
    c.executed = c.executed - r.turns
    lane.running = running
    from_cpu(m, c, r)
    if running == 0:
        c.executed = c.executed + r.turns
        idle(m, r)
