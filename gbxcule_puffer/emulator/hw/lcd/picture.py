"""Draws the pictures of all envs that wait at VBlank: the second kernel of a CUDA step."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.lcd import drawing, render, sprites
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine

DRAWING = wp.constant(INDEX["drawing"])


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], lane: int, lanes: int):
    """This lane's share of background and window, on the lines from next_line on."""
    group = lane % render.GROUPS
    line = c.next_line + (c.next_line & (m.pixel_step - 1)) + lane // render.GROUPS * m.pixel_step
    while line < hw.SCREEN_HEIGHT:
        render.draw_group(m, c, render.address_of_line(m, c, line), line, group)
        group = group + lanes % render.GROUPS
        line = line + (lanes // render.GROUPS + wp.where(group >= render.GROUPS, 1, 0)) * m.pixel_step
        group = group - wp.where(group >= render.GROUPS, render.GROUPS, 0)


@wp.func
def draw_sprite(m: wp.ref[Machine], c: wp.ref[Cpu], index: int, crowded: int, lane: int, lanes: int):
    """This lane's share of a sprite's pixels; crowded: 1 if a line may have more sprites than it shows."""
    sprite = row.load_word(c, hw.OAM + 4 * index)
    top = (sprite & 0xFF) - 16
    line = wp.max(top, c.next_line)
    line = line + (line & (m.pixel_step - 1))
    end = wp.min(top + sprites.height(c), hw.SCREEN_HEIGHT)
    odd = (sprite >> 8) & (m.pixel_step - 1)
    number = lane  # among the kept pixels
    line = line + (number >> (4 - m.pixel_step)) * m.pixel_step
    while line < end:
        shown = int(1)
        if crowded != 0 and index >= sprites.MOST_ON_LINE:
            shown = int(sprites.first_ten(c, line) >> wp.uint64(index)) & 1
        if shown != 0:
            planes = render.sprite_planes(c, sprite, line)
            dx = odd + ((number * m.pixel_step) & (render.GROUP - 1))
            render.draw_sprite_pixel(m, c, line, sprite, planes, dx)
        before = number >> (4 - m.pixel_step)
        number = number + lanes
        line = line + ((number >> (4 - m.pixel_step)) - before) * m.pixel_step


@wp.func
def draw_sprites(m: wp.ref[Machine], c: wp.ref[Cpu], lane: int, lanes: int):
    """The sprites one after the other, each by all lanes: from high X to low X, with equal X from last to first in
    OAM."""
    height = sprites.height(c)
    count = int(0)
    above = int(0x10000)  # key of the last drawn sprite: X, then OAM index
    for number in range(41):
        best = int(-1)
        for index in range(lane, 40, lanes):
            sprite = row.load_word(c, hw.OAM + 4 * index)
            bottom = (sprite & 0xFF) - 16 + height
            key = sprites.rank(c, (sprite >> 8) & 0xFF, index)
            if bottom > c.next_line and bottom < hw.SCREEN_HEIGHT + height:
                count = count + int(number == 0)
                if key < above and key > best:
                    best = key
        if number == 0:
            count = intrinsics.sum_of_lanes(count)
        above = -intrinsics.least(-best)
        if above < 0:
            return
        draw_sprite(m, c, above & 0xFF, int(count > sprites.MOST_ON_LINE), lane, lanes)
        intrinsics.converge()


def make_kernel(load: wp.Function) -> wp.Kernel:
    """The kernel around the generated load(m, c), which copies the hot fields of the state."""

    @wp.kernel(enable_backward=False, module="unique")
    def kernel_draw(machine: Machine, lanes: int):
        """The lines from next_line on of each env that waits; dim = num_envs * lanes. On a GPU the lanes of a warp draw
        a picture together; on a CPU lanes is 1."""
        env = wp.tid() // lanes
        lane = wp.tid() - env * lanes
        if machine.state[DRAWING, env] != 0:
            m = machine
            c = Cpu()
            c.env = env
            load(m, c)
            if model.COLOR:
                for line in range(lane * m.pixel_step, hw.SCREEN_HEIGHT, lanes * m.pixel_step):
                    if line >= c.next_line:
                        drawing.draw_line(m, c, line)
            else:
                draw_background(m, c, lane, lanes)
                intrinsics.converge()
                if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
                    draw_sprites(m, c, lane, lanes)

    return kernel_draw
