"""The length of mode 3, which SCX and sprites prolong. Pan Docs, "Mode 3 length"; figures as in PyBoy."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.hw.lcd import sprites
from gbxcule_puffer.emulator.state import Cpu, Machine

MOST_SHORTER = wp.constant(4)  # by sprites that are all out of sight
MOST_LONGER = wp.constant(10 * 11 - 7 + 8)  # by ten sprites and by SCX


@wp.func
def sprite_penalty(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> int:
    """T-cycles that the sprites of a line add to mode 3. Pan Docs, "OBJ penalty algorithm"."""
    left = sprites.first_ten(c, line)
    is_empty = left == sprites.NONE
    shown = int(0)
    penalty = int(0)
    last = int(-1)  # the X of the ten sprites, one per byte; here of the last four; FF is none
    before = int(-1)
    first = int(-1)
    while left != sprites.NONE:
        x = row.load(c, hw.OAM + 1 + 4 * sprites.first_bit(left))
        left = left & (left - sprites.ONE)
        known = sprites.equal_bytes(last, x) | sprites.equal_bytes(before, x) | sprites.equal_bytes(first, x)
        own = 6 + wp.where(known != 0, 0, wp.max(0, 5 - ((x + c.scx - 8) & 7)))
        penalty = penalty + wp.where(x < 168, own, 0)
        shown = shown | int(x < 168)
        first = (first << 8) | ((before >> 24) & 0xFF)
        before = (before << 8) | ((last >> 24) & 0xFF)
        last = (last << 8) | x
    return wp.where(is_empty, 0, wp.where(shown == 0, -4, wp.max(0, penalty - 7)))


@wp.func(inline=False)
def extra(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> int:
    """T-cycles by which mode 3 of a line differs from 172. On a Game Boy Color it differs from 170, except in the first
    frame, and SCX does not prolong it. Not inlined: that would cost a GPU's common path registers."""
    extra = int(0)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        extra = sprite_penalty(m, c, line)
    if model.COLOR:
        return wp.where(extra > 0, (extra + 3) & ~3, extra)
    return extra + wp.where(c.lcd_first_frame == 0, (((c.scx & 7) + 3) >> 2) * 4, 0)
