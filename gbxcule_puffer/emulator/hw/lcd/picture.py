"""Draws the pictures of all envs that wait at VBlank: the CUDA step's second kernel."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.lcd import color_picture, render, sprites
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine

DRAWING = wp.constant(INDEX["drawing"])
NEXT_LINE = wp.constant(INDEX["next_line"])
LCDC = wp.constant(INDEX["lcdc"])
SCY = wp.constant(INDEX["scy"])
SCX = wp.constant(INDEX["scx"])
WX = wp.constant(INDEX["wx"])
BGP = wp.constant(INDEX["bgp"])
OBP0 = wp.constant(INDEX["obp0"])
OBP1 = wp.constant(INDEX["obp1"])
WINDOW_HIT = wp.constant(INDEX["window_hit"])
WINDOW_FIRST = wp.constant(INDEX["window_first"])
WINDOW_LINE = wp.constant(INDEX["window_line"])
COLOR_MODE = wp.constant(INDEX["color_mode"])


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], lane: int, lanes: int):
    """Background and window of the lines from next_line on, as far as they are this lane's."""
    group = lane % render.GROUPS
    line = c.next_line + (c.next_line & (m.pixel_step - 1)) + lane // render.GROUPS * m.pixel_step
    while line < hw.SCREEN_HEIGHT:
        render.draw_group(m, c, render.address_of_line(m, c, line), line, group)
        group = group + lanes % render.GROUPS
        line = line + (lanes // render.GROUPS + wp.where(group >= render.GROUPS, 1, 0)) * m.pixel_step
        group = group - wp.where(group >= render.GROUPS, render.GROUPS, 0)


@wp.func
def draw_sprite(m: wp.ref[Machine], c: wp.ref[Cpu], index: int, height: int, crowded: int, lane: int, lanes: int):
    """The pixels of a sprite, as far as they are this lane's; crowded: 1 if a line may have more than it shows."""
    sprite = row.load_word(c, hw.OAM + 4 * index)
    top = (sprite & 0xFF) - 16
    line = wp.max(top, c.next_line)
    line = line + (line & (m.pixel_step - 1))
    end = wp.min(top + height, hw.SCREEN_HEIGHT)
    odd = (sprite >> 8) & (m.pixel_step - 1)
    number = lane  # of the pixels that are kept
    line = line + (number >> (4 - m.pixel_step)) * m.pixel_step
    while line < end:
        shown = int(1)
        if crowded != 0 and index >= render.MOST_SPRITES:
            found = sprites.on_line(c.row + wp.uint64(hw.OAM), line + 16, height)
            shown = int(sprites.count_before(found, index) < render.MOST_SPRITES)
        if shown != 0:
            planes = render.sprite_planes(c, sprite, line, height)
            dx = odd + ((number * m.pixel_step) & (render.GROUP - 1))
            render.draw_sprite_pixel(m, c, render.address_of_line(m, c, line), line, sprite, planes, dx)
        before = number >> (4 - m.pixel_step)
        number = number + lanes
        line = line + ((number >> (4 - m.pixel_step)) - before) * m.pixel_step


@wp.func
def draw_sprites(m: wp.ref[Machine], c: wp.ref[Cpu], lane: int, lanes: int):
    """The sprites, one after the other by all lanes: from high X to low X, for equal X from last to first in OAM."""
    height = wp.where((c.lcdc & hw.LCDC_OBJ_SIZE) != 0, 16, 8)
    count = int(0)
    above = int(0x10000)  # key of the sprite drawn last: X, then OAM index
    for number in range(41):
        best = int(-1)
        for index in range(lane, 40, lanes):
            sprite = row.load_word(c, hw.OAM + 4 * index)
            bottom = (sprite & 0xFF) - 16 + height
            key = (sprite & 0xFF00) | index
            if bottom > c.next_line and bottom < hw.SCREEN_HEIGHT + height:
                count = count + int(number == 0)
                if key < above and key > best:
                    best = key
        if number == 0:
            count = intrinsics.sum_of_lanes(count)
        above = -intrinsics.least(-best)
        if above < 0:
            return
        draw_sprite(m, c, above & 0xFF, height, int(count > render.MOST_SPRITES), lane, lanes)
        intrinsics.converge()


@wp.kernel(enable_backward=False)
def kernel_draw(machine: Machine, lanes: int):
    """The lines from next_line on of each env that waits; dim = num_envs * lanes, where those of a warp on a GPU draw a
    picture together, or 1."""
    env = wp.tid() // lanes
    lane = wp.tid() - env * lanes
    if machine.state[DRAWING, env] != 0:
        m = machine
        c = Cpu()
        c.env = env
        c.row = intrinsics.address_of_row(m.memory, env) - wp.uint64(hw.ROW_BASE)
        c.next_line = m.state[NEXT_LINE, env]
        c.lcdc = m.state[LCDC, env]
        c.scy = m.state[SCY, env]
        c.scx = m.state[SCX, env]
        c.wx = m.state[WX, env]
        c.bgp = m.state[BGP, env]
        c.obp0 = m.state[OBP0, env]
        c.obp1 = m.state[OBP1, env]
        c.window_hit = m.state[WINDOW_HIT, env]
        c.window_first = m.state[WINDOW_FIRST, env]
        c.window_line = m.state[WINDOW_LINE, env]
        if model.COLOR:
            c.color_mode = m.state[COLOR_MODE, env]
            c.color_base = row.color_base(m)
            for line in range(lane * m.pixel_step, hw.SCREEN_HEIGHT, lanes * m.pixel_step):
                if line >= c.next_line:
                    color_picture.draw_line(m, c, line)
        else:
            draw_background(m, c, lane, lanes)
            intrinsics.converge()
            if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
                draw_sprites(m, c, lane, lanes)
