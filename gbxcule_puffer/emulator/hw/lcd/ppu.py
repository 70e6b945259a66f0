"""The LCD's state machine: LY, STAT, frames and interrupts, one change at a time as PyBoy makes them.

A change that is due takes effect when the LCD is next brought up to date, and only one at a time: after the instruction
during which it falls due and at each access to an LCD register. Changes that nothing can notice (no interrupt, no line
to draw) are made up later, whole lines at once. Pan Docs, "Rendering"; lengths of the modes as PyBoy has them.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.lcd import drawing, lines, mode3, timing
from gbxcule_puffer.emulator.state import Cpu, Machine

CHANGE_MODE = wp.constant(0)
ADVANCE_LY = wp.constant(1)
LY_EARLY = wp.constant(0 if model.COLOR else 4)  # by which LY increases before a line begins
WRAPPED_T_CYCLES = wp.constant(2**64 % hw.FRAME_T_CYCLES)  # see advance


@wp.func
def update_stat_line(c: wp.ref[Cpu]):
    """Level of the STAT interrupt line; a rising edge requests the interrupt (Pan Docs, "INT $48")."""
    mode = c.stat & hw.STAT_MODE
    both = hw.STAT_LYC_INT | hw.STAT_LYC_EQUAL
    line = 0
    if mode != 3:
        line = (c.stat >> (mode + 3)) & 1
    if (c.stat & both) == both:
        line = 1
    c.interrupt_flag = c.interrupt_flag | ((line & ~c.stat_line) * hw.INT_STAT)
    c.stat_line = line


@wp.func
def compare_lyc(c: wp.ref[Cpu]):
    """Set STAT's coincidence bit."""
    c.stat = (c.stat & ~hw.STAT_LYC_EQUAL) | wp.where(c.ly == c.lyc, hw.STAT_LYC_EQUAL, 0)
    update_stat_line(c)


@wp.func
def set_mode(c: wp.ref[Cpu], mode: int):
    """Enter a mode."""
    if (c.stat & hw.STAT_MODE) != mode:
        c.stat = (c.stat & ~hw.STAT_MODE) | mode
        update_stat_line(c)


@wp.func
def begin_lines(c: wp.ref[Cpu]):
    """Line 0 begins."""
    c.next_line = 0
    c.window_first = 0
    c.window_hit = wp.where(c.wy == 0, 1, 0)


@wp.func
def restart(c: wp.ref[Cpu], t: int):
    """First line after switching on: mode 0 for 76 T-cycles, then mode 3. The frame before ends here."""
    if model.COLOR:
        c.lcd_wrapped = 0
    c.lcd_restart = 0
    c.frame_done = 1
    c.ly = 0
    c.lcd_zero = t
    c.lcd_target = t + model.dots(c, 76)
    c.lcd_next_mode = 3
    c.lcd_transition = CHANGE_MODE
    set_mode(c, 0)
    begin_lines(c)
    compare_lyc(c)


@wp.func
def end_frame(c: wp.ref[Cpu], t: int):
    """LY 153 is over: line 0 begins with mode 2. The first frame's line 0 was 4 T-cycles short: made good here."""
    frame = model.dots(c, hw.FRAME_T_CYCLES)
    if c.lcd_first_frame != 0 and c.lcd_target - c.lcd_zero < frame:
        c.lcd_target = c.lcd_zero + frame
    else:
        c.frame_done = 1
        c.ly = 0
        c.lcd_target = c.lcd_target + model.dots(c, 80)
        c.lcd_zero = c.lcd_zero + frame
        if model.COLOR:
            timing.end_frame(c, t)
        c.lcd_first_frame = 0
        c.lcd_next_mode = 3
        c.lcd_transition = CHANGE_MODE
        set_mode(c, 2)
        begin_lines(c)
        compare_lyc(c)


@wp.func
def enter_hblank(c: wp.ref[Cpu]):
    """Mode 3 is over."""
    c.lcd_next_mode = 2
    c.lcd_transition = ADVANCE_LY
    length = 200 - c.mode3_extra
    if c.ly >= 143:
        c.lcd_next_mode = 1
        c.lcd_transition = CHANGE_MODE
        if c.lcd_first_frame == 0:
            length = length + 4
    if model.COLOR:
        if c.lcd_first_frame == 0:
            c.lcd_transition = CHANGE_MODE
            length = 206 - c.mode3_extra
    c.lcd_target = c.lcd_target + model.dots(c, length)


@wp.func
def enter_line(c: wp.ref[Cpu]):
    """A line begins with mode 2, on a Game Boy Color."""
    c.ly = c.ly + 1
    c.lcd_target = c.lcd_target + model.dots(c, 80)
    c.lcd_next_mode = 3
    compare_lyc(c)
    hit_window(c)


@wp.func
def hit_window(c: wp.ref[Cpu]):
    """Mode 2 begins: LY is compared with WY."""
    if c.wy == c.ly and c.window_hit == 0:
        c.window_hit = 1
        c.window_first = c.ly


@wp.func
def enter_vblank_line(m: wp.ref[Machine], c: wp.ref[Cpu], is_early: int):
    """One of the lines 144 to 153 begins; is_early: its STAT interrupt has come."""
    c.lcd_target = c.lcd_target + model.dots(c, hw.LINE_T_CYCLES)
    c.lcd_next_mode = 1
    c.lcd_transition = CHANGE_MODE
    c.ly = c.ly + 1
    compare_lyc(c)
    if c.ly == hw.SCREEN_HEIGHT:
        if (c.stat & hw.STAT_MODE2_INT) != 0 and c.stat_line == 0 and is_early == 0:
            c.interrupt_flag = c.interrupt_flag | hw.INT_STAT
        c.interrupt_flag = c.interrupt_flag | hw.INT_VBLANK
        if model.COLOR:
            drawing.plan_drawing(c)
        elif m.draw_later != 0 and c.render != 0 and c.lcd_first_frame == 0:
            c.drawing = 1
        else:
            drawing.draw_pending(m, c)
            c.window_hit = 0
        if c.lcd_first_frame != 0:
            drawing.blank(m, c)


@wp.func
def enter_mode(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The next mode begins."""
    is_early = 0
    if model.COLOR:
        is_early = wp.where(c.lcd_transition == timing.EARLY_VBLANK, 1, 0)
        c.lcd_transition = CHANGE_MODE
    set_mode(c, c.lcd_next_mode)
    if c.lcd_next_mode == 3:
        c.mode3_extra = mode3.extra(m, c, c.ly)
        length = 172 + c.mode3_extra
        if model.COLOR:
            length = wp.where(c.lcd_first_frame != 0, length, length - 2)
        c.lcd_target = c.lcd_target + model.dots(c, length)
        c.lcd_next_mode = 0
    elif c.lcd_next_mode == 0:
        enter_hblank(c)
    else:
        if model.COLOR:
            if c.lcd_next_mode == 2:
                enter_line(c)
                return
        enter_vblank_line(m, c, is_early)


@wp.func(inline=False)
def change(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """The change that is due."""
    if (c.lcdc & hw.LCDC_ENABLE) == 0:  # a frame without a picture
        c.frame_done = 1
        if model.COLOR:
            timing.end_frame(c, t)
        frame = model.dots(c, hw.FRAME_T_CYCLES)
        if t - c.lcd_zero >= frame:
            c.lcd_zero = c.lcd_zero + frame
        elif t < c.lcd_zero:
            c.lcd_zero = c.lcd_zero - WRAPPED_T_CYCLES
        c.lcd_target = c.lcd_zero + frame
        drawing.blank(m, c)
    elif c.lcd_restart != 0:
        restart(c, t)
    elif c.ly == hw.LAST_LINE:
        end_frame(c, t)
    elif c.lcd_transition == ADVANCE_LY:
        c.ly = c.ly + 1
        if c.lcd_first_frame != 0:  # the comparison waits for mode 2
            c.stat = c.stat & ~hw.STAT_LYC_EQUAL
            update_stat_line(c)
        else:
            compare_lyc(c)
        c.lcd_target = c.lcd_target + model.dots(c, 4)
        c.lcd_transition = drawing.START_MODE2
    elif c.lcd_transition == drawing.START_MODE2:
        set_mode(c, 2)
        if c.lcd_first_frame != 0:
            compare_lyc(c)
        c.lcd_target = c.lcd_target + model.dots(c, 80)
        c.lcd_next_mode = 3
        c.lcd_transition = CHANGE_MODE
        hit_window(c)
    else:
        enter_mode(m, c)


@wp.func
def skip_lines(c: wp.ref[Cpu]):
    """Make up whole lines at once, as far as they were over before the last instruction; the rest is made change by
    change. The length of mode 3 of a line that is over does not matter."""
    length = model.dots(c, hw.LINE_T_CYCLES)
    line = (c.previous - c.lcd_zero) // length  # the line of that time
    if c.ly >= hw.SCREEN_HEIGHT:
        line = wp.min(line, hw.LAST_LINE)
        if line > c.ly:
            c.ly = line
            c.lcd_target = c.lcd_zero + (line + 1) * length
            compare_lyc(c)
    else:
        line = wp.min(line, hw.SCREEN_HEIGHT)
        begin = c.lcd_zero + line * length
        if c.lcd_target < begin and line > c.ly:  # a state from a file may have its LY and its times at odds
            begun = wp.where(c.lcd_transition == drawing.START_MODE2, c.ly, c.ly + 1)  # first line whose mode 2 comes
            if c.window_hit == 0 and c.wy >= begun and c.wy < line:
                c.window_hit = 1
                c.window_first = c.wy
            c.ly = line
            c.lcd_next_mode = 2
            c.lcd_transition = drawing.START_MODE2
            if line == hw.SCREEN_HEIGHT:  # mode 0 of the last line goes straight into VBlank
                c.ly = line - 1
                c.lcd_next_mode = 1
                c.lcd_transition = CHANGE_MODE
            if model.COLOR:  # LY increases when the line begins
                c.ly = line - 1
                c.lcd_transition = CHANGE_MODE
            c.lcd_target = begin
            c.stat = c.stat & ~hw.STAT_MODE
            compare_lyc(c)


@wp.func
def make_change(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """The next change of `settle`, and lines before it that can be skipped. 1 if there can be no other: it fell due
    during the last instruction, or in a batch whose end was known exactly, where PyBoy looks at the LCD once."""
    during = wp.where(c.settle_from > c.previous or c.lcd_target > c.previous, 1, 0)
    if during == 0 and is_quiet(c) and (c.stat & hw.STAT_MODE) != 3:
        skip_lines(c)
    if c.lcd_target <= c.now:
        change(m, c, c.now)
    return during


@wp.func(inline=False)
def settle_changes(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The changes of `settle`: any number that fell due before the last instruction, at most one during it."""
    during = int(0)
    while c.lcd_target <= c.now and during == 0:
        if model.COLOR:
            during = make_change(m, c)
        elif lines.is_regular(c):
            during = lines.pass_changes(m, c)
        else:
            during = make_change(m, c)
    c.lcd_last = c.now


@wp.func
def settle(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Bring the LCD up to the instruction that begins now, unless it already is."""
    if (int(c.lcd_target <= c.now) & int(c.now >= c.settle_from) & int(c.lcd_last != c.now)) != 0:
        settle_changes(m, c)


@wp.func
def is_quiet(c: wp.ref[Cpu]) -> bool:
    """True where only VBlank, the end of the frame and LYC can be noticed unasked."""
    special = c.lcd_first_frame | c.lcd_restart | (c.stat & lines.STAT_EACH_LINE) | (~c.lcdc & hw.LCDC_ENABLE)
    if model.COLOR:  # behind its clock, which has wrapped, the LCD makes one change after each instruction
        special = special | int(timing.is_late(c))
    return special == 0


@wp.func
def has_known_events(c: wp.ref[Cpu]) -> bool:
    """True where next_event knows the next change that can be noticed unasked: in HALT not where STAT has interrupts of
    each line, since it stops at each change."""
    special = c.lcd_first_frame | c.lcd_restart | (~c.lcdc & hw.LCDC_ENABLE)
    return (special | wp.where(c.halted != 0, c.stat & lines.STAT_EACH_LINE, 0)) == 0


@wp.func
def is_vram_unlocked(c: wp.ref[Cpu]) -> bool:
    """True where VRAM is not locked before the next event."""
    return (int((c.lcdc & hw.LCDC_ENABLE) == 0) | int(c.ly >= hw.SCREEN_HEIGHT)) != 0


@wp.func
def next_event(c: wp.ref[Cpu]) -> int:
    """Time of the next change that has to be made on time."""
    length = model.dots(c, hw.LINE_T_CYCLES)
    event = c.lcd_zero + wp.where(c.ly < hw.SCREEN_HEIGHT, hw.SCREEN_HEIGHT, hw.LAST_LINE + 1) * length
    match = c.lcd_zero + c.lyc * length - wp.where(c.lyc < hw.SCREEN_HEIGHT, LY_EARLY, 0)
    is_awaited = (c.stat & hw.STAT_LYC_INT) & wp.where(c.lyc > c.ly, hw.STAT_LYC_INT, 0)
    event = wp.where(is_awaited != 0 and c.lyc <= hw.LAST_LINE, wp.min(event, match), event)
    each_line = c.stat & lines.STAT_EACH_LINE
    if model.COLOR:
        return wp.where(is_quiet(c), event, timing.next_change(c))
    # STAT's interrupts in mode 2 and mode 0: the next of these modes at the earliest, as far as it is known
    mode = c.stat & hw.STAT_MODE
    is_begun = int(mode == 0) & int(c.lcd_transition == drawing.START_MODE2)  # LY has increased already
    line = c.lcd_zero + wp.where(is_begun != 0, c.ly, c.ly + 1) * hw.LINE_T_CYCLES
    mode0 = wp.where(mode >= 2, c.lcd_target, line + lines.MODE3_T)  # mode 3 begins before, which says how long it is
    interrupt = wp.where((each_line & hw.STAT_MODE2_INT) != 0, wp.min(line, mode0), mode0)
    interrupt = wp.where((each_line & 8) != 0, interrupt, line)
    interrupt = wp.where(c.ly >= hw.SCREEN_HEIGHT, event, interrupt)
    event = wp.where(each_line != 0, wp.min(event, interrupt), event)
    return wp.where(has_known_events(c), event, timing.next_change(c))


@wp.func
def halt_event(c: wp.ref[Cpu], other: int) -> int:
    """Time of the change to which HALT may jump where another device has an event at time `other`.

    PyBoy's HALT stops at each change of the LCD and never for less than 4 T-cycles, so what lies just before `other`
    decides when it is seen: jump to the line in which it falls, and go on change by change from there.
    """
    event = timing.next_change(c)
    if is_quiet(c):
        line_begin = other - (other - c.lcd_zero) % model.dots(c, hw.LINE_T_CYCLES)
        if line_begin > c.lcd_target and line_begin > c.now + hw.T_CYCLES_PER_M_CYCLE:
            event = wp.min(next_event(c), line_begin)
    return event


@wp.func
def is_due(c: wp.ref[Cpu], t: int) -> bool:
    """True where a change is due at time `t`."""
    if model.COLOR:
        return t >= c.lcd_target or t < c.lcd_zero or c.lcd_wrapped != 0
    return (int(t >= c.lcd_target) | int(t < c.lcd_zero)) != 0


@wp.func
def bring_up(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """Bring the LCD up to time `t` within an instruction: at most one more change, none if it already was.

    The fetch of an immediate from VRAM or OAM looks ahead, and the access after it may be earlier: where a frame began
    in between, PyBoy's clock, an unsigned number, wraps, and the next change is made at once.
    """
    settle(m, c)
    if t != c.lcd_last:
        if model.COLOR:
            timing.look(c, t)
        c.lcd_last = t
        if is_due(c, t):
            change(m, c, t)


@wp.func(inline=False)
def advance(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """bring_up as a function of its own."""
    bring_up(m, c, t)
