"""The next change of the LCD at which a batch of instructions, or HALT, has to end."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import clock, lines, mode3, ppu, timing
from gbxcule_puffer.emulator.state import Cpu


@wp.func
def each_line(c: wp.ref[Cpu]) -> int:
    """STAT's interrupts in mode 0 or 2, if IE lets the CPU notice them. Otherwise only IF has them, and whoever reads
    or writes IF brings the LCD up to date first."""
    return wp.where((c.interrupt_enable & hw.INT_STAT) != 0, c.stat & lines.STAT_EACH_LINE, 0)


@wp.func
def stops_exactly(c: wp.ref[Cpu]) -> bool:
    """True if HALT, which stops at each change, stops exactly at it. It never runs for less than 4 T-cycles, and after
    the next change no two are closer."""
    return c.lcd_target >= c.now + hw.T_CYCLES_PER_M_CYCLE


@wp.func
def has_known_events(c: wp.ref[Cpu]) -> bool:
    """True if next_event knows the next change that a game can notice without reading a register."""
    special = c.lcd_first_frame | c.lcd_restart | (~c.lcdc & hw.LCDC_ENABLE)
    return (special | wp.where(c.halted != 0 and not stops_exactly(c), each_line(c), 0)) == 0


@wp.func
def next_event(c: wp.ref[Cpu]) -> int:
    """Time of the next change that has to be made on time."""
    event = clock.time_at(c, wp.where(c.ly < hw.SCREEN_HEIGHT, hw.SCREEN_HEIGHT, hw.LAST_LINE + 1), 0)
    is_awaited = (c.stat & hw.STAT_LYC_INT) & wp.where(c.lyc > c.ly, hw.STAT_LYC_INT, 0)
    event = wp.where(is_awaited != 0, wp.min(event, clock.time_of_ly(c, c.lyc)), event)
    if model.COLOR:
        return wp.where(ppu.is_quiet(c), event, timing.next_change(c))
    # STAT's interrupts in mode 2 and mode 0: the earliest known start of these modes
    mode = c.stat & hw.STAT_MODE
    is_begun = int(mode == 0) & int(c.lcd_transition == clock.START_MODE2)  # LY has already increased
    line = clock.time_at(c, wp.where(is_begun != 0, c.ly, c.ly + 1), 0)
    mode0 = wp.where(mode >= 2, c.lcd_target, line + clock.MODE3_DOT)  # the length of mode 3 is known once it begins
    sources = each_line(c)
    interrupt = wp.where((sources & hw.STAT_MODE2_INT) != 0, wp.min(line, mode0), mode0)
    interrupt = wp.where((sources & 8) != 0, interrupt, line)
    interrupt = wp.where(c.ly >= hw.SCREEN_HEIGHT, event, interrupt)
    event = wp.where(sources != 0, wp.min(event, interrupt), event)
    return wp.where(has_known_events(c), event, timing.next_change(c))


@wp.func
def is_far_from_changes(c: wp.ref[Cpu], dot: int) -> bool:
    """True if no change comes 1 to 3 dots before a dot of a line, however long mode 3 is. In VBlank fewer come."""
    is_early = int(dot == 0) | (int(dot > 3) & int(dot <= clock.MODE3_DOT))
    in_mode3 = int(dot > clock.MODE3_DOT + 3) & int(dot <= clock.MODE0_DOT - mode3.MOST_SHORTER)
    in_mode0 = int(dot > clock.MODE0_DOT + mode3.MOST_LONGER + 3) & int(dot <= clock.LY_DOT)
    return (is_early | in_mode3 | in_mode0) != 0


@wp.func
def halt_event(c: wp.ref[Cpu], other: int) -> int:
    """Time of the change to which HALT may jump if another device has an event at time `other`; `other` itself, if HALT
    stops exactly there.

    PyBoy's HALT stops at each change of the LCD, and never for less than 4 T-cycles. So changes just before `other`
    determine when it is noticed: jump to the line of `other`, and continue change by change from there.
    """
    event = timing.next_change(c)
    is_known = has_known_events(c)
    if model.COLOR:
        is_known = ppu.is_quiet(c)
    if is_known:
        dot = clock.dot_at(c, other)
        line = dot // hw.LINE_T_CYCLES
        line_begin = clock.time_at(c, line, 0)
        if not model.COLOR and is_far_from_changes(c, dot - line * hw.LINE_T_CYCLES):
            if stops_exactly(c) and lines.is_regular(c):
                return wp.min(next_event(c), other)
        if line_begin > c.lcd_target and line_begin > c.now + hw.T_CYCLES_PER_M_CYCLE:
            event = wp.min(next_event(c), line_begin)
    return event
