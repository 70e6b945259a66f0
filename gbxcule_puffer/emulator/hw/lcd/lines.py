"""Changes of the LCD that a game can notice only by LY = LYC, any number of them at once.

In a regular state, line, phase and the length of mode 3 (clock.py) determine the whole state of the LCD. So the state
at any later time follows without the changes in between. The start of VBlank and of the next frame are left to
ppu.change.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import clock, mode3, timing
from gbxcule_puffer.emulator.state import Cpu, Machine

STAT_EACH_LINE = wp.constant(0x28)  # interrupts in mode 0 or 2
STAT_LOW = wp.constant(hw.STAT_MODE | hw.STAT_LYC_EQUAL)


@wp.func
def stat_level(c: wp.ref[Cpu], equal: int, in_vblank: bool) -> int:
    """Level of the STAT interrupt line without interrupts in mode 0 or 2; equal: 1 if LY = LYC."""
    return ((c.stat >> 6) & equal) | ((c.stat >> 4) & wp.where(in_vblank, 1, 0))


@wp.func
def is_regular(c: wp.ref[Cpu]) -> bool:
    """True if pass_changes knows the next change. Not before VBlank or the next frame, in the first frame, with STAT
    interrupts on each line, or in a state from a file whose fields contradict each other."""
    phase = clock.phase_of(c)
    in_vblank = phase == clock.VBLANK
    equal = wp.where(c.ly == c.lyc, 1, 0)
    odd = c.lcd_target - clock.time_at(c, c.ly, clock.end_of(phase, c.mode3_extra))
    odd = odd | (c.lcd_next_mode ^ clock.entry(clock.NEXT_MODES, phase))
    odd = odd | (c.lcd_transition ^ clock.entry(clock.TRANSITIONS, phase))
    odd = odd | (((c.stat >> 2) & 1) ^ equal) | (stat_level(c, equal, in_vblank) ^ c.stat_line)
    odd = odd | (c.stat & STAT_EACH_LINE) | c.lcd_first_frame | c.lcd_restart | (~c.lcdc & hw.LCDC_ENABLE)
    if model.COLOR:
        odd = odd | int(timing.is_late(c))
    return odd == 0 and phase != clock.LAST_MODE0 and in_vblank == (c.ly > clock.LAST_DRAWN) and c.ly != hw.LAST_LINE


@wp.func
def is_one(c: wp.ref[Cpu]) -> bool:
    """True if exactly one change is due: it fell due during the last instruction, or in a batch with an exact end,
    where PyBoy updates the LCD once."""
    return c.settle_from > c.previous or c.lcd_target > c.previous


@wp.func
def line_before(c: wp.ref[Cpu]) -> int:
    """The line after all changes up to the last instruction, if neither VBlank nor the next frame begins."""
    last = wp.where(c.ly > clock.LAST_DRAWN, hw.LAST_LINE, clock.LAST_DRAWN)
    return wp.where(is_one(c), c.ly, wp.min(clock.dot_at(c, c.previous) // hw.LINE_T_CYCLES, last))


@wp.func
def begin_mode3(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Compute mode3_extra if pass_changes passes the start of mode 3 of the line in which it ends. It is a separate
    function, because values that live across mode3.extra cost a GPU's common path registers."""
    phase = clock.phase_of(c)
    line = line_before(c)
    dot = clock.dot_at(c, c.now) - line * hw.LINE_T_CYCLES
    begins = (line != c.ly or phase < clock.MODE3) and dot >= clock.MODE3_DOT and phase != clock.VBLANK
    is_over = clock.dot_at(c, c.previous) - line * hw.LINE_T_CYCLES >= hw.LINE_T_CYCLES  # VBlank begins
    if wp.where(is_one(c), phase == clock.MODE2, begins and not is_over):
        c.mode3_extra = mode3.extra(m, c, line)


@wp.func
def pass_changes(c: wp.ref[Cpu]) -> int:
    """Make the due changes of a regular state, at least one, after begin_mode3: all up to the last instruction and one
    during it, or only one (is_one). 0 if no change was during the last instruction."""
    is_single = is_one(c)
    phase = clock.phase_of(c)
    in_vblank = phase == clock.VBLANK
    last = wp.where(in_vblank, hw.LAST_LINE, clock.LAST_DRAWN)
    line = line_before(c)
    begin = line * hw.LINE_T_CYCLES
    is_new = line != c.ly
    extra = c.mode3_extra
    # The changes up to the last instruction
    dot = clock.dot_at(c, c.previous) - begin
    before = wp.where(dot >= clock.MODE3_DOT, clock.MODE3, clock.MODE2)
    before = wp.where(dot >= clock.MODE0_DOT + extra, clock.MODE0, before)
    before = wp.where(in_vblank, clock.VBLANK, before)
    before = wp.where(is_single, phase, before)
    compared = (c.stat >> 6) & wp.where(line == c.lyc, 1, 0)
    compared = wp.where(is_new, compared, c.stat_line)
    is_next = not is_single and before == clock.MODE0 and dot >= clock.LY_DOT and line < last
    ly = line + wp.where(is_next, 1, 0)
    before = wp.where(is_next, clock.LY_EARLY, before)
    # The one during it
    is_due = (ly - line) * hw.LINE_T_CYCLES + clock.end_of(before, extra) <= clock.dot_at(c, c.now) - begin
    is_during = is_due and (ly < last or before < clock.MODE0)
    is_next = is_during and before >= clock.MODE0
    ly = ly + wp.where(is_next, 1, 0)
    after = wp.where(is_during, clock.entry(clock.PHASES_AFTER, before), before)
    # The state
    begun = wp.where(phase == clock.LY_EARLY, c.ly, c.ly + 1)  # lines from here on have now been compared with WY
    if c.window_hit == 0 and c.wy >= begun and c.wy < ly + wp.min(after, 1) and not in_vblank:
        c.window_hit = 1
        c.window_first = c.wy
    equal = wp.where(ly == c.lyc, 1, 0)
    level = stat_level(c, equal, in_vblank)
    rises = (compared | level) & ~c.stat_line
    c.interrupt_flag = c.interrupt_flag | (rises * hw.INT_STAT)
    c.stat_line = level
    after = wp.where(after == clock.MODE0 and ly == clock.LAST_DRAWN, clock.LAST_MODE0, after)
    c.stat = (c.stat & ~STAT_LOW) | clock.entry(clock.MODES, after) | (equal << 2)
    c.lcd_next_mode = clock.entry(clock.NEXT_MODES, after)
    c.lcd_transition = clock.entry(clock.TRANSITIONS, after)
    c.lcd_target = clock.time_at(c, ly, clock.end_of(after, extra))
    c.ly = ly
    return wp.where(is_during, 1, 0)
