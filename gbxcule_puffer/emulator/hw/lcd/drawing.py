"""Drawing of finished lines: late, at VBlank or before something changes that they show.

PyBoy draws a line when its mode 3 ends. Until something changes that the line shows, registers and memory still have
the values of that moment.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.hw.lcd import clock, color_picture, render, sprites
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def is_drawing(c: wp.ref[Cpu]) -> bool:
    """True if lines must be drawn before VRAM changes."""
    return (c.render & int(c.next_line < hw.SCREEN_HEIGHT)) != 0


@wp.func
def draw_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Draw a line into the screen, if it is kept."""
    if model.COLOR:
        color_picture.draw_background(m, c, line)
    else:
        render.draw_background(m, c, line)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        left = sprites.first_ten(c, line)
        while left != sprites.NONE:
            index = sprites.first_drawn(c, left)
            left = left ^ (sprites.ONE << wp.uint64(index))
            sprite = row.load_word(c, hw.OAM + 4 * index)
            planes = render.sprite_planes(c, sprite, line)
            dx = (sprite >> 8) & (m.pixel_step - 1)
            while dx < render.GROUP:
                if model.COLOR:
                    color_picture.draw_sprite_pixel(m, c, line, sprite, planes, dx)
                else:
                    render.draw_sprite_pixel(m, c, line, sprite, planes, dx)
                dx = dx + m.pixel_step
    if model.COLOR:
        color_picture.store_greys(m, c, line)


@wp.func(inline=False)
def draw_lines(m: wp.ref[Machine], c: wp.ref[Cpu], end: int):
    """Draw the lines from next_line to `end`, whose registers and memory still have their values."""
    for line in range(c.next_line, end):
        if line % m.pixel_step == 0:
            draw_line(m, c, line)
    c.window_line = render.window_row(c, end - 1)
    if end == hw.SCREEN_HEIGHT:
        c.window_line = -1
    c.next_line = end


@wp.func
def lines_over(c: wp.ref[Cpu]) -> int:
    """The number of lines of this frame whose mode 3 has ended."""
    is_on = int((c.lcdc & hw.LCDC_ENABLE) != 0) & int(c.lcd_restart == 0)
    is_mode0 = int((c.stat & hw.STAT_MODE) == 0) & int(c.lcd_transition != clock.START_MODE2)
    return wp.min(c.ly + (is_on & is_mode0 & int(c.lcd_next_mode != 3)), hw.SCREEN_HEIGHT)


@wp.func(inline=False)
def draw_pending(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Draw all lines whose mode 3 has ended, before something changes that they show. PyBoy draws a line when its mode
    3 ends."""
    if c.render != 0:
        end = lines_over(c)
        if end > c.next_line:
            draw_lines(m, c, end)


@wp.func
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in one colour."""
    if model.COLOR:
        color_picture.blank(m, c)
    else:
        render.blank(m, c)


@wp.func
def end_drawing(c: wp.ref[Cpu]):
    """Continue after the picture was drawn, while the step waited at VBlank."""
    c.drawing = 0
    c.next_line = hw.SCREEN_HEIGHT
    c.window_line = -1
    c.window_hit = 0


@wp.func
def plan_drawing(c: wp.ref[Cpu]):
    """At the start of a Game Boy Color's VBlank, leave the rest of the picture to the end of the batch (draw_rest). The
    common path calls ppu.change, and would need more registers if that could draw. The first frame is blank."""
    c.drawing = wp.where(c.render != 0 and c.lcd_first_frame == 0, 1, 0)
    if c.drawing == 0:
        c.window_hit = 0
        if c.render != 0:
            end_drawing(c)


@wp.func
def draw_rest(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Draw the rest of the picture at VBlank."""
    if c.drawing != 0:
        draw_pending(m, c)
        end_drawing(c)
