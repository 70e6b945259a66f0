"""Loops that poll LY or STAT: the number of rounds before the LCD's next change that could end them. They are
recognised when they are fetched, because most of them begin with the same instruction."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import clock, ppu
from gbxcule_puffer.emulator.loops import packed, skip, table
from gbxcule_puffer.emulator.loops.packed import Registers
from gbxcule_puffer.emulator.state import Cpu

READ_T = 4  # when `ldh a,[n]` reads
LDH_A_LY, LDH_A_STAT = 0x44F0, 0x41F0
CP_N, AND_N, AND_A, PREFIX, BIT_1_A = 0xFE, 0xE6, 0xA7, 0xCB, 0x4F
ROUND = table.round_of(32, 3, 12)  # `ldh a,[n]`, `cp n` or `and n` or `bit 1,a`, `jr cc`
LONG_ROUND = table.round_of(36, 4, 12)  # with `and a` before the jump


@wp.func
def rounds_before(c: wp.ref[Cpu], r: wp.ref[Registers], first: int, until: int, entry: int) -> int:
    """The number of rounds that read before `until` and end before the next event; first: the time of the first
    read."""
    t_cycles = entry & table.T_CYCLES.most
    return wp.min((until - 1 - first) // t_cycles + 1, (c.next_event - 1 - r.now) // t_cycles)


@wp.func
def poll_ly(c: wp.ref[Cpu], r: wp.ref[Registers], tail: int) -> int:
    """Skip rounds of `wait: ldh a,[LY] / cp n / jr cc,wait`; `tail` has n, the jump's opcode and its offset. Returns
    the number of rounds."""
    target = tail & 0xFF
    condition = (tail >> 8) & 0xFF
    is_loop = (condition & 0xE7) == 0x20 and ((tail >> 16) & 0xFF) == 0xFA
    rounds = 0
    if is_loop and c.ei_delay == 0 and c.dma_active == 0 and ppu.is_quiet(c):
        first = r.now + READ_T
        ly = clock.ly_at(c, first)
        until = clock.time_of_ly(c, ly + 1)  # time of the first read that may end the loop
        goes_on = ly == target
        if condition == 0x20:
            goes_on = ly != target
            if target > ly:
                until = clock.time_of_ly(c, target)
        elif condition == 0x30:
            goes_on = ly >= target
            if target != 0:
                until = c.lcd_zero + model.dots(c, hw.FRAME_T_CYCLES)
        elif condition == 0x38:
            goes_on = ly < target
            until = clock.time_of_ly(c, target)
        rounds = wp.where(goes_on, wp.max(rounds_before(c, r, first, until, ROUND), 0), 0)
        if rounds > 0:
            a = clock.ly_at(c, first + (rounds - 1) * (ROUND & table.T_CYCLES.most)) & 0xFF
            packed.set_a(r, a)
            carries = ((a ^ target ^ (a - target)) << 15) & (packed.C | packed.H)
            r.flags = packed.ONE | packed.N | carries | wp.where(a != target, packed.NZ, 0)
            skip.passed(c, r, rounds, ROUND)
    return rounds


@wp.func
def poll_stat(c: wp.ref[Cpu], r: wp.ref[Registers], first: int, entry: int) -> int:
    """Rounds to skip of a poll of STAT, before the LCD's next change. Its first read, at time `first`, does not end the
    loop. If the result is more than 0, the caller sets A and the flags."""
    rounds = 0
    if c.lcd_target > first:
        rounds = wp.max(rounds_before(c, r, first, c.lcd_target, entry), 0)
    if rounds > 0:
        c.lcd_last = first + (rounds - 1) * (entry & table.T_CYCLES.most)
        skip.passed(c, r, rounds, entry)
    return rounds
