"""Draws a line of the picture from VRAM, OAM and the registers of this moment; every `pixel_step`-th pixel.

While a line is being composed, bit 7 of a pixel marks background colour 0, which a sprite with the priority bit needs.
"""

import warp as wp

from gbxcule_puffer import hardware as hw
from gbxcule_puffer.state import Cpu, Machine

COLOR0 = wp.constant(0x80)
MAP0 = wp.constant(0x1800)
MAP1 = wp.constant(0x1C00)


@wp.func
def shade(palette: int, color: int) -> int:
    """Shade 0-3 of a colour number."""
    return (palette >> (2 * color)) & 3


@wp.func(inline=False)
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in background colour 0."""
    value = wp.uint8(c.bgp & 3)
    for y in range(hw.SCREEN_HEIGHT // m.pixel_step):
        for x in range(hw.SCREEN_WIDTH // m.pixel_step):
            m.screen[c.env, y, x] = value


@wp.func
def tile_row(m: wp.ref[Machine], c: wp.ref[Cpu], tile_map: int, x: int, y: int) -> int:
    """The two bit planes of 8 pixels of a tile map: low plane in bits 7-0, high plane in bits 15-8."""
    tile = int(m.memory[c.env, tile_map + ((y >> 3) & 31) * 32 + ((x >> 3) & 31)])
    if (c.lcdc & hw.LCDC_TILE_DATA) == 0:
        tile = (tile ^ 0x80) + 0x80
    address = tile * 16 + (y & 7) * 2
    return int(m.memory[c.env, address]) | (int(m.memory[c.env, address + 1]) << 8)


@wp.func
def window_shows(c: wp.ref[Cpu], line: int) -> bool:
    """Whether the window is on a line."""
    on = (c.lcdc & hw.LCDC_WINDOW_ENABLE) != 0 and c.wx < hw.SCREEN_WIDTH + 7
    return on and c.window_hit != 0 and line >= c.window_first


@wp.func
def window_row(c: wp.ref[Cpu], line: int) -> int:
    """The window's row on a line from next_line on: it counts the lines that show the window."""
    row = c.window_line
    if window_shows(c, line):
        row = row + 1 + line - wp.max(c.next_line, c.window_first)
    return row


@wp.func
def draw_tiles(m: wp.ref[Machine], c: wp.ref[Cpu], row: int, tile_map: int, y: int, shift: int, begin: int, end: int):
    """Pixels `begin` to `end` of screen row `row` from row `y` of a tile map; pixel x shows column x + `shift`."""
    planes = int(0)
    last = int(-1)
    x = begin + (begin % m.pixel_step)
    while x < end:
        column = x + shift
        if (column >> 3) != last:
            last = column >> 3
            planes = tile_row(m, c, tile_map, column, y)
        bits = planes >> (7 - (column & 7))
        color = (bits & 1) | ((bits >> 7) & 2)
        value = shade(c.bgp, color)
        if color == 0:
            value = value | COLOR0
        m.screen[c.env, row, x // m.pixel_step] = wp.uint8(value)
        x = x + m.pixel_step


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Background and window of a line."""
    row = line // m.pixel_step
    background = MAP0
    if (c.lcdc & hw.LCDC_BG_MAP) != 0:
        background = MAP1
    left = c.wx - 7
    if window_shows(c, line):
        window = MAP0
        if (c.lcdc & hw.LCDC_WINDOW_MAP) != 0:
            window = MAP1
        draw_tiles(m, c, row, background, line + c.scy, c.scx, 0, left)
        draw_tiles(m, c, row, window, window_row(c, line), -left, wp.max(left, 0), hw.SCREEN_WIDTH)
    elif (c.lcdc & hw.LCDC_BG_ENABLE) != 0:
        draw_tiles(m, c, row, background, line + c.scy, c.scx, 0, hw.SCREEN_WIDTH)
    else:  # blank, and not colour 0 for the sprites' priority
        for x in range(hw.SCREEN_WIDTH // m.pixel_step):
            m.screen[c.env, row, x] = wp.uint8(c.bgp & 3)


@wp.func
def draw_sprite(m: wp.ref[Machine], c: wp.ref[Cpu], line: int, sprite: int, height: int):
    """One sprite's 8 pixels on a line; `sprite` is its place in the memory row."""
    row = line + 16 - int(m.memory[c.env, sprite])
    left = int(m.memory[c.env, sprite + 1]) - 8
    tile = int(m.memory[c.env, sprite + 2])
    attributes = int(m.memory[c.env, sprite + 3])
    if (attributes & 0x40) != 0:
        row = height - 1 - row
    if height == 16:
        tile = tile & 0xFE
    palette = c.obp0
    if (attributes & 0x10) != 0:
        palette = c.obp1
    planes = int(m.memory[c.env, tile * 16 + row * 2]) | (int(m.memory[c.env, tile * 16 + row * 2 + 1]) << 8)
    y = line // m.pixel_step
    for dx in range(8):
        x = left + dx
        if x >= 0 and x < hw.SCREEN_WIDTH and x % m.pixel_step == 0:
            bit = 7 - dx
            if (attributes & 0x20) != 0:
                bit = dx
            bits = planes >> bit
            color = (bits & 1) | ((bits >> 7) & 2)
            under = int(m.screen[c.env, y, x // m.pixel_step])
            if color != 0 and ((attributes & 0x80) == 0 or (under & COLOR0) != 0):
                m.screen[c.env, y, x // m.pixel_step] = wp.uint8((under & COLOR0) | shade(palette, color))


@wp.func
def draw_sprites(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """The first 10 sprites of the line in OAM order, drawn from high X to low X, for equal X from last to first."""
    height = 8
    if (c.lcdc & hw.LCDC_OBJ_SIZE) != 0:
        height = 16
    count = int(0)
    end = int(0)
    for index in range(40):
        row = line + 16 - int(m.memory[c.env, hw.OAM - hw.ROW_BASE + 4 * index])
        if row >= 0 and row < height and count < 10:
            count = count + 1
            end = index + 1
    above = int(0x10000)  # key of the sprite drawn last: X, then OAM index
    for _ in range(count):
        best = int(-1)
        for index in range(end):
            sprite = hw.OAM - hw.ROW_BASE + 4 * index
            row = line + 16 - int(m.memory[c.env, sprite])
            key = (int(m.memory[c.env, sprite + 1]) << 8) | index
            if row >= 0 and row < height and key < above and key > best:
                best = key
        above = best
        draw_sprite(m, c, line, hw.OAM - hw.ROW_BASE + 4 * (best & 0xFF), height)


@wp.func(inline=False)
def draw_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """A line that is kept into the screen."""
    draw_background(m, c, line)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        draw_sprites(m, c, line)
    y = line // m.pixel_step
    for x in range(hw.SCREEN_WIDTH // m.pixel_step):
        m.screen[c.env, y, x] = m.screen[c.env, y, x] & wp.uint8(3)
