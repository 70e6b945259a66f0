"""The step: press, run frames, release, draw the last frame; then make all times relative to the end of the step."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import interrupts, joypad, model, row
from gbxcule_puffer.emulator.hw.cartridge import rtc
from gbxcule_puffer.emulator.hw.lcd import drawing, ppu
from gbxcule_puffer.emulator.hw.sound import samples, unit
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine

CYCLES_LOW = wp.constant(INDEX["cycles_low"])
CYCLES_HIGH = wp.constant(INDEX["cycles_high"])
INSTRUCTIONS = wp.constant(INDEX["instructions"])
RTC_LAST = wp.constant(INDEX["rtc_last"])


@wp.func
def begin_step(m: wp.ref[Machine], c: wp.ref[Cpu], buttons: int, frames: int, release_after: int):
    """Press the buttons until `release_after` frames have ended. In a shorter step, they stay held for the next step.
    If `frames` is 0, each env has its own number in Machine.frames; then the release is at the step's end at the
    latest. If `release_after` is 0, these buttons and no others are held, and the step's end releases none."""
    # With a branch here, or with nested choices, clang makes the whole kernel a tenth slower.
    count = wp.where(frames == 0, m.frames[c.env], frames)
    c.frames_left = count
    least = wp.where(frames == 0, 0, -release_after)
    c.release_at = wp.where(release_after == 0, 0, wp.max(count - release_after, least))
    c.render = wp.where(c.frames_left == 1, 1, 0)
    c.next_line = drawing.lines_over(c)  # the boot ROM has drawn them in the frame that a reset ends
    c.executed = 0
    m.skipped[c.env] = 0
    c.now = 0
    if model.SAMPLES:
        samples.begin(c, m.state[CYCLES_LOW, c.env] & 0xFFFF)
    row.store(c, hw.P1, c.p1)  # for the data path
    joypad.press(c, buttons, release_after == 0)


@wp.func(inline=False)
def ends_early(m: wp.ref[Machine], c: wp.ref[Cpu]) -> bool:
    """True if memory passes all tests that end the step early (probes/until.py)."""
    passed = bool(True)
    for i in range(m.until.shape[0]):
        value = row.load(c, hw.ROW_BASE + m.until[i, 0]) & m.until[i, 1]
        in_range = value >= m.until[i, 2] and value <= m.until[i, 3]
        if in_range == (m.until[i, 4] != 0):
            passed = False
    return passed


@wp.func
def end_frame(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """End a frame: 1 if the step continues. At this point both kernels have counted the same instructions."""
    c.frame_done = 0
    c.frames_left = c.frames_left - 1
    if c.frames_left == c.release_at:
        joypad.release(c)
    if m.until.shape[0] != 0 and c.frames_left > 1 and c.frames_left <= c.release_at:
        if ends_early(m, c):
            m.frames[c.env] = m.frames[c.env] - (c.frames_left - 1)
            c.frames_left = 1
    # The batch may have continued into the next frame. Then this picture has that frame's first lines; its own has not.
    drawing.draw_pending(m, c)
    c.next_line = drawing.lines_over(c)
    if c.frames_left == 1:
        c.render = 1
    if m.instruction_budget != 0 and c.executed > m.instruction_budget:
        c.locked = 1
    running = 1
    if c.frames_left == 0 or c.locked != 0:
        running = 0
    return running


@wp.func(inline=False)
def pass_event(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """End a batch and, if the step continues, begin the next: then 1. A picture that has to be drawn suspends the
    step."""
    interrupts.end_batch(m, c)
    if (c.frame_done | c.locked | c.drawing) == 0:  # nearly always
        interrupts.begin_batch(m, c)
        return 1
    if m.draw_later == 0 or c.frame_done != 0 or c.locked != 0:  # nothing can be pending from a finished frame
        drawing.draw_rest(m, c)
    running = int(1)
    if c.frame_done != 0 or c.locked != 0:
        running = end_frame(m, c)
    if c.drawing != 0:
        running = 0
    if running == 1:
        interrupts.begin_batch(m, c)
    return running


@wp.func
def rebased(time: int, now: int) -> int:
    """A time relative to `now`; NEVER stays."""
    result = time - now
    if time == hw.NEVER:
        result = hw.NEVER
    return result


@wp.func
def end_step(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Make all times relative to the end of this step."""
    if m.has_rtc == 1:
        rtc.advance(m, c, c.now)
        m.state[RTC_LAST, c.env] = 0
    if model.SOUND:
        unit.end_step(c)
    ppu.end_step(c)
    timer_age = c.now - c.timer_last
    if c.tima_reload == 0 and (c.tac & 4) == 0:
        timer_age = 0
    c.timer_last = -timer_age
    c.render = 0
    c.timer_next = rebased(c.timer_next, c.now)
    c.div_zero = (c.div_zero - c.now) | ~0xFFFF  # the divider has 16 bits
    c.serial_end = rebased(c.serial_end, c.now)
    c.lcd_zero = c.lcd_zero - c.now
    c.lcd_target = c.lcd_target - c.now
    c.lcd_last = 0  # the LCD is up to date at the end of a step
    c.dma_start = rebased(wp.max(c.dma_start, c.now - 0x10000), c.now)
    cycles = m.state[CYCLES_LOW, c.env] + c.now
    m.state[CYCLES_LOW, c.env] = cycles & 0x3FFFFFFF
    m.state[CYCLES_HIGH, c.env] = m.state[CYCLES_HIGH, c.env] + (cycles >> 30)
    m.state[INSTRUCTIONS, c.env] = c.executed
    c.now = 0
    c.executed = 0
