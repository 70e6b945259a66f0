"""Changes of the LCD in lines 0 to 143 that cause no interrupt but LYC's, any number of them at once, on a DMG.

A line makes up to four: mode 2, mode 3, mode 0, LY + 1. With the number of those that are over, the line and the time
at which it began give the LCD's whole state. The end of line 143 is VBlank, which ppu.change begins.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw.lcd import mode3
from gbxcule_puffer.emulator.state import Cpu, Machine

STAT_EACH_LINE = wp.constant(0x28)  # interrupts in mode 0 or 2
STAT_LOW = wp.constant(hw.STAT_MODE | hw.STAT_LYC_EQUAL)
MODE3_T = wp.constant(80)
MODE0_T = wp.constant(80 + 172)  # without what prolongs mode 3
LY_T = wp.constant(452)
LAST = wp.constant(hw.SCREEN_HEIGHT - 1)
# A nibble for each number of changes that are over, 0 to 3: STAT's mode, lcd_next_mode and lcd_transition
MODES = wp.constant(0x0320)
NEXT_MODES = wp.constant(0x2032)
TRANSITIONS = wp.constant(0x1002)
ALL_OF_LAST = wp.constant(0x1000)  # lcd_next_mode less, and lcd_transition, where only VBlank comes after them


@wp.func
def nibble(table: int, number: int) -> int:
    """Entry `number` of a table."""
    return (table >> (4 * number)) & 3


@wp.func
def made(c: wp.ref[Cpu]) -> int:
    """The number of changes of line LY that are over."""
    mode = c.stat & hw.STAT_MODE
    return wp.where(mode != 0, mode - 1, wp.where(c.lcd_transition == 2, 0, 3))


@wp.func
def time_of(count: int, extra: int) -> int:
    """The time within a line of the change after `count`; extra: by which mode 3 is longer than 172."""
    return wp.where(count == 0, 0, wp.where(count == 1, MODE3_T, wp.where(count == 2, MODE0_T + extra, LY_T)))


@wp.func
def is_regular(c: wp.ref[Cpu]) -> bool:
    """True where pass_changes knows the next change: always, but in VBlank, before it, in the first frame, with STAT's
    interrupts of each line, or in a state from a file that has its fields at odds."""
    count = made(c)
    equal = wp.where(c.ly == c.lyc, 1, 0)
    odd = c.lcd_target - c.lcd_zero - c.ly * hw.LINE_T_CYCLES - time_of(count, c.mode3_extra)
    odd = odd | (c.lcd_next_mode ^ nibble(NEXT_MODES, count)) | (c.lcd_transition ^ nibble(TRANSITIONS, count))
    odd = odd | (((c.stat >> 2) & 1) ^ equal) | (((c.stat >> 6) & equal) ^ c.stat_line)
    odd = odd | (c.stat & STAT_EACH_LINE) | c.lcd_first_frame | c.lcd_restart | (~c.lcdc & hw.LCDC_ENABLE)
    return odd == 0 and c.ly < hw.SCREEN_HEIGHT


@wp.func
def pass_changes(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """Make the changes that are due, of which there is one, of a regular line: all up to the last instruction, and one
    during it, or only one in a batch whose end was known exactly. 0 if no change was during it."""
    count = made(c)
    is_one = c.settle_from > c.previous or c.lcd_target > c.previous
    place = c.previous - c.lcd_zero
    over = place // hw.LINE_T_CYCLES  # the line of that time
    line = wp.where(is_one, c.ly, wp.min(over, LAST))
    begin = line * hw.LINE_T_CYCLES
    is_new = line != c.ly
    extra = c.mode3_extra
    begins_mode3 = wp.where(is_one, count == 1, (is_new or count < 2) and c.now - c.lcd_zero - begin >= MODE3_T)
    if begins_mode3 and (is_one or over <= LAST):
        extra = mode3.extra(m, c, line)
        c.mode3_extra = extra
    # The changes up to the last instruction
    place = place - begin
    before = wp.where(place >= MODE3_T, 2, 1)
    before = wp.where(place >= MODE0_T + extra, 3, before)
    before = wp.where(is_one, count, before)
    compared = (c.stat >> 6) & wp.where(line == c.lyc, 1, 0)
    is_next = not is_one and place >= LY_T and line < LAST
    compared = wp.where(is_new, compared, c.stat_line)
    ly = line + wp.where(is_next, 1, 0)
    before = wp.where(is_next, 0, before)
    # The one during it
    due = c.lcd_zero + ly * hw.LINE_T_CYCLES + time_of(before, extra) <= c.now
    during = wp.where(due and not (before == 3 and ly == LAST), 1, 0)
    after = (before + during) & 3
    is_next = during != 0 and after == 0
    ly = ly + wp.where(is_next, 1, 0)
    # The state
    begun = wp.where(count == 0, c.ly, c.ly + 1)
    if c.window_hit == 0 and c.wy >= begun and c.wy < ly + wp.min(after, 1):
        c.window_hit = 1
        c.window_first = c.wy
    equal = wp.where(ly == c.lyc, 1, 0)
    level = (c.stat >> 6) & equal
    rises = (compared | level) & ~c.stat_line
    c.interrupt_flag = c.interrupt_flag | (rises * hw.INT_STAT)
    c.stat_line = level
    c.stat = (c.stat & ~STAT_LOW) | nibble(MODES, after) | (equal << 2)
    is_last = after == 3 and ly == LAST
    c.lcd_next_mode = nibble(NEXT_MODES - wp.where(is_last, ALL_OF_LAST, 0), after)
    c.lcd_transition = nibble(TRANSITIONS - wp.where(is_last, ALL_OF_LAST, 0), after)
    time = wp.where(is_last, hw.LINE_T_CYCLES, time_of(after, extra))
    c.lcd_target = c.lcd_zero + ly * hw.LINE_T_CYCLES + time
    c.ly = ly
    return during
