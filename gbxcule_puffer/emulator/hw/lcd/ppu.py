"""The LCD's state machine: LY, STAT, frames and interrupts, one change at a time as in PyBoy.

A due change takes effect when the LCD is next updated: after the instruction during which it falls due, and at each
access to an LCD register. Each update makes only one change. Changes that nothing can notice (no interrupt, no line to
draw) are skipped, and lines.py later reconstructs the state after them. Pan Docs, "Rendering"; lengths of the modes as
in PyBoy (clock.py).
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model
from gbxcule_puffer.emulator.hw.lcd import clock, drawing, lines, mode3, timing
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.state import Cpu, Machine

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
def begin_phase(c: wp.ref[Cpu], phase: int, dots: int):
    """Begin a phase (clock.py), which takes `dots`."""
    c.lcd_next_mode = clock.entry(clock.NEXT_MODES, phase)
    c.lcd_transition = clock.entry(clock.TRANSITIONS, phase)
    c.lcd_target = c.lcd_target + model.dots(c, dots)


@wp.func
def begin_lines(c: wp.ref[Cpu]):
    """Begin line 0."""
    c.next_line = 0
    c.window_first = 0
    c.window_hit = wp.where(c.wy == 0, 1, 0)


@wp.func
def restart(c: wp.ref[Cpu], t: int):
    """Begin the first line after the LCD is switched on: mode 0 for 76 dots, then mode 3. The previous frame ends
    here."""
    if model.COLOR:
        c.lcd_wrapped = 0
    c.lcd_restart = 0
    c.frame_done = 1
    c.ly = 0
    c.lcd_zero = t
    c.lcd_target = t + model.dots(c, 76)
    c.lcd_next_mode = 3
    c.lcd_transition = clock.CHANGE_MODE
    set_mode(c, 0)
    begin_lines(c)
    compare_lyc(c)


@wp.func
def end_frame(c: wp.ref[Cpu], t: int):
    """End LY 153: line 0 begins with mode 2. The first frame, whose line 0 was 4 dots shorter, waits here until it has
    its full length."""
    frame = model.dots(c, hw.FRAME_T_CYCLES)
    if c.lcd_first_frame != 0 and c.lcd_target - c.lcd_zero < frame:
        c.lcd_target = c.lcd_zero + frame
    else:
        c.frame_done = 1
        c.ly = 0
        begin_phase(c, clock.MODE2, clock.MODE3_DOT)
        c.lcd_zero = c.lcd_zero + frame
        if model.COLOR:
            timing.end_frame(c, t)
        c.lcd_first_frame = 0
        set_mode(c, 2)
        begin_lines(c)
        compare_lyc(c)


@wp.func
def enter_mode3(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Begin mode 3."""
    c.mode3_extra = mode3.extra(m, c, c.ly)
    end = wp.where(c.lcd_first_frame != 0, clock.FIRST_MODE0_DOT, clock.MODE0_DOT) + c.mode3_extra
    begin_phase(c, clock.MODE3, end - clock.MODE3_DOT)


@wp.func
def enter_hblank(c: wp.ref[Cpu]):
    """End mode 3."""
    is_first = c.lcd_first_frame != 0
    phase = wp.where(c.ly >= clock.LAST_DRAWN, clock.LAST_MODE0, clock.MODE0)
    begin = wp.where(is_first, clock.FIRST_MODE0_DOT, clock.MODE0_DOT) + c.mode3_extra
    begin_phase(c, phase, wp.where(is_first, clock.FIRST_LY_DOT, clock.end_of(phase, 0)) - begin)
    if model.COLOR:
        if is_first and phase == clock.MODE0:
            c.lcd_transition = clock.ADVANCE_LY


@wp.func
def enter_line(c: wp.ref[Cpu]):
    """A line begins with mode 2, on a Game Boy Color."""
    c.ly = c.ly + 1
    begin_phase(c, clock.MODE2, clock.MODE3_DOT)
    compare_lyc(c)
    hit_window(c)


@wp.func
def hit_window(c: wp.ref[Cpu]):
    """Compare LY with WY, when mode 2 begins."""
    if c.wy == c.ly and c.window_hit == 0:
        c.window_hit = 1
        c.window_first = c.ly


@wp.func
def enter_vblank_line(m: wp.ref[Machine], c: wp.ref[Cpu], is_early: int):
    """Begin one of the lines 144 to 153; is_early: its STAT interrupt has already come."""
    begin_phase(c, clock.VBLANK, hw.LINE_T_CYCLES)
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
    """Begin the next mode."""
    is_early = 0
    if model.COLOR:
        is_early = wp.where(c.lcd_transition == clock.EARLY_VBLANK, 1, 0)
        c.lcd_transition = clock.CHANGE_MODE
    set_mode(c, c.lcd_next_mode)
    if c.lcd_next_mode == 3:
        enter_mode3(m, c)
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
    """Make the due change, at time `t`."""
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
    elif c.lcd_transition == clock.ADVANCE_LY:
        c.ly = c.ly + 1
        if c.lcd_first_frame != 0:  # mode 2 will compare
            c.stat = c.stat & ~hw.STAT_LYC_EQUAL
            update_stat_line(c)
        else:
            compare_lyc(c)
        begin_phase(c, clock.LY_EARLY, 4)
    elif c.lcd_transition == clock.START_MODE2:
        set_mode(c, 2)
        if c.lcd_first_frame != 0:
            compare_lyc(c)
        begin_phase(c, clock.MODE2, clock.MODE3_DOT)
        hit_window(c)
    else:
        enter_mode(m, c)


@wp.func(inline=False)
def settle_any(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The changes of `settle`: any number that fell due before the last instruction. Of those that fell due during it,
    or in a batch with an exact end, at most one: there PyBoy updates the LCD once."""
    is_during = int(0)
    while c.lcd_target <= c.now and is_during == 0:
        if lines.is_regular(c):
            lines.begin_mode3(m, c)
            is_during = lines.pass_changes(c)
        else:
            is_during = wp.where(lines.is_one(c), 1, 0)
            change(m, c, c.now)
    c.lcd_last = c.now


@wp.func
def is_inside(c: wp.ref[Cpu]) -> bool:
    """True if the next change is one of `change_inside`."""
    special = c.lcd_first_frame | c.lcd_restart | (~c.lcdc & hw.LCDC_ENABLE)
    if model.COLOR:
        special = special | int(timing.is_late(c)) | int(c.lcd_transition == clock.EARLY_VBLANK)
    return special == 0 and c.ly < clock.LAST_DRAWN


@wp.func
def change_inside(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """`change` on lines 0 to 142 after the first frame, where none but these can be due."""
    if c.lcd_transition == clock.ADVANCE_LY:
        c.ly = c.ly + 1
        compare_lyc(c)
        begin_phase(c, clock.LY_EARLY, 4)
    elif c.lcd_transition == clock.START_MODE2:
        set_mode(c, 2)
        begin_phase(c, clock.MODE2, clock.MODE3_DOT)
        hit_window(c)
    elif c.lcd_next_mode == 3:
        set_mode(c, 3)
        enter_mode3(m, c)
    elif c.lcd_next_mode == 0:
        set_mode(c, 0)
        enter_hblank(c)
    else:
        change(m, c, c.now)


@wp.func(inline=False)
def settle_on_cpu(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The same. A CPU makes a few changes sooner one by one, and also many while STAT's interrupts are on that IE keeps
    from the CPU: then no state is regular."""
    if c.now - c.lcd_target >= model.dots(c, hw.LINE_T_CYCLES) and lines.is_regular(c):
        settle_any(m, c)
        return
    is_during = int(0)
    while c.lcd_target <= c.now and is_during == 0:
        is_during = wp.where(lines.is_one(c), 1, 0)
        if is_inside(c):
            change_inside(m, c)
        else:
            change(m, c, c.now)
    c.lcd_last = c.now


@wp.func
def settle_changes(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The changes of `settle`, of which one is due."""
    if intrinsics.is_gpu() == 0:
        settle_on_cpu(m, c)
    else:
        settle_any(m, c)


@wp.func
def settle(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Bring the LCD up to date with the instruction that begins now."""
    if (int(c.lcd_target <= c.now) & int(c.now >= c.settle_from) & int(c.lcd_last != c.now)) != 0:
        settle_changes(m, c)


@wp.func
def is_quiet(c: wp.ref[Cpu]) -> bool:
    """True if a game can notice only VBlank, the end of the frame and LYC without reading a register."""
    special = c.lcd_first_frame | c.lcd_restart | (c.stat & lines.STAT_EACH_LINE) | (~c.lcdc & hw.LCDC_ENABLE)
    if model.COLOR:  # while the LCD is behind its wrapped clock, it makes one change after each instruction
        special = special | int(timing.is_late(c))
    return special == 0


@wp.func
def is_vram_unlocked(c: wp.ref[Cpu]) -> bool:
    """True if VRAM is not locked before the next event."""
    return (int((c.lcdc & hw.LCDC_ENABLE) == 0) | int(c.ly >= hw.SCREEN_HEIGHT)) != 0


@wp.func
def is_due(c: wp.ref[Cpu], t: int) -> bool:
    """True if a change is due at time `t`."""
    if model.COLOR:
        return t >= c.lcd_target or t < c.lcd_zero or c.lcd_wrapped != 0
    return (int(t >= c.lcd_target) | int(t < c.lcd_zero)) != 0


@wp.func
def bring_up(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """Bring the LCD up to time `t` within an instruction: at most one more change, none if it is up to date.

    The fetch of an immediate from VRAM or OAM looks ahead, so the next update may be to an earlier time. If a frame
    began in between, PyBoy's unsigned clock wraps, and the next change is made at once.
    """
    settle(m, c)
    if t != c.lcd_last:
        if model.COLOR:
            timing.look(c, t)
        c.lcd_last = t
        if is_due(c, t):
            if model.DMG_SOUND:
                if c.lcd_transition == clock.ADVANCE_LY:
                    words.store(c, words.EARLY_LY, c.now + 1)
            change(m, c, t)


@wp.func
def requests(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """IF. STAT's interrupts that IE keeps from the CPU are requested no earlier than here (events.py)."""
    if not model.COLOR:
        settle(m, c)
    return c.interrupt_flag


@wp.func(inline=False)
def advance(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """bring_up as a separate function."""
    bring_up(m, c, t)


@wp.func
def end_step(c: wp.ref[Cpu]):
    """Forget the length of mode 3 when the line's is over, or has not begun: what is left then is that of any line
    before, by how many changes were made at once."""
    mode = c.stat & hw.STAT_MODE
    is_mode0 = int(mode == 0) & int(c.lcd_transition != clock.START_MODE2) & int(c.lcd_next_mode != 3)
    counts = (int(mode == 3) | is_mode0) & int((c.lcdc & hw.LCDC_ENABLE) != 0) & int(c.lcd_restart == 0)
    c.mode3_extra = wp.where(counts != 0, c.mode3_extra, 0)
