"""The LCD's clock: the line, dot and phase at a time, and the time at which each begins. Pan Docs, "Rendering".

A frame begins at `lcd_zero` and has 154 lines of 456 dots; a dot is a T-cycle of the CPU, two at double speed. A line
goes through phases, each with its values of STAT's mode, `lcd_next_mode` and `lcd_transition`:

| phase       | mode | next | transition   | ends at dot          |                                        |
| ----------- | ---: | ---: | ------------ | -------------------- | -------------------------------------- |
| LY_EARLY    |    0 |    2 | START_MODE2  | 0                    | DMG: LY is the next line's for 4 dots  |
| MODE2       |    2 |    3 | CHANGE_MODE  | 80                   |                                        |
| MODE3       |    3 |    0 | CHANGE_MODE  | 252, CGB 250 + extra | extra: mode3.py                        |
| MODE0       |    0 |    2 | ADVANCE_LY   | 452                  | CGB: CHANGE_MODE, 456                  |
| LAST_MODE0  |    0 |    1 | CHANGE_MODE  | 456                  | of line 143                            |
| VBLANK      |    1 |    1 | CHANGE_MODE  | 456                  | of lines 144 to 153                    |

In the first frame after switching the LCD on, line 0 is 4 dots shorter, and a CGB's lines have the dots of a DMG's.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.state import Cpu

# Values of lcd_transition: what the next change is
CHANGE_MODE = wp.constant(0)
ADVANCE_LY = wp.constant(1)
START_MODE2 = wp.constant(2)  # 4 dots after LY has increased
EARLY_VBLANK = wp.constant(3)  # as CHANGE_MODE, but VBlank's STAT interrupt has already come (timing.py)

LY_EARLY, MODE2, MODE3, MODE0, LAST_MODE0, VBLANK = (wp.constant(phase) for phase in range(6))
# A nibble for each phase
MODES = wp.constant(0x100320)
NEXT_MODES = wp.constant(0x112032)
TRANSITIONS = wp.constant(0x000002 if model.COLOR else 0x001002)
PHASES_AFTER = wp.constant(0x501321 if model.COLOR else 0x500321)

LAST_DRAWN = wp.constant(hw.SCREEN_HEIGHT - 1)
EARLY_DOTS = wp.constant(0 if model.COLOR else 4)  # dots by which LY increases before lines 1 to 143 begin
MODE3_DOT = wp.constant(80)
MODE0_DOT = wp.constant(80 + 170 if model.COLOR else 80 + 172)  # if mode 3 has its shortest length
LY_DOT = wp.constant(hw.LINE_T_CYCLES - EARLY_DOTS)
FIRST_MODE0_DOT, FIRST_LY_DOT = wp.constant(80 + 172), wp.constant(hw.LINE_T_CYCLES - 4)  # in the first frame


@wp.func
def dot_at(c: wp.ref[Cpu], t: int) -> int:
    """Dots from the frame's begin to time `t`."""
    if model.COLOR:
        return (t - c.lcd_zero) >> c.double_speed
    return t - c.lcd_zero


@wp.func
def time_at(c: wp.ref[Cpu], line: int, dot: int) -> int:
    """Time of a line's dot."""
    return c.lcd_zero + model.dots(c, line * hw.LINE_T_CYCLES + dot)


@wp.func
def ly_at(c: wp.ref[Cpu], t: int) -> int:
    """LY at time `t`, after the first frame."""
    dot = dot_at(c, t)
    line = dot // hw.LINE_T_CYCLES
    if model.COLOR:
        return line
    return line + wp.where(line < LAST_DRAWN and dot - line * hw.LINE_T_CYCLES >= LY_DOT, 1, 0)


@wp.func
def time_of_ly(c: wp.ref[Cpu], ly: int) -> int:
    """Time at which LY becomes `ly`, after the first frame; the end of the frame for values that LY does not reach."""
    line = wp.min(ly, hw.LAST_LINE + 1)
    return time_at(c, line, wp.where(line < hw.SCREEN_HEIGHT, -EARLY_DOTS, 0))


@wp.func
def entry(table: int, phase: int) -> int:
    """A phase's nibble of a table."""
    return (table >> (4 * phase)) & 7


@wp.func
def phase_of(c: wp.ref[Cpu]) -> int:
    """The current phase of line LY."""
    mode = c.stat & hw.STAT_MODE
    mode0 = wp.where(c.lcd_transition == START_MODE2, LY_EARLY, wp.where(c.ly == LAST_DRAWN, LAST_MODE0, MODE0))
    return wp.where(mode == 0, mode0, wp.where(mode == 1, VBLANK, mode - 1))


@wp.func
def length_of(phase: int, extra: int) -> int:
    """The dots of a phase on a DMG, after the first frame; extra: as in end_of."""
    drawn = wp.where(phase == MODE2, MODE3_DOT, MODE0_DOT + extra - MODE3_DOT)
    blank = hw.LINE_T_CYCLES - wp.where(phase == VBLANK, 0, MODE0_DOT + extra)
    blank = wp.where(phase == MODE0, blank - EARLY_DOTS, blank)
    return wp.where(phase == LY_EARLY, EARLY_DOTS, wp.where(phase <= MODE3, drawn, blank))


@wp.func
def end_of(phase: int, extra: int) -> int:
    """The dot of its line at which a phase ends; extra: the dots by which mode 3 is longer than usual."""
    drawn = wp.where(phase == MODE2, MODE3_DOT, MODE0_DOT + extra)
    blank = wp.where(phase == MODE0, LY_DOT, hw.LINE_T_CYCLES)
    return wp.where(phase == LY_EARLY, 0, wp.where(phase <= MODE3, drawn, blank))
