"""Draws a line of the picture from VRAM, OAM and the registers of this moment; every `pixel_step`-th pixel.

A line is composed 8 pixels at a time, which are two bytes, its planes: bit 7 of each is the leftmost pixel. Where a
sprite may have to know what lies under it, bit 7 of a pixel on the screen marks background colour 0.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, row
from gbxcule_puffer.emulator.state import Cpu, Machine

COLOR0 = wp.constant(0x80)
MAP0 = wp.constant(hw.VRAM + 0x1800)
MAP1 = wp.constant(hw.VRAM + 0x1C00)
GROUP = wp.constant(8)  # pixels


@wp.func
def shade(palette: int, color: int) -> int:
    """Shade 0-3 of a colour number."""
    return (palette >> (2 * color)) & 3


@wp.func
def address_of_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> wp.uint64:
    """The address of a line that is kept."""
    pixels = (line // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)
    return intrinsics.address_of_picture(m.screen, c.env) + wp.uint64(pixels)


@wp.func(inline=False)
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in background colour 0."""
    screen = address_of_line(m, c, 0)
    words = (hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step) // 4
    for word in range(words):
        intrinsics.store_word(screen, 4 * word, (c.bgp & 3) * 0x01010101)


@wp.func
def tile_row(c: wp.ref[Cpu], tile_map: int, column: int, y: int) -> int:
    """Row `y` of the tile at column `column` of a map: low plane in bits 7-0, high plane in bits 15-8."""
    tile = row.load(c, tile_map + ((y >> 3) & 31) * 32 + ((column >> 3) & 31))
    if (c.lcdc & hw.LCDC_TILE_DATA) == 0:
        tile = (tile ^ 0x80) + 0x80
    address = hw.VRAM + tile * 16 + (y & 7) * 2
    return row.load(c, address) | (row.load(c, address + 1) << 8)


@wp.func
def group_of_map(c: wp.ref[Cpu], tile_map: int, column: int, y: int) -> int:
    """The planes of the 8 pixels of a map that begin at `column`."""
    planes = tile_row(c, tile_map, column, y)
    shift = column & 7
    if shift != 0:
        after = tile_row(c, tile_map, column + GROUP, y)
        low = (planes << shift) & 0xFF | ((after & 0xFF) >> (8 - shift))
        high = ((planes >> 8) << shift) & 0xFF | (after >> (16 - shift))
        planes = low | (high << 8)
    return planes


@wp.func
def four_pixels(palette: int, planes: int, first: int, step: int, mark: int) -> int:
    """Every `step`-th pixel of a group from bit `first` down as bytes, with `mark` on those of colour 0."""
    word = int(0)
    for index in range(4):
        bits = planes >> (first - index * step)
        color = (bits & 1) | ((bits >> 7) & 2)
        value = shade(palette, color) | wp.where(color == 0, mark, 0)
        word = word | (value << (8 * index))
    return word


@wp.func
def store_group(m: wp.ref[Machine], screen: wp.uint64, x: int, palette: int, planes: int, mark: int):
    """8 pixels from column `x` on, as far as they are kept."""
    if m.pixel_step == 2:
        intrinsics.store_word(screen, x // 2, four_pixels(palette, planes, 7, 2, mark))
    else:
        intrinsics.store_word(screen, x, four_pixels(palette, planes, 7, 1, mark))
        intrinsics.store_word(screen, x + 4, four_pixels(palette, planes, 3, 1, mark))


@wp.func
def window_shows(c: wp.ref[Cpu], line: int) -> bool:
    """True where a line shows the window."""
    on = (c.lcdc & hw.LCDC_WINDOW_ENABLE) != 0 and c.wx < hw.SCREEN_WIDTH + 7
    return on and c.window_hit != 0 and line >= c.window_first


@wp.func
def window_row(c: wp.ref[Cpu], line: int) -> int:
    """The window's row on a line from next_line on: it counts the lines that show the window."""
    result = c.window_line
    if window_shows(c, line):
        result = result + 1 + line - wp.max(c.next_line, c.window_first)
    return result


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, line: int, mark: int):
    """Background and window of a line."""
    background = wp.where((c.lcdc & hw.LCDC_BG_MAP) != 0, MAP1, MAP0)
    window = wp.where((c.lcdc & hw.LCDC_WINDOW_MAP) != 0, MAP1, MAP0)
    left = int(hw.SCREEN_WIDTH)  # where the window begins
    if window_shows(c, line):
        left = c.wx - 7
    if left == hw.SCREEN_WIDTH and (c.lcdc & hw.LCDC_BG_ENABLE) == 0:  # blank, not colour 0 for the sprites' priority
        for word in range(hw.SCREEN_WIDTH // m.pixel_step // 4):
            intrinsics.store_word(screen, 4 * word, (c.bgp & 3) * 0x01010101)
    else:
        for group in range(hw.SCREEN_WIDTH // GROUP):
            x = group * GROUP
            planes = int(0)
            if x < left:
                planes = group_of_map(c, background, x + c.scx, line + c.scy)
            if x + GROUP > left:
                over = 0x101 * (0xFF >> wp.max(left - x, 0))  # pixels that show the window
                planes = (planes & ~over) | (group_of_map(c, window, x - left, window_row(c, line)) & over)
            store_group(m, screen, x, c.bgp, planes, mark)


@wp.func
def draw_sprite(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, line: int, sprite: int, height: int):
    """The 8 pixels of a sprite, an entry of OAM, on a line."""
    y = line + 16 - (sprite & 0xFF)
    left = ((sprite >> 8) & 0xFF) - 8
    tile = (sprite >> 16) & 0xFF
    attributes = (sprite >> 24) & 0xFF
    if (attributes & 0x40) != 0:
        y = height - 1 - y
    if height == 16:
        tile = tile & 0xFE
    palette = wp.where((attributes & 0x10) != 0, c.obp1, c.obp0)
    address = hw.VRAM + tile * 16 + y * 2
    planes = row.load(c, address) | (row.load(c, address + 1) << 8)
    for dx in range(8):
        x = left + dx
        if x >= 0 and x < hw.SCREEN_WIDTH and x % m.pixel_step == 0:
            bit = wp.where((attributes & 0x20) != 0, dx, 7 - dx)
            bits = planes >> bit
            color = (bits & 1) | ((bits >> 7) & 2)
            under = intrinsics.load_byte(screen, x // m.pixel_step)
            if color != 0 and ((attributes & 0x80) == 0 or (under & COLOR0) != 0):
                intrinsics.store_byte(screen, x // m.pixel_step, (under & COLOR0) | shade(palette, color))


@wp.func
def sprites_end(c: wp.ref[Cpu], line: int, height: int) -> int:
    """OAM index after the last sprite of a line, of which there are at most 10, and their number << 8."""
    count = int(0)
    end = int(0)
    for index in range(40):
        y = line + 16 - row.load(c, hw.OAM + 4 * index)
        if y >= 0 and y < height and count < 10:
            count = count + 1
            end = index + 1
    return (count << 8) | end


@wp.func
def draw_sprites(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, line: int, height: int, count: int, end: int):
    """The sprites of a line, drawn from high X to low X, for equal X from last to first in OAM."""
    above = int(0x10000)  # key of the sprite drawn last: X, then OAM index
    for _ in range(count):
        best = int(-1)
        for index in range(end):
            sprite = row.load_word(c, hw.OAM + 4 * index)
            y = line + 16 - (sprite & 0xFF)
            key = (sprite & 0xFF00) | index
            if y >= 0 and y < height and key < above and key > best:
                best = key
        above = best
        draw_sprite(m, c, screen, line, row.load_word(c, hw.OAM + 4 * (best & 0xFF)), height)


@wp.func
def compose_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Draw a line that is kept into the screen."""
    screen = address_of_line(m, c, line)
    height = wp.where((c.lcdc & hw.LCDC_OBJ_SIZE) != 0, 16, 8)
    sprites = int(0)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        sprites = sprites_end(c, line, height)
    draw_background(m, c, screen, line, wp.where(sprites != 0, COLOR0, 0))
    if sprites != 0:
        draw_sprites(m, c, screen, line, height, sprites >> 8, sprites & 0xFF)
        for word in range(hw.SCREEN_WIDTH // m.pixel_step // 4):
            intrinsics.store_word(screen, 4 * word, intrinsics.load_word(screen, 4 * word) & 0x03030303)


@wp.func(inline=False)
def draw_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """compose_line for the step kernels, of which it is a rare part."""
    compose_line(m, c, line)
