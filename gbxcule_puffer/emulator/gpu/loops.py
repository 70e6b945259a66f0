"""Loops on the data path: find the loop that begins at PC, and skip it on the lane's registers (loops/skip.py).

A lane that has skipped rounds does nothing else in that turn.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import lane_state, operations
from gbxcule_puffer.emulator.gpu.datapath import Fast, Lane, Turn
from gbxcule_puffer.emulator.hw import intrinsics, model
from gbxcule_puffer.emulator.loops import lcd_polls, packed, skip, table
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu, Machine

LY_POLL = lcd_polls.LDH_A_LY | lcd_polls.CP_N << 16 | table.LCD_POLL << table.MARK_SHIFT  # as Machine.code has it
READ_BIT, WRITE_BIT, LOCK_BIT = (flag.bit_length() - 1 for flag in (ds.READ, ds.WRITE, ds.LOOKAHEAD))  # of Fast.plain


@wp.func
def index_in_rom(c: wp.ref[Cpu], r: wp.ref[Fast]) -> int:
    """Index of PC in the ROM."""
    return r.pc + wp.where(r.pc >= hw.ROM_BANK_SIZE, c.rom_high, c.rom_low)


@wp.func
def mark_at_pc(c: wp.ref[Cpu], r: wp.ref[Fast]) -> int:
    """The mark in Machine.code at PC, which is in ROM."""
    return intrinsics.load_word(c.words, 4 * index_in_rom(c, r)) >> table.MARK_SHIFT


@wp.func
def entry_at_pc(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast]) -> int:
    """The entry of Machine.waits for the loop or hook that begins at PC; NONE if there is none."""
    number = mark_at_pc(c, r)
    entry = int(table.NONE)
    if number != 0 and number != table.LCD_POLL:
        entry = m.waits[number - 1]
    return entry


@wp.func
def end_skip(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], p: wp.ref[Registers]):
    """Rounds of the loop at PC were skipped: in this turn the lane does nothing else."""
    lane_state.set_registers(r, p)
    c.executed = c.executed - 1
    lane_state.wait(r, i)


@wp.func
def skip_stat_poll(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """Skip rounds of `ldh a,[STAT] / and 2 / jr nz`, if the instruction begins this loop and has just read mode 2 or
    3."""
    goes_on = int((i.d2 & ds.LOOP) != 0) & int((i.y & 2) != 0)
    if model.COLOR:
        goes_on = goes_on & int(c.lcd_wrapped == 0)
    if goes_on != 0:
        p = lane_state.registers_of(r)
        if lcd_polls.poll_stat(c, p, r.now + i.t_cycles - 8, lcd_polls.ROUND) > 0:
            packed.set_a(p, 2)
            p.flags = packed.ONE | packed.NZ | packed.H
            end_skip(c, r, i, p)


@wp.func
def skip_arithmetic(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """Skip rounds of the loop at PC, which adds or multiplies."""
    entry = entry_at_pc(m, c, r)
    kind = skip.kind_of(entry)
    p = lane_state.registers_of(r)
    rounds = int(0)
    if kind == table.MULTIPLY:
        rounds = skip.multiply(c, p, True)
    elif kind != table.NO_LOOP:
        rounds = skip.add(c, p, entry)
    if rounds > 0:
        end_skip(c, r, i, p)


@wp.func
def skip_move(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]):
    """Skip rounds of the loop at PC, which copies or fills."""
    entry = entry_at_pc(m, c, r)
    unlocked = r.plain >> LOCK_BIT
    p = lane_state.registers_of(r)
    if entry != table.NONE:
        if skip.move(c, p, entry, (r.plain >> READ_BIT) & unlocked, (r.plain >> WRITE_BIT) & unlocked) > 0:
            end_skip(c, r, i, p)


@wp.func
def skip_poll_of_ly(c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn]) -> int:
    """Skip rounds of the loop at PC, if it polls LY; returns their number."""
    rounds = int(0)
    if r.pc < hw.VRAM:
        index = index_in_rom(c, r)
        if intrinsics.load_word(c.words, 4 * index) == LY_POLL:
            p = lane_state.registers_of(r)
            rounds = lcd_polls.poll_ly(c, p, intrinsics.load_word(c.words, 4 * (index + 3)))
            if rounds > 0:
                end_skip(c, r, i, p)
    return rounds


@wp.func
def skip_wait(m: wp.ref[Machine], c: wp.ref[Cpu], r: wp.ref[Fast], i: wp.ref[Turn], lane: wp.ref[Lane]):
    """Skip rounds of the loop at PC, if it only waits; count a hook."""
    entry = entry_at_pc(m, c, r)
    kind = skip.kind_of(entry)
    if kind == table.HOOK:
        operations.count_one(m.hooks, entry & table.HOOK_NUMBER.mask, c.env)
    elif kind < table.HOOK and skip.has_scanned_address(r.pc, index_in_rom(c, r)) and c.dma_active == 0:
        p = lane_state.registers_of(r)
        skip.wait(m, c, p, entry, True)
        if p.now != r.now:
            end_skip(c, r, i, p)
            lane.waited = r.now
