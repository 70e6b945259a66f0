"""Skipping many rounds of a loop at once: registers, memory, flags and time become what the loop itself would leave.

A skip stops before the loop's last round, before the next event, and before a pointer leaves its 4 KiB of plain memory.
So the game cannot notice it. The caller knows that the loop of an `entry` (table.py) begins at PC, and that
c.next_event is not due. Both kernels skip on packed registers.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import areas, counters, intrinsics, model, row
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.loops import packed, table
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu, Machine

STACK_BYTES = 2 * table.MOST_ON_STACK
ROUND = table.T_CYCLES.mask | table.INSTRUCTIONS.mask | table.JUMP.mask
DELAY_ROUND = table.round_of(16, 2, 12)  # `dec r / jr nz`
# A multiplication's round, its additional time if it adds, and its jump
PRODUCT_T_CYCLES, ADDITION_T_CYCLES, PRODUCT_INSTRUCTIONS, JUMP_T_CYCLES = 52, 4, 6, 12
NOT_TAKEN_T_CYCLES = 4  # a jump that is not taken is shorter by this


@wp.func
def kind_of(entry: int) -> int:
    """The kind of an entry's loop."""
    return (entry >> table.KIND.shift) & table.KIND.most


@wp.func
def counter_of(entry: int) -> int:
    """The counter of a loop that copies, fills, adds or multiplies."""
    return (entry >> table.COUNTER.shift) & table.COUNTER.most


@wp.func
def has_scanned_address(pc: int, index: int) -> bool:
    """True if the code at an index of the ROM has the address at which its loops were found, so that an absolute jump
    leads there."""
    return (pc >= hw.ROM_BANK_SIZE) == (index >= hw.ROM_BANK_SIZE)


@wp.func
def pass_time(c: wp.ref[Cpu], r: wp.ref[Registers], t_cycles: int, instructions: int, jump: int):
    """Advance the time over rounds that were skipped; jump: T-cycles of the last instruction."""
    r.now = r.now + t_cycles
    r.previous = r.now - jump
    c.executed = c.executed + instructions
    c.skipped = c.skipped + instructions


@wp.func
def passed(c: wp.ref[Cpu], r: wp.ref[Registers], rounds: int, entry: int):
    """Advance the time over `rounds` rounds of a loop."""
    t_cycles = rounds * (entry & table.T_CYCLES.most)
    instructions = rounds * ((entry >> table.INSTRUCTIONS.shift) & table.INSTRUCTIONS.most)
    pass_time(c, r, t_cycles, instructions, (entry >> table.JUMP.shift) & table.JUMP.most)


@wp.func
def rounds_left(r: wp.ref[Registers], counter: int) -> int:
    """The number of rounds until the counter is 0."""
    left = 0
    if counter >= table.WIDE_BC:
        left = ((packed.pair(r, counter - table.WIDE_BC) - 1) & 0xFFFF) + 1
    elif counter == table.INC_C:
        left = 0x100 - (r.lo & 0xFF)
    else:
        left = ((packed.byte(r, counter) - 1) & 0xFF) + 1
    return left


@wp.func
def count(r: wp.ref[Registers], counter: int, rounds: int):
    """Set the counter and its flags as after `rounds` rounds."""
    if counter >= table.WIDE_BC:
        value = (packed.pair(r, counter - table.WIDE_BC) - rounds) & 0xFFFF
        packed.set_pair(r, counter - table.WIDE_BC, value)
        packed.set_a(r, (value >> 8) | (value & 0xFF))
        r.flags = packed.ONE | packed.NZ
    else:
        is_inc = counter == table.INC_C
        number = wp.where(is_inc, 1, counter)
        value = (packed.byte(r, number) + wp.where(is_inc, rounds, -rounds)) & 0xFF
        packed.set_byte(r, number, value)
        half = wp.where((value & 0x0F) == wp.where(is_inc, 0, 0x0F), packed.H, 0)
        flags = packed.ONE | half | wp.where(is_inc, 0, packed.N) | wp.where(value != 0, packed.NZ, 0)
        r.flags = (r.flags & packed.C) | flags


@wp.func
def may_call(c: wp.ref[Cpu], sp: int) -> bool:
    """True if the bytes below SP are memory, a write to P1 ends no batch, and bank 0 is at 0000."""
    low = sp - STACK_BYTES
    in_row = (low >= hw.WRAM and sp <= hw.ECHO) or (low >= hw.HRAM and sp <= hw.IE)
    if model.COLOR:
        in_row = in_row and banks.is_unshifted(c, low, sp)
    return in_row and c.tima_reload == 0 and c.overrun == 0 and c.rom_low == 0


@wp.func
def nest(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Registers], number: int, counter: int):
    """Skip rounds of the loop around a delay, if the delay begins."""
    index = table.FIRST_NEST + 2 * (number - 1)
    first = m.waits[index]
    second = m.waits[index + 1]
    pair = (first >> table.NEST_PAIR.shift) & table.NEST_PAIR.most
    t_cycles = first & table.NEST_T_CYCLES.most
    rounds = wp.min(packed.pair(r, pair) - 1, (c.next_event - 1 - r.now) // t_cycles)
    if rounds > 0 and packed.byte(r, counter) == second >> table.NEST_START.shift:
        count(r, table.WIDE_BC + pair, rounds)
        instructions = rounds * (second & table.NEST_INSTRUCTIONS.most)
        pass_time(c, r, rounds * t_cycles, instructions, first >> table.NEST_LAST.shift)


@wp.func
def delay(c: wp.ref[Cpu], r: wp.ref[Registers], entry: int, to_end: bool):
    """Skip rounds of a delay, including the pairs that it pushes. to_end: a `dec r / jr nz` also to its end, with PC
    after it."""
    counter = kind_of(entry)
    pushed = (entry >> table.PUSHED.shift) & table.PUSHED.most
    t_cycles = entry & table.T_CYCLES.most
    room = c.next_event - 1 - r.now
    left = rounds_left(r, counter)
    rounds = left - 1
    ends = to_end and (entry & ROUND) == DELAY_ROUND and left * t_cycles <= room
    if ends:
        rounds = left
    elif rounds * t_cycles > room:
        rounds = room // t_cycles
    if rounds > 0 and (pushed == 0 or may_call(c, r.sp)):
        count(r, counter, rounds - wp.where(pushed != 0, 1, 0))
        if pushed != 0:
            value = packed.pair(r, pushed - 1)
            row.store(c, r.sp - 2, value)
            row.store(c, r.sp - 1, value >> 8)
            count(r, counter, 1)
        passed(c, r, rounds, entry)
        if ends:
            r.now = r.now - NOT_TAKEN_T_CYCLES
            r.pc = r.pc + 3


@wp.func
def poll(c: wp.ref[Cpu], r: wp.ref[Registers], entry: int):
    """Skip a poll, if one round has just shown that it changes nothing: then all rounds until the next event are like
    it.

    The length of that round shows that it was one round of the loop and nothing else. A path that leaves the loop and
    comes back takes longer, unless by a `jp hl`, which changes nothing either. The other rounds would write the same
    values to the stack and to P1.
    """
    f = r.flags & (packed.H | packed.N | packed.C | packed.NZ)
    is_same = c.poll_pc == r.pc and c.poll_f == f and c.poll_low == r.lo and c.poll_high == r.hi
    t_cycles = entry & table.T_CYCLES.most
    if is_same and c.poll_event == c.next_event and r.now - c.poll_now == t_cycles:
        rounds = (c.next_event - 1 - r.now) // t_cycles
        if rounds > 0:
            passed(c, r, rounds, entry)
    c.poll_pc = r.pc
    c.poll_f = f
    c.poll_low = r.lo
    c.poll_high = r.hi
    c.poll_event = c.next_event
    c.poll_now = r.now


@wp.func
def wait(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Registers], entry: int, to_end: bool):
    """Skip rounds of a loop that only waits; to_end: as in `delay`."""
    kind = kind_of(entry)
    if kind == table.POLL or kind == table.POLL_WITH_CALLS:
        if kind == table.POLL or may_call(c, r.sp):
            poll(c, r, entry)
    else:
        number = (entry >> table.NEST.shift) & table.NEST.most
        if number != 0:
            nest(m, c, r, number, kind)
        delay(c, r, entry, to_end)


@wp.func
def add(c: wp.ref[Cpu], r: wp.ref[Registers], entry: int) -> int:
    """Skip rounds of `add hl,rr`; returns their number."""
    kind = kind_of(entry)
    counter = counter_of(entry)
    rounds = wp.min(rounds_left(r, counter) - 1, (c.next_event - 1 - r.now) // (entry & table.T_CYCLES.most))
    if rounds > 0:
        addend = packed.pair(r, wp.where(kind == table.ADD_BC, 0, 1))
        hl = ((r.hi & 0xFFFF) + addend * (rounds - 1)) & 0xFFFF  # before the last addition
        if kind == table.ADD_HL:
            hl = ((r.hi & 0xFFFF) << wp.min(rounds - 1, 16)) & 0xFFFF
            addend = hl
        r.hi = (r.hi & 0xFF0000) | ((hl + addend) & 0xFFFF)
        r.flags = wp.where(hl + addend > 0xFFFF, packed.C, 0)
        count(r, counter, rounds)
        passed(c, r, rounds, entry)
    return wp.max(rounds, 0)


@wp.func
def multiply(c: wp.ref[Cpu], r: wp.ref[Registers], to_end: bool) -> int:
    """Skip rounds of `sla e / rl d / jr nc,+1 / add hl,bc / add hl,hl / dec a / jr nz`; returns their number. Each is
    for a bit of DE, and takes longer if the bit is set; to_end: also the last one, with PC after it."""
    a = (r.hi >> 16) & 0xFF
    room = (c.next_event - 1 - r.now) // (PRODUCT_T_CYCLES + ADDITION_T_CYCLES)
    left = ((a - 1) & 0xFF) + wp.where(to_end, 1, 0)
    rounds = wp.min(wp.min(left, 16), room)
    if rounds > 0:
        de = (r.lo >> 16) & 0xFFFF
        bits = de >> (16 - rounds)
        additions = wp.bit_count(bits)
        # Before the last doubling: each round adds BC or nothing, and doubles
        hl = (wp.uint32(r.hi & 0xFFFF) << wp.uint32(rounds - 1)) + wp.uint32(r.lo & 0xFFFF) * wp.uint32(bits)
        r.lo = (r.lo & 0xFFFF) | ((de << rounds) << 16)
        r.hi = (r.hi & 0xFF0000) | (int(hl + hl) & 0xFFFF)
        r.flags = wp.where((hl & wp.uint32(0x8000)) != wp.uint32(0), packed.C, 0)
        count(r, table.COUNTER_A, rounds)
        t_cycles = PRODUCT_T_CYCLES * rounds + ADDITION_T_CYCLES * additions
        pass_time(c, r, t_cycles, PRODUCT_INSTRUCTIONS * rounds + additions, JUMP_T_CYCLES)
        if (r.hi >> 16) == 0:
            r.now = r.now - NOT_TAKEN_T_CYCLES
            r.pc = r.pc + 11
    return wp.max(rounds, 0)


@wp.func
def memory_at(c: wp.ref[Cpu], address: int) -> wp.uint64:
    """The address of a byte of plain RAM."""
    if model.COLOR:
        return c.row + wp.uint64(banks.row_offset(c, address))
    return c.row + wp.uint64(address)


@wp.func
def source_at(c: wp.ref[Cpu], address: int) -> wp.uint64:
    """The address of a byte of plain memory."""
    result = memory_at(c, address)
    if address < hw.VRAM:
        result = c.rom + wp.uint64(address + wp.where(address < hw.ROM_BANK_SIZE, c.rom_low, c.rom_high))
    return result


@wp.func
def copy(c: wp.ref[Cpu], r: wp.ref[Registers], kind: int, reads: int, writes: int, most: int) -> int:
    """Skip at most `most` rounds of a copy from HL to DE, or back; returns their number."""
    hl = r.hi & 0xFFFF
    de = (r.lo >> 16) & 0xFFFF
    source = wp.where(kind == table.COPY_FROM_HL, hl, de)
    target = wp.where(kind == table.COPY_FROM_HL, de, hl)
    rounds = wp.min(most, wp.min(areas.plain_run(reads, source), areas.plain_run(writes, target)))
    if rounds > 0:
        a = intrinsics.copy_bytes(source_at(c, source), memory_at(c, target), rounds)
        r.hi = ((hl + rounds) & 0xFFFF) | (a << 16)
        r.lo = (r.lo & 0xFFFF) | ((de + rounds) << 16)
    return rounds


@wp.func
def fill(c: wp.ref[Cpu], r: wp.ref[Registers], kind: int, writes: int, most: int) -> int:
    """Skip at most `most` rounds of a fill from HL; returns their number."""
    hl = r.hi & 0xFFFF
    stride = wp.where(kind == table.FILL_EVERY_4TH, 4, 1)
    rounds = wp.min(most, areas.plain_run(writes, hl))
    if stride == 4:  # `inc l` stays in its 256 bytes
        rounds = wp.min(rounds, (0xFF - (hl & 0xFF)) // 4)
    if rounds > 0:
        a = (r.hi >> 16) & 0xFF
        if kind == table.FILL_0:
            a = 0
            r.flags = r.flags & ~packed.C
        elif kind == table.FILL_D or kind == table.FILL_E:
            a = packed.byte(r, wp.where(kind == table.FILL_D, 2, 3))
        intrinsics.fill_bytes(memory_at(c, hl), a, rounds, stride)
        r.hi = ((hl + rounds * stride) & 0xFFFF) | (a << 16)
    return rounds


@wp.func
def move(c: wp.ref[Cpu], r: wp.ref[Registers], entry: int, reads: int, writes: int) -> int:
    """Skip rounds of a loop that copies or fills; returns their number. reads, writes: the areas that are plain
    memory."""
    kind = kind_of(entry)
    counter = counter_of(entry)
    rounds = wp.min(rounds_left(r, counter) - 1, (c.next_event - 1 - r.now) // (entry & table.T_CYCLES.most))
    if kind <= table.COPY_FROM_DE:
        rounds = copy(c, r, kind, reads, writes, rounds)
    else:
        rounds = fill(c, r, kind, writes, rounds)
    if rounds > 0:
        count(r, counter, rounds)
        passed(c, r, rounds, entry)
        counters.changed(c, -1, 0)
    return wp.max(rounds, 0)
