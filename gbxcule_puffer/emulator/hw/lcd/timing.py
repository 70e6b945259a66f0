"""The clock of a Game Boy Color's LCD, where it differs from a DMG's: lost T-cycles, a clock that wraps, and VBlank's
early STAT interrupt."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import clock
from gbxcule_puffer.emulator.state import Cpu

EARLY_VBLANK_DOTS = wp.constant(4)  # by which VBlank's STAT interrupt precedes VBlank
WRAP = wp.constant(2**63 % hw.FRAME_T_CYCLES)


@wp.func
def is_early_vblank(c: wp.ref[Cpu]) -> bool:
    """True if VBlank's STAT interrupt comes 4 dots before VBlank."""
    in_last_hblank = c.ly == 143 and (c.stat & hw.STAT_MODE) == 0 and c.lcd_next_mode == 1
    return in_last_hblank and (c.lcdc & hw.LCDC_ENABLE) != 0 and (c.stat & hw.STAT_MODE2_INT) != 0 and c.stat_line == 0


@wp.func
def is_late(c: wp.ref[Cpu]) -> bool:
    """True if the LCD is behind its wrapped clock: then each update makes a change."""
    return c.lcd_wrapped != 0 or c.lcd_target <= c.lcd_last


@wp.func
def next_change(c: wp.ref[Cpu]) -> int:
    """Time of the LCD's next change, or of VBlank's early STAT interrupt."""
    if model.COLOR:
        event = c.lcd_target - wp.where(is_early_vblank(c), model.dots(c, EARLY_VBLANK_DOTS), 0)
        return wp.where(c.lcd_wrapped != 0 and c.double_speed == 0, wp.min(event, c.now), event)
    else:
        return c.lcd_target


@wp.func
def look(c: wp.ref[Cpu], t: int):
    """Update the clock to time `t` as PyBoy does. PyBoy truncates to whole dots, so at double speed it loses the odd
    T-cycle that a HALT can leave, and an update to an earlier time (ppu.bring_up) wraps the unsigned clock. Request
    VBlank's STAT interrupt if it comes early."""
    if c.lcd_last <= c.now:
        c.lcd_due = c.lcd_target  # where PyBoy's batch ends, if this instruction makes the clock wrap
    if c.double_speed != 0:
        lost = (t - c.lcd_last) & 1
        c.lcd_zero = c.lcd_zero + lost
        c.lcd_target = c.lcd_target + lost
        if t < c.lcd_last:
            c.lcd_wrapped = 1 - c.lcd_wrapped
            c.next_event = wp.min(c.next_event, c.lcd_due)
            c.settle_from = wp.max(c.next_event, c.now + hw.T_CYCLES_PER_M_CYCLE)  # it may already be behind
    if is_early_vblank(c) and (t >= c.lcd_target - model.dots(c, EARLY_VBLANK_DOTS) or c.lcd_wrapped != 0):
        c.lcd_transition = clock.EARLY_VBLANK
        c.interrupt_flag = c.interrupt_flag | hw.INT_STAT


@wp.func
def end_frame(c: wp.ref[Cpu], t: int):
    """Reduce a wrapped clock modulo a frame, as PyBoy does; the next change keeps its dot."""
    if c.lcd_wrapped != 0:
        frame = model.dots(c, hw.FRAME_T_CYCLES)
        target = c.lcd_target - c.lcd_zero
        c.lcd_zero = t - (t - c.lcd_zero + model.dots(c, WRAP) + 4 * frame) % frame
        c.lcd_target = c.lcd_zero + target
        c.lcd_wrapped = 0
