"""Draws the pictures of all envs that wait at VBlank, one thread a line: the CUDA step's second kernel."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.lcd import color_picture, render
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


@wp.kernel(enable_backward=False)
def kernel_draw(machine: Machine):
    """The lines from next_line on of each env that waits; dim = (num_envs, rows of the screen)."""
    env, number = wp.tid()
    line = number * machine.pixel_step
    if machine.state[DRAWING, env] != 0 and line >= machine.state[NEXT_LINE, env]:
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
            color_picture.draw_line(m, c, line)
        else:
            render.compose_line(m, c, line)
