"""The length of mode 3, which SCX and sprites prolong. Pan Docs, "Mode 3 length"; figures as PyBoy has them."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.state import Cpu, Machine

NONE = wp.constant(wp.uint64(0))
ONE = wp.constant(wp.uint64(1))


@wp.func
def sprite_penalty(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """T-cycles that the sprites of line LY add to mode 3. Pan Docs, "OBJ penalty algorithm"."""
    height = 8
    if (c.lcdc & hw.LCDC_OBJ_SIZE) != 0:
        height = 16
    sprites = intrinsics.sprites(c.row + wp.uint64(hw.OAM), c.ly + 16, height)
    count = int(0)
    groups = int(0)
    penalty = int(0)
    left = sprites
    while left != NONE and count < 10:
        count = count + 1
        x = row.load(c, hw.OAM + 1 + 4 * intrinsics.first_bit(left))
        earlier = sprites ^ left
        left = left & (left - ONE)
        if x < 168:
            penalty = penalty + 6
            is_new = int(1)
            while earlier != NONE:
                if row.load(c, hw.OAM + 1 + 4 * intrinsics.first_bit(earlier)) == x:
                    is_new = 0
                earlier = earlier & (earlier - ONE)
            if is_new == 1:
                groups = groups + 1
                penalty = penalty + wp.max(0, 5 - ((x + c.scx - 8) & 7))
    result = 0
    if count != 0:
        if groups == 0:
            result = -4
        else:
            result = wp.max(0, penalty - 7)
    return result


@wp.func
def extra_of_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> int:
    """`extra` of any line on a Game Boy Color, where SCX prolongs nothing."""
    ly = c.ly
    c.ly = line
    extra = int(0)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        extra = sprite_penalty(m, c)
    c.ly = ly
    return wp.where(extra > 0, (extra + 3) & ~3, extra)


@wp.func
def extra(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """T-cycles by which mode 3 of line LY differs from 172; from 170 on a Game Boy Color, but for the first frame."""
    if model.COLOR:
        return extra_of_line(m, c, c.ly)
    extra = int(0)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        extra = sprite_penalty(m, c)
    if c.lcd_first_frame == 0:
        extra = extra + (((c.scx & 7) + 3) >> 2) * 4
    return extra
