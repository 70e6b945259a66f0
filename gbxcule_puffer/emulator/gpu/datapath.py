"""The CUDA data path: every common instruction is one read, one ALU operation and one write, controlled by a table.

Lanes that execute different instructions run this code without a branch. Once per turn, one vote of the warp decides
whether any lane has a rare case (an event, an instruction without a descriptor, an access that is not to plain memory).
gpu/slow_path.py handles those lanes. A lane that waits or has finished executes an instruction without effect.
gpu/descriptors.py documents the bits of a descriptor.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import operations
from gbxcule_puffer.emulator.hw import model

FLAG_ONE = wp.constant(1 << 24)
ADD_TO_TOP = wp.constant(1 << (30 - ds.ADD.shift))
LEAD_TO_TOP = wp.constant(1 << (29 - ds.LEAD.shift))
TIME_TO_TOP = wp.constant(1 << (28 - ds.TIME.shift))
BANKED_PAGE = wp.constant(hw.BANKED_WRAM >> 12)
ALWAYS = wp.constant((1 << 30) - 1 & ~(ds.READ | ds.WRITE | ds.WORD))  # d3 without the bits that depend on a condition


@wp.struct
class Fast:
    """The part of a lane that the loop keeps in registers: packed registers, the next descriptor, addresses."""

    lo: wp.int32
    hi: wp.int32
    flags: wp.int32  # as the MASK bits of descriptors.py
    sp: wp.int32
    pc: wp.int32
    now: wp.int32
    previous: wp.int32
    wake: wp.int32  # when the lane next needs attention: the next event, or at once
    turns: wp.int32  # instructions so far, plus turns in which the lane waits or has finished
    table_low: wp.int32  # table index of address 0000
    table_high: wp.int32  # table index of address 4000, minus 4000h
    table_end: wp.int32  # table index of all addresses from 8000 on
    rom_high: wp.int32
    plain: wp.int32  # for each kind of access, the areas in which it is plain (areas.py)
    d0: wp.int32
    d1: wp.int32
    d2: wp.int32
    d3: wp.int32
    index: wp.int32  # of the descriptor in the table
    row: wp.uint64
    ram: wp.uint64  # row, minus rom_high, which is added to all addresses from 4000 on
    if model.DMG_SOUND:
        before: wp.int32  # when the last instruction of the turn before the last began
        source: wp.int32  # index of the last turn's descriptor if that was of a group, else -1
    if model.COLOR:
        vram_shift: wp.int32  # from an address of VRAM, or of D000-DFFF, to the selected bank
        wram_shift: wp.int32


@wp.struct
class Lane:
    """The part of a lane that the loop does not need in registers."""

    running: wp.int32  # 1 until the lane has finished the step; 2: asleep
    until: wp.int32  # asleep at HALT, or after a loop that waited, until about then, else 0
    lead: wp.int32  # T-cycles by which other lanes may still be behind `until` when this one wakes up
    last: wp.int32  # `until` of the previous wait
    waited: wp.int32  # when a waiting loop was last skipped
    singles: wp.uint64  # the table's descriptors of single instructions


@wp.struct
class Turn:
    """The instruction of this turn, as far as a visit may change it."""

    d1: wp.int32
    d2: wp.int32
    d3: wp.int32
    begin: wp.int32  # of the instruction, of a group's last one
    t_cycles: wp.int32
    next_pc: wp.int32
    sp: wp.int32
    address: wp.int32
    special: wp.int32  # not 0: the access is not to plain memory
    x: wp.int32
    y: wp.int32


@wp.struct
class Fixed:
    """The operands of the turn's instruction that no visit changes."""

    plain: wp.int32  # Fast.plain, turned so that a flag says whether its access is plain
    near: wp.int32  # where a group's JR or JP leads
    d0: wp.int32
    add: wp.int32  # -1 to 1: see ADD_CARRY, ADJUST_HL, STACK
    if model.COLOR:
        offset: wp.int32  # of what is written in the env's row


@wp.func
def table_index(r: wp.ref[Fast], pc: int) -> int:
    """Index of the descriptor of the instruction at an address."""
    base = wp.where(pc >= hw.ROM_BANK_SIZE, r.table_high, r.table_low)
    return operations.add_min(pc, base, r.table_end)


@wp.func
def fetch(r: wp.ref[Fast], table: wp.uint64, index: int):
    """Load the descriptor of the next instruction."""
    d = operations.load_descriptor(table, index)
    r.index = index
    r.d0 = d[0]
    r.d1 = d[1]
    r.d2 = d[2]
    r.d3 = d[3]


@wp.func
def special(plain: int, d3: int) -> int:
    """Not 0 if the access is not to plain memory. `plain`: of the address."""
    return ~plain & (d3 & ds.ACCESSES)


@wp.func
def begin_turn(r: wp.ref[Fast], i: wp.ref[Turn], fixed: wp.ref[Fixed], rom: wp.uint64, areas: wp.uint64):
    """Operands of the instruction, its address, and what it reads."""
    add = operations.multiply(r.d3, ADD_TO_TOP) >> 30
    fails = ((r.flags ^ operations.multiply(r.d0, 256)) & r.d0) & (ds.MASK_C | ds.MASK_NZ)
    d3 = wp.where(fails != 0, r.d3 & ALWAYS, r.d3)
    i.begin = r.now + operations.multiply(operations.shift_right(operations.multiply(r.d2, LEAD_TO_TOP), 29), 4)
    i.next_pc = r.pc + ((r.d2 >> ds.LENGTH.shift) & ds.LENGTH.most)
    x = operations.permute(r.lo, r.hi, r.d0)
    y = operations.permute(r.lo, r.hi, r.d0 >> 16) + (r.d2 & 0xFFFF)
    x = wp.where((r.d3 & ds.X_SP) != 0, wp.where(r.d3 < 0, i.next_pc, r.sp), x)
    i.x = wp.where((r.d3 & ds.X_IMM) != 0, operations.permute(r.d0, 0, 0x4140), x)
    sp = (r.sp + 2 * add) & 0xFFFF
    i.sp = wp.where(d3 < 0, sp, r.sp)
    address = wp.where(r.d3 < 0, wp.where(add < 0, sp, r.sp), y)
    offset = address
    if model.COLOR:
        offset = offset + wp.where((address & 0xE000) == hw.VRAM, r.vram_shift, 0)
        offset = offset + wp.where((address >> 12) == BANKED_PAGE, r.wram_shift, 0)
    fixed.near = i.next_pc + operations.permute(r.d0, 0, 0x9991)
    fixed.d0 = r.d0
    fixed.add = add
    if model.COLOR:
        fixed.offset = offset
    offset = offset + wp.where(address >= hw.ROM_BANK_SIZE, r.rom_high, 0)
    source = operations.address(wp.where(address >= hw.VRAM, r.ram, rom), offset)
    i.y = operations.load_operand(source, y, d3 & ds.READ, d3 & ds.READ_WORD)
    i.address = address
    fixed.plain = operations.rotate_right(r.plain, operations.load_byte(areas, address))
    m_cycles = operations.shift_right(operations.multiply(r.d3, TIME_TO_TOP), 28)
    i.t_cycles = 4 * (m_cycles + operations.shift_right(d3, 30))
    i.d1 = r.d1
    i.d2 = r.d2
    i.d3 = d3


@wp.func
def needs_attention(r: wp.ref[Fast], i: wp.ref[Turn], fixed: wp.ref[Fixed]) -> bool:
    """True if the lane has a rare case to handle before the instruction is finished."""
    return (special(fixed.plain, i.d3) | (r.d3 & ds.RARE)) != 0 or i.begin >= r.wake


@wp.func
def end_turn(r: wp.ref[Fast], i: wp.ref[Turn], fixed: wp.ref[Fixed], table: wp.uint64):
    """Finish the instruction, and fetch the next."""
    d3 = i.d3
    x = i.x
    y = i.y
    r.turns = r.turns + operations.shift_right(fixed.d0, 30)  # 1, or 3 with TWO_MORE
    # ALU
    carry_add = wp.where((r.flags & i.d2 & (ds.ADD_CARRY | ds.ADD_ALWAYS)) != 0, fixed.add, 0)
    result = wp.where((d3 & ds.SUBTRACT) != 0, x - y, x + y) + carry_add
    result = wp.where((d3 & ds.AND) != 0, x & y, result)
    result = wp.where((d3 & ds.XOR) != 0, x ^ y, result)
    result = wp.where((d3 & ds.OR) != 0, x | y, result)
    carries = operations.shift_left(x ^ y ^ result, d3) & (ds.MASK_C | ds.MASK_H)
    rotated = operations.rotate_right(operations.permute(y, r.flags, fixed.d0), d3)
    carries = wp.where((d3 & ds.SHIFT) != 0, rotated & ds.MASK_C, carries)
    result = wp.where((d3 & ds.SHIFT) != 0, rotated, result)
    nonzero = wp.where((result & 0xFF) != 0, ds.MASK_NZ | FLAG_ONE, FLAG_ONE)
    changed = carries | nonzero | (i.d2 & (ds.SET_H | ds.SET_N | ds.SET_NZ))
    r.flags = (d3 & changed) | (~d3 & r.flags)
    # The next PC; the last of a group may be JR or JP, by the flags of now
    jumps = ((r.flags ^ operations.multiply(i.d2, 4)) & operations.multiply(i.d2, 2)) & (ds.MASK_C | ds.MASK_NZ)
    pc = wp.where((d3 & ds.JUMP) != 0, y, i.next_pc)
    index = wp.where(jumps != 0, r.index + (fixed.near - r.pc), table_index(r, pc))
    pc = wp.where(jumps != 0, fixed.near, pc)
    if model.DMG_SOUND:
        r.before = r.previous
        r.source = wp.where(i.begin > r.now, r.index, -1)
    r.previous = i.begin
    r.now = r.now + i.t_cycles + wp.where(jumps != 0, 4, 0)
    r.pc = pc
    fetch(r, table, index)
    # Write back
    r.hi = wp.where((d3 & ds.ADJUST_HL) != 0, operations.permute(r.hi, i.address + fixed.add, 0x3254), r.hi)
    values = operations.permute(result, x, 0x7610)
    r.lo = operations.permute(r.lo, values, i.d1)
    r.hi = operations.permute(r.hi, values, i.d1 >> 16)
    r.sp = wp.where((d3 & ds.TO_SP) != 0, result & 0xFFFF, i.sp)
    offset = i.address
    if model.COLOR:
        offset = fixed.offset
    target = operations.address(r.row, offset)  # ROM is not plain memory for writes
    stored = wp.where((d3 & ds.READ) != 0, result, x)
    operations.store_operand(target, stored, d3 & ds.WRITE, d3 & ds.WRITE_WORD)
    r.turns = r.turns + operations.shift_right(i.d1, 31)
