"""Counts of a step's work, for `puffer profile`: by address of the code, and by cause.

Only kernels that are compiled with ON = 1 count (emulator/build/variant.py). In the others this code is empty.
"""

import warp as wp

from gbxcule_puffer.emulator.state import Cpu, Machine

ON = 0

# Rows of Machine.counts. Their columns: an index in the ROM, or the size of the ROM plus (address - 8000):
EXECUTED = 0
SKIPPED = 1
T_CYCLES = 2
REPEATED = 3  # instructions of the rounds of a loop that changed nothing, at the jump that ends the loop
STOPS = 4  # of the data path, except those that `glance` handles
INTERPRETED = 5  # stops that the data path left to the interpreter
CAUSES = 6  # by cause, from here to the last column
ROWS = 7

# Columns of the row CAUSES
HALT_T_CYCLES = 0
BATCHES = 1
ROUNDS = 2  # calls of the interpreter by the data path
DISPATCHED, INTERRUPTS = 3, 5  # to 7: interrupts, by number
STOP_CAUSE = 16  # and on: gpu/stop_counters.py

# Columns of Machine.marks
COLUMN = 0
PC = 1
DONE = 2  # instructions executed, without those that were skipped
SKIPPED_BEFORE = 3
NOW = 4
COUNTED = 5  # instructions up to here belong to rounds that have been counted
FIRST_HEAD = 8
HEAD_SIZE = 8
HEADS = 64
MARKS = FIRST_HEAD + HEAD_SIZE * HEADS


@wp.func
def column_of(m: wp.ref[Machine], c: wp.ref[Cpu], pc: int) -> int:
    """The column of an address with the selected banks."""
    column = m.code.shape[0] + pc - 0x8000
    if pc < 0x4000:
        column = c.rom_low + pc
    elif pc < 0x8000:
        column = wp.max(c.rom_high + pc, 0)
    return column


@wp.func
def add(m: wp.ref[Machine], row: int, column: int, count: int):
    """Count, if counters are on."""
    if ON == 1:
        wp.atomic_add(m.counts, row, column, wp.int64(count))


@wp.func
def changed(c: wp.ref[Cpu], before: int, value: int):
    """Note a write to memory or to a register of a device."""
    if ON == 1:
        if before != (value & 0xFF):
            c.changes = c.changes + 1


@wp.func
def begin_instruction(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Call before the fetch, which may skip a loop."""
    if ON == 1:
        m.marks[c.env, COLUMN] = column_of(m, c, c.pc)
        m.marks[c.env, PC] = c.pc
        m.marks[c.env, DONE] = c.executed - c.skipped
        m.marks[c.env, SKIPPED_BEFORE] = c.skipped
        m.marks[c.env, NOW] = c.now


@wp.func
def end_instruction(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Call after the instruction."""
    if ON == 1:
        column = m.marks[c.env, COLUMN]
        add(m, EXECUTED, column, 1)
        add(m, SKIPPED, column, c.skipped - m.marks[c.env, SKIPPED_BEFORE])
        add(m, T_CYCLES, column, c.now - m.marks[c.env, NOW])
        opcode = c.code & 0xFF
        is_jump = opcode == 0x18 or (opcode & 0xE7) == 0x20 or opcode == 0xC3 or (opcode & 0xE7) == 0xC2
        if is_jump and c.pc <= m.marks[c.env, PC]:
            end_round(m, c, column)


@wp.func
def end_round(m: wp.ref[Machine], c: wp.ref[Cpu], column: int):
    """A jump back. If registers, banks and memory are as they were when it was last taken, the round did nothing."""
    head = FIRST_HEAD + HEAD_SIZE * ((column ^ (column >> 6)) & (HEADS - 1))
    done = c.executed - c.skipped
    af = (c.a << 24) | (c.f << 16) | (c.b << 8) | c.c
    de = (c.d << 24) | (c.e << 16) | (c.h << 8) | c.l
    marks = m.marks
    is_same = marks[c.env, head] == column + 1 and marks[c.env, head + 1] == af and marks[c.env, head + 2] == de
    is_same = is_same and marks[c.env, head + 3] == c.sp and marks[c.env, head + 4] == c.rom_high
    if is_same and marks[c.env, head + 5] == c.changes:
        first = wp.max(marks[c.env, head + 6], marks[c.env, COUNTED])
        add(m, REPEATED, column, wp.max(done - first, 0))
        marks[c.env, COUNTED] = done
    marks[c.env, head] = column + 1
    marks[c.env, head + 1] = af
    marks[c.env, head + 2] = de
    marks[c.env, head + 3] = c.sp
    marks[c.env, head + 4] = c.rom_high
    marks[c.env, head + 5] = c.changes
    marks[c.env, head + 6] = done
