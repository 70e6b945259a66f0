"""Loops of the ROM that copy, fill, add or multiply, many iterations at once: registers, memory, flags and time as the
plain loop leaves them.

The interpreter's code (cpu/loop_skips.py) does the same with its own registers. A visit that goes through it takes so
long that these loops are slower with it.
descriptors.py marks a loop's first instruction. A skip stops before the loop's last iteration, before the next event
and before the pointers leave their 4 KiB of plain memory, so that nothing can tell.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import wait_loops, waits
from gbxcule_puffer.emulator.gpu import datapath, operations
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import FLAG_C, FLAG_H, FLAG_N, FLAG_NZ, FLAG_ONE, Fast
from gbxcule_puffer.emulator.hw import intrinsics, model
from gbxcule_puffer.emulator.hw.color import banks
from gbxcule_puffer.emulator.state import Cpu

LD_A_HL_INC = wp.constant(0x2A)
LD_HL_INC_A = wp.constant(0x22)
LD_A_DE = wp.constant(0x1A)
INC_L = wp.constant(0x2C)
ADD_HL_DE = wp.constant(0x19)
ADD_HL_HL = wp.constant(0x29)
PREFIX = wp.constant(0xCB)
ROUND_T_CYCLES, ADDITION_T_CYCLES, ROUND_INSTRUCTIONS = wp.constant(52), wp.constant(4), wp.constant(6)
DEC_A = wp.constant(0x3D)
DEC_B = wp.constant(0x05)
DEC_BC = wp.constant(0x0B)
DEC_D = wp.constant(0x15)
DEC_E = wp.constant(0x1D)
INC_C = wp.constant(0x0C)
INSTRUCTIONS_SHIFT = wp.constant(waits.INSTRUCTIONS_SHIFT)
JUMP_SHIFT = wp.constant(waits.JUMP_SHIFT)
KIND_SHIFT = wp.constant(waits.KIND_SHIFT)
DELAY_B = wp.constant(waits.DELAY_B)
DELAY_REGISTERS = wp.constant(0x6452301)  # places of b c d e h l a among the bytes of lo and hi
SHAPE = wp.constant((1 << waits.KIND_SHIFT) - 1)
SHORT_DELAY = wp.constant(16 | 2 << waits.INSTRUCTIONS_SHIFT | 12 << waits.JUMP_SHIFT)  # `dec r / jr nz`
PAGE = wp.constant(0x1000)


@wp.func
def room(r: wp.ref[Fast], area: int, access: int, address: int) -> int:
    """Bytes from `address` to the end of its 4 KiB, 0 if they are not plain, or are locked now and then."""
    plain = operations.rotate_right(r.plain, area)
    is_plain = int(datapath.special(plain, access | ds.LOOKAHEAD) == 0 and address < hw.ECHO)
    return is_plain * (PAGE - (address & (PAGE - 1)))


@wp.func
def place(c: wp.ref[Cpu], r: wp.ref[Fast], rom: wp.uint64, address: int) -> wp.uint64:
    """The address of a byte of plain memory."""
    result = r.row + wp.uint64(address)
    if model.COLOR:
        result = r.row + wp.uint64(banks.place(c, address))
    if address < hw.ROM_BANK_SIZE:
        result = rom + wp.uint64(c.rom_low + address)
    elif address < hw.VRAM:
        result = rom + wp.uint64(c.rom_high + address)
    return result


@wp.func
def skip_sum(c: wp.ref[Cpu], r: wp.ref[Fast], first: int, counter: int) -> int:
    """`add hl,rr / dec r / jr nz`: products and shifts."""
    shift = wp.where(counter == DEC_B, 8, 0)
    if counter == DEC_D:
        shift = 24
    elif counter == DEC_E:
        shift = 16
    value = wp.where(counter == DEC_A, r.hi >> 16, r.lo >> shift) & 0xFF
    count = wp.min((value - 1) & 0xFF, (c.next_event - 1 - r.now) // 24)
    if count > 0:
        addend = wp.where(first == ADD_HL_DE, r.lo >> 16, r.lo) & 0xFFFF
        hl = ((r.hi & 0xFFFF) + addend * (count - 1)) & 0xFFFF  # before the last addition
        if first == ADD_HL_HL:
            hl = ((r.hi & 0xFFFF) << wp.min(count - 1, 16)) & 0xFFFF
            addend = hl
        carry = wp.where(hl + addend > 0xFFFF, FLAG_C, 0)
        left = (value - count) & 0xFF
        r.hi = (r.hi & 0xFF0000) | ((hl + addend) & 0xFFFF)
        if counter == DEC_A:
            r.hi = (r.hi & 0xFFFF) | (left << 16)
        else:
            r.lo = r.lo ^ ((value ^ left) << shift)
        r.flags = FLAG_ONE | FLAG_NZ | FLAG_N | carry | wp.where((left & 0x0F) == 0x0F, FLAG_H, 0)
        pass_time(c, r, count, 24, 3)
    return wp.max(count, 0)


@wp.func
def skip_product(c: wp.ref[Cpu], r: wp.ref[Fast]) -> int:
    """`sla e / rl d / jr nc,+1 / add hl,bc / add hl,hl / dec a / jr nz`, each round for a bit of DE, 4 T-cycles and an
    instruction longer where that is set: to the end of the loop, if there is time."""
    a = (r.hi >> 16) & 0xFF
    room = (c.next_event - 1 - r.now) // (ROUND_T_CYCLES + ADDITION_T_CYCLES)
    count = wp.min(wp.min(((a - 1) & 0xFF) + 1, 16), room)
    if count > 0:
        de = (r.lo >> 16) & 0xFFFF
        bits = de >> (16 - count)
        additions = wp.bit_count(bits)
        # Before the last doubling: each round adds BC, or not, and doubles
        hl = (wp.uint32(r.hi & 0xFFFF) << wp.uint32(count - 1)) + wp.uint32(r.lo & 0xFFFF) * wp.uint32(bits)
        left = (a - count) & 0xFF
        r.lo = (r.lo & 0xFFFF) | ((de << count) << 16)
        r.hi = (int(hl + hl) & 0xFFFF) | (left << 16)
        half = wp.where((left & 0x0F) == 0x0F, FLAG_H, 0)
        carry = wp.where((hl & wp.uint32(0x8000)) != wp.uint32(0), FLAG_C, 0)
        r.flags = FLAG_ONE | FLAG_N | half | carry | wp.where(left != 0, FLAG_NZ, 0)
        pass_time(
            c, r, 1, ROUND_T_CYCLES * count + ADDITION_T_CYCLES * additions, ROUND_INSTRUCTIONS * count + additions
        )
        if left == 0:  # the last jump is not taken
            r.now = r.now - 4
            r.pc = r.pc + 11
    return wp.max(count, 0)


@wp.func
def pass_time(c: wp.ref[Cpu], r: wp.ref[Fast], count: int, t_cycles: int, instructions: int):
    """`count` iterations are over."""
    r.now = r.now + count * t_cycles
    r.previous = r.now - 12  # the jump's begin
    c.executed = c.executed + count * instructions
    c.skipped = c.skipped + count * instructions


@wp.func
def skip_nest(c: wp.ref[Cpu], r: wp.ref[Fast], nest: wp.vec2i, entry: int):
    """Skip rounds of the loop around the delay at PC, if that begins (wait_loops.skip_nest)."""
    place = (DELAY_REGISTERS >> (4 * ((entry >> KIND_SHIFT) - DELAY_B))) & 7
    value = (wp.where(place < 4, r.lo, r.hi) >> (8 * (place & 3))) & 0xFF
    number = (nest[0] >> wait_loops.NEST_PAIR_SHIFT) & 3
    pair = wp.where(number == 0, r.lo, wp.where(number == 1, r.lo >> 16, r.hi)) & 0xFFFF
    t_cycles = nest[0] & wait_loops.NEST_T_CYCLES
    count = wp.min(pair - 1, (c.next_event - 1 - r.now) // t_cycles)
    if count > 0 and value == nest[1] >> wait_loops.NEST_START_SHIFT:
        changed = pair ^ (pair - count)
        r.lo = r.lo ^ wp.where(number == 0, changed, wp.where(number == 1, changed << 16, 0))
        r.hi = r.hi ^ wp.where(number == 2, changed, 0)
        a = ((pair - count) >> 8) | ((pair - count) & 0xFF)
        r.hi = (r.hi & 0xFFFF) | (a << 16)
        r.flags = FLAG_ONE | FLAG_NZ
        pass_time(c, r, count, t_cycles, nest[1] & wait_loops.NEST_INSTRUCTIONS)
        r.previous = r.now - (nest[0] >> wait_loops.NEST_LAST_SHIFT)


@wp.func
def skip_delay(c: wp.ref[Cpu], r: wp.ref[Fast], entry: int):
    """Skip rounds of the delay at PC: all but the last, or as many as are over before the next event. One of two
    instructions is skipped to its end."""
    place = (DELAY_REGISTERS >> (4 * ((entry >> KIND_SHIFT) - DELAY_B))) & 7  # of the byte in lo and hi
    shift = 8 * (place & 3)
    value = (wp.where(place < 4, r.lo, r.hi) >> shift) & 0xFF
    t_cycles = entry & 0x3FF
    room = c.next_event - 1 - r.now
    left = ((value - 1) & 0xFF) + 1
    count = left - 1
    ends = (entry & SHAPE) == SHORT_DELAY and left * t_cycles <= room
    if ends:
        count = left
    elif count * t_cycles > room:
        count = room // t_cycles
    if count > 0:
        changed = (value ^ ((value - count) & 0xFF)) << shift
        r.lo = r.lo ^ wp.where(place < 4, changed, 0)
        r.hi = r.hi ^ wp.where(place < 4, 0, changed)
        half = wp.where(((value - count) & 0x0F) == 0x0F, FLAG_H, 0)
        r.flags = FLAG_ONE | FLAG_N | (r.flags & FLAG_C) | half | wp.where(ends, 0, FLAG_NZ)
        pass_time(c, r, count, t_cycles, (entry >> INSTRUCTIONS_SHIFT) & 0x3F)
        r.previous = r.now - ((entry >> JUMP_SHIFT) & 0x1F)
        if ends:  # the last jump is not taken
            r.now = r.now - 4
            r.pc = r.pc + 3


@wp.func
def skip_poll(c: wp.ref[Cpu], r: wp.ref[Fast], entry: int):
    """Skip rounds of the poll at PC, if one has just shown that it changes nothing (wait_loops.skip_poll_of_ram)."""
    f = intrinsics.flags_byte(r.flags)
    is_same = c.poll_pc == r.pc and c.poll_f == f and c.poll_low == r.lo and c.poll_high == r.hi
    t_cycles = entry & 0x3FF
    if is_same and c.poll_event == c.next_event and r.now - c.poll_now == t_cycles:
        count = (c.next_event - 1 - r.now) // t_cycles
        if count > 0:
            pass_time(c, r, count, t_cycles, (entry >> INSTRUCTIONS_SHIFT) & 0x3F)
            r.previous = r.now - ((entry >> JUMP_SHIFT) & 0x1F)
    c.poll_pc = r.pc
    c.poll_f = f
    c.poll_low = r.lo
    c.poll_high = r.hi
    c.poll_event = c.next_event
    c.poll_now = r.now


@wp.func
def skip_arithmetic(c: wp.ref[Cpu], r: wp.ref[Fast], rom: wp.uint64) -> int:
    """Iterations of the loop at PC, which adds or multiplies, that were skipped."""
    code = place(c, r, rom, r.pc)
    first = intrinsics.load_byte(code, 0)
    if first == PREFIX:
        return skip_product(c, r)
    return skip_sum(c, r, first, intrinsics.load_byte(code, 1))


@wp.func
def skip(c: wp.ref[Cpu], r: wp.ref[Fast], rom: wp.uint64, areas: wp.uint64) -> int:
    """Iterations of the loop at PC, which copies or fills, that were skipped."""
    code = place(c, r, rom, r.pc)
    first = intrinsics.load_byte(code, 0)
    is_fill = first == LD_HL_INC_A
    stride = wp.where(is_fill and intrinsics.load_byte(code, 1) == INC_L, 4, 1)
    body = wp.where(is_fill, stride, 3)  # bytes and instructions before the counter's
    t_cycles = wp.where(is_fill, 4 + 4 * stride, 24)
    counter = intrinsics.load_byte(code, body)
    bc = r.lo & 0xFFFF
    hl = r.hi & 0xFFFF
    de = (r.lo >> 16) & 0xFFFF
    source = wp.where(first == LD_A_HL_INC, hl, de)
    target = wp.where(first == LD_A_HL_INC, de, hl)
    # Iterations left
    value = wp.where(counter == DEC_B, bc >> 8, bc & 0xFF)
    left = ((value - 1) & 0xFF) + 1
    if counter == INC_C:
        left = 0x100 - value
    elif counter == DEC_BC:
        left = ((bc - 1) & 0xFFFF) + 1
    instructions = body + wp.where(counter == DEC_BC, 4, 2)
    t_cycles = t_cycles + wp.where(counter == DEC_BC, 28, 16)
    count = wp.min(left - 1, (c.next_event - 1 - r.now) // t_cycles)
    count = wp.min(count, room(r, operations.load_byte(areas, target), ds.WRITE, target))
    if stride == 4:
        count = wp.min(count, (0xFF - (target & 0xFF)) // 4)
    if not is_fill:
        count = wp.min(count, room(r, operations.load_byte(areas, source), ds.READ, source))
    if count > 0:
        a = (r.hi >> 16) & 0xFF
        begin = target
        if model.COLOR:
            begin = banks.place(c, target)
        if is_fill:
            intrinsics.fill_bytes(r.row + wp.uint64(begin), a, count, stride)
        else:
            a = intrinsics.copy_bytes(place(c, r, rom, source), r.row + wp.uint64(begin), count)
            source = (source + count) & 0xFFFF
        target = (target + count * stride) & 0xFFFF
        flags = FLAG_ONE | FLAG_NZ
        if counter == DEC_BC:
            bc = (bc - count) & 0xFFFF
            a = (bc | (bc >> 8)) & 0xFF
        else:
            step = wp.where(counter == INC_C, count, -count)
            value = (value + step) & 0xFF
            bc = wp.where(counter == DEC_B, (bc & 0xFF) | (value << 8), (bc & 0xFF00) | value)
            flags = flags | (r.flags & FLAG_C) | wp.where(counter == INC_C, 0, FLAG_N)
            flags = flags | wp.where((value & 0x0F) == wp.where(counter == INC_C, 0, 0x0F), FLAG_H, 0)
        hl = wp.where(first == LD_A_HL_INC, source, target)
        de = wp.where(is_fill, de, wp.where(first == LD_A_HL_INC, target, source))
        r.lo = bc | (de << 16)
        r.hi = hl | (a << 16)
        r.flags = flags
        pass_time(c, r, count, t_cycles, instructions)
    return wp.max(count, 0)
