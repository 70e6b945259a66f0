"""How long mode 3 of a line is: SCX and sprites prolong it. Pan Docs, "Mode 3 length"; figures as PyBoy has them."""

import warp as wp

from gbxcule_puffer import hardware as hw
from gbxcule_puffer.hw import native, row
from gbxcule_puffer.state import Cpu, Machine


@wp.func
def sprite_penalty(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """T-cycles that the sprites of line LY add to mode 3. Pan Docs, "OBJ penalty algorithm"."""
    height = 8
    if (c.lcdc & hw.LCDC_OBJ_SIZE) != 0:
        height = 16
    if native.any_sprite(c.row + wp.uint64(hw.OAM), c.ly + 16, height) == 0:
        return 0
    count = int(0)
    groups = int(0)
    penalty = int(0)
    for index in range(40):
        sprite = row.load_word(c, hw.OAM + 4 * index)
        y = c.ly + 16 - (sprite & 0xFF)
        if y >= 0 and y < height and count < 10:
            count = count + 1
            x = (sprite >> 8) & 0xFF
            if x < 168:
                penalty = penalty + 6
                is_new = int(1)
                for earlier in range(index):
                    other = row.load_word(c, hw.OAM + 4 * earlier)
                    other_y = c.ly + 16 - (other & 0xFF)
                    if other_y >= 0 and other_y < height and ((other >> 8) & 0xFF) == x:
                        is_new = 0
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
def extra(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """T-cycles by which mode 3 of line LY differs from 172."""
    extra = int(0)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        extra = sprite_penalty(m, c)
    if c.lcd_first_frame == 0:
        extra = extra + (((c.scx & 7) + 3) >> 2) * 4
    return extra
