"""DIV, TIMA, TMA, TAC, computed from the clock when they are needed. Pan Docs, "Timer Obscure Behaviour".

The divider counts every T-cycle. TIMA counts falling edges of one of its bits; they come when the divider is a multiple
of the period. PyBoy's order of an overflow: TIMA reads 00 for 4 T-cycles; then TMA is loaded and the interrupt comes;
for 4 more T-cycles writes to TIMA are ignored.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.sound import unit, words
from gbxcule_puffer.emulator.state import Cpu


@wp.func
def period_shift(tac: int) -> int:
    """log2 of the TIMA period in T-cycles: 1024, 16, 64, 256 for TAC 0, 1, 2, 3."""
    select = tac & 3
    shift = 2 + 2 * select
    if select == 0:
        shift = 10
    return shift


@wp.func
def increase_tima(c: wp.ref[Cpu]):
    """Count one falling edge."""
    c.tima = c.tima + 1
    if c.tima > 0xFF:
        c.tima = c.tma
        c.tima_reload = 1
        c.tima_reload_count = 4


@wp.func
def schedule(c: wp.ref[Cpu]):
    """Set timer_next from the registers as of timer_last."""
    c.timer_next = hw.NEVER
    if (c.tac & 4) != 0:
        shift = period_shift(c.tac)
        phase = (c.timer_last - c.div_zero) & ((1 << shift) - 1)
        c.timer_next = c.timer_last - phase + ((0x100 - c.tima) << shift)
        if c.tima_reload == 1:
            c.timer_next = wp.min(c.timer_next, c.timer_last + c.tima_reload_count)


@wp.func(inline=False)
def advance(c: wp.ref[Cpu], t: int):
    """Bring the timer up to date with time `t`."""
    shift = period_shift(c.tac)
    mask = (1 << shift) - 1
    while c.timer_last < t:
        if c.tima_reload != 0:  # up to its next state or the next falling edge
            edge = mask + 1 - ((c.timer_last - c.div_zero) & mask)
            passed = wp.max(1, wp.min(wp.min(c.tima_reload_count, edge), t - c.timer_last))
            c.tima_reload_count = c.tima_reload_count - passed
            c.timer_last = c.timer_last + passed
            if c.tima_reload_count == 0:
                if c.tima_reload == 1:
                    c.tima_reload = 2
                    c.tima_reload_count = 4
                    c.interrupt_flag = c.interrupt_flag | hw.INT_TIMER
                else:
                    c.tima_reload = 0
            if (c.tac & 4) != 0 and passed == edge:
                increase_tima(c)
        elif (c.tac & 4) == 0:
            c.timer_last = t
        else:
            phase = (c.timer_last - c.div_zero) & mask
            overflow = c.timer_last - phase + ((0x100 - c.tima) << shift)
            if overflow > t:
                c.tima = c.tima + ((phase + t - c.timer_last) >> shift)
                c.timer_last = t
            else:
                c.tima = 0xFF
                increase_tima(c)
                c.timer_last = overflow
    schedule(c)


@wp.func
def read(c: wp.ref[Cpu], address: int, t: int) -> int:
    """DIV, TIMA, TMA or TAC at time `t`."""
    advance(c, t)
    if model.SOUND:
        words.access_timer(c, t)
    value = c.tac | 0xF8
    if address == hw.DIV:
        value = ((t - c.div_zero) >> 8) & 0xFF
    elif address == hw.TIMA:
        value = c.tima
        if c.tima_reload == 1:
            value = 0
    elif address == hw.TMA:
        value = c.tma
    return value


@wp.func
def selected_bit(c: wp.ref[Cpu], tac: int, t: int) -> int:
    """The divider bit whose falling edges TIMA counts, masked."""
    return (t - c.div_zero) & (1 << (period_shift(tac) - 1))


@wp.func
def write(c: wp.ref[Cpu], address: int, value: int, t: int):
    """DIV, TIMA, TMA or TAC at time `t`; a write to DIV or TAC can cause a falling edge."""
    advance(c, t)
    if model.SOUND:
        words.access_timer(c, t)
    if address == hw.DIV:
        if model.SOUND:
            unit.write_div(c, t)
        if (c.tac & 4) != 0 and selected_bit(c, c.tac, t) != 0:
            increase_tima(c)
        c.div_zero = t
    elif address == hw.TIMA:
        if c.tima_reload != 2:
            c.tima = value
    elif address == hw.TMA:
        c.tma = value
        if c.tima_reload != 0:
            c.tima = value
    else:
        if (c.tac & 4) != 0 and selected_bit(c, c.tac, t) != 0:
            if (value & 4) == 0 or selected_bit(c, value, t) == 0:
                increase_tima(c)
        c.tac = value & 7
    schedule(c)
