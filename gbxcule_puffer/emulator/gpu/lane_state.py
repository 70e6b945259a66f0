"""The part of a Game Boy's state that its lane keeps in a form of its own: registers as words, banks, plain memory.

And how the lane is left to the interpreter, and comes back.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import wait_loops
from gbxcule_puffer.emulator.gpu import areas, color, operations
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import FLAG_NZ, FLAG_ONE, Fast, Lane, Turn
from gbxcule_puffer.emulator.hw import intrinsics, model
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu, timing
from gbxcule_puffer.emulator.state import Cpu, Machine

ASLEEP = wp.constant(2)  # Lane.running
AT_ONCE = wp.constant(-(1 << 30))
IDLE_1 = wp.constant(ds.idle_words()[1])
IDLE_3 = wp.constant(ds.idle_words()[3])
MOST_LEAD = wp.constant(16 * hw.LINE_T_CYCLES)
BANK_STRIDE = wp.constant(ds.BANK_STRIDE)
# Sets of areas
ROM = wp.constant(1 << areas.ROM_LOW | 1 << areas.ROM_HIGH)
HIGH_ROM = wp.constant(1 << areas.ROM_HIGH)
VRAM = wp.constant(1 << areas.VRAM)
CART_RAM = wp.constant(1 << areas.CART_RAM)
WRAM = wp.constant(1 << areas.WRAM)
P1 = wp.constant(1 << areas.P1)
HIGH_RAM = wp.constant(1 << areas.HIGH_RAM)
ALL = wp.constant((1 << areas.OTHER) - 1)
READ_WORD_SHIFT = wp.constant(ds.READ_WORD.bit_length() - 1)


@wp.func
def pack_flags(f: int) -> int:
    """The register F as a flag word."""
    nonzero = wp.where((f & hw.FLAG_Z) == 0, FLAG_NZ, 0)
    return nonzero | ((f & 0x60) << 14) | ((f & 0x10) << 19) | FLAG_ONE


@wp.func
def pack_registers(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """A to L, flags and time from the interpreter's struct."""
    r.lo = c.c | (c.b << 8) | (c.e << 16) | (c.d << 24)
    r.hi = c.l | (c.h << 8) | (c.a << 16)
    r.flags = pack_flags(c.f)
    r.now = c.now
    r.previous = c.previous


@wp.func
def to_cpu(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Registers into the interpreter's struct."""
    c.c = r.lo & 0xFF
    c.b = (r.lo >> 8) & 0xFF
    c.e = (r.lo >> 16) & 0xFF
    c.d = (r.lo >> 24) & 0xFF
    c.l = r.hi & 0xFF
    c.h = (r.hi >> 8) & 0xFF
    c.a = (r.hi >> 16) & 0xFF
    c.f = intrinsics.flags_byte(r.flags)
    c.sp = r.sp
    c.pc = r.pc
    c.now = r.now
    c.previous = r.previous


@wp.func
def map_rom(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Work out which ROM bank is seen at 4000."""
    r.rom_high = c.rom_high
    r.ram = r.row - wp.uint64(c.rom_high)
    bank = (c.rom_high >> 14) + 1
    r.table_high = wp.where(bank == 0, m.rom_banks, bank) * BANK_STRIDE - hw.ROM_BANK_SIZE
    r.table_end = r.table_high + hw.VRAM


@wp.func
def map_memory(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Work out which banks are in place, and what memory is plain until the next event."""
    map_rom(m, c, r)
    r.table_low = wp.where(c.rom_low == 0, 0, (m.rom_banks + 1) * BANK_STRIDE)
    is_bank0 = c.ram_enabled == 1 and c.ram_offset == hw.CART_RAM - hw.ROW_BASE
    ram = wp.where(is_bank0 and m.has_plain_ram == 1, CART_RAM, 0) | WRAM
    rom = wp.where(c.rom_low == 0, ROM, HIGH_ROM)  # the data path reads 0000-3FFF from bank 0
    high = wp.where(c.dma_active == 0, HIGH_RAM, 0)
    joypad = wp.where(c.dma_active == 0, P1, 0)
    readable = rom | VRAM | ram | high
    writable = wp.where(drawing.is_drawing(c), 0, VRAM) | ram | high
    unlocked = wp.where(ppu.is_vram_unlocked(c), ALL, ALL & ~VRAM)
    r.plain = ((readable | joypad) * ds.READ) | (writable * ds.WRITE) | (unlocked * ds.LOOKAHEAD)
    r.plain = r.plain | operations.rotate_right(readable, -READ_WORD_SHIFT)
    if model.COLOR:
        color.map_banks(c, r)


@wp.func
def from_cpu(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Registers from the interpreter's struct."""
    pack_registers(c, r)
    r.sp = c.sp
    r.pc = c.pc
    map_memory(m, c, r)
    r.wake = wp.where(c.ei_delay != 0 or c.overrun != 0, AT_ONCE, c.next_event)  # both are the interpreter's
    if model.COLOR:
        r.wake = wp.where(timing.is_late(c), AT_ONCE, r.wake)  # so is this


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
    """Let the lane do nothing in this turn; then it looks at PC again."""
    i.d1 = IDLE_1
    i.d2 = 0
    i.d3 = IDLE_3
    i.begin = r.previous
    i.t_cycles = 0
    i.next_pc = r.pc
    i.sp = r.sp


@wp.func
def sleep(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], lane: wp.ref[Lane]):
    """Leave the lane to the interpreter. One that waits for an event is woken up once no lane of its warp is far behind
    that event: by more than half of the time since the event before, at least 1 line and at most 16."""
    to_cpu(c, r)
    c.executed = c.executed + r.turns
    is_halt = (i.d2 & ds.HALT) != 0 and r.now < c.next_event
    has_waited = r.now >= c.next_event and r.now < lane.waited + hw.LINE_T_CYCLES
    lane.until = wp.where(is_halt, wait_loops.end_of_halt(c), wp.where(has_waited, r.now, 0))
    if lane.until != 0:
        lane.lead = wp.clamp((lane.until - lane.last) >> 1, hw.LINE_T_CYCLES, MOST_LEAD)
        lane.last = lane.until
    lane.running = ASLEEP
    idle(m, r)
    wait(r, i)


@wp.func
def place_in_time(c: wp.ref[Cpu], r: wp.ref[Fast], lane: wp.ref[Lane]) -> int:
    """The time up to which a lane is in its step; at HALT, until when nothing happens."""
    t = wp.where(lane.running == ASLEEP, wp.max(c.now, lane.until), r.now)
    return wp.where(lane.running == 0, hw.NEVER, t)


@wp.func
def wake_up(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], lane: wp.ref[Lane], running: int):
    """Go on after the interpreter, or stay idle if the step is over."""
    c.executed = c.executed - r.turns
    lane.running = running
    from_cpu(m, c, r)
    if running == 0:
        c.executed = c.executed + r.turns
        idle(m, r)
