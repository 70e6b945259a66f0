"""Draws a line in colours of 15 bits, red lowest, into the memory row, and their shades of grey into the screen.

Pan Docs, "Tile Maps", BG Map Attributes, and "OAM"; without a cartridge for the Game Boy Color as a DMG, in the
palettes that PyBoy has for that. While a line is drawn, its bytes of the screen hold what sprites have to know.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, row
from gbxcule_puffer.emulator.hw.lcd import render
from gbxcule_puffer.emulator.state import Cpu, Machine

COLOR_0, IN_FRONT = wp.constant(1), wp.constant(2)  # of a pixel of the background
PALETTES = wp.constant(wp.types.vector(len(hw.COMPATIBLE_COLORS), wp.int32)(hw.COMPATIBLE_COLORS))
OBJ_PALETTES = wp.constant(64)


@wp.func
def grey(color: int) -> int:
    """The shade 0-3 of a colour."""
    luma = (2 * (color & 31) + 5 * ((color >> 5) & 31) + ((color >> 10) & 31)) >> 3
    return 3 - (luma >> 3)


@wp.func
def compatible_color(palette: int, number: int, color: int) -> int:
    """A colour of a DMG's cartridge: palette BGP (number 0), OBP0 or OBP1, as PyBoy shows it."""
    palettes = PALETTES
    return palettes[4 * number + ((palette >> (2 * color)) & 3)]


@wp.func
def palette_color(c: wp.ref[Cpu], offset: int, palette: int, color: int) -> int:
    """A colour of the palettes from `offset` on."""
    place = c.color_base + hw.COLOR_PALETTES + offset + palette * 8 + color * 2
    return row.load(c, place) | ((row.load(c, place + 1) & 0x7F) << 8)


@wp.func
def colors_of_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> wp.uint64:
    """The address of a line's colours."""
    pixels = (line // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)
    return c.row + wp.uint64(c.color_base + hw.COLOR_SIZE + 2 * pixels)


@wp.func
def store_color(colors: wp.uint64, index: int, color: int):
    """The colour of a pixel that is kept."""
    intrinsics.store_byte(colors, 2 * index, color)
    intrinsics.store_byte(colors, 2 * index + 1, color >> 8)


@wp.func(inline=False)
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in colour 0 of BGP, as PyBoy has it for all cartridges."""
    color = compatible_color(c.bgp, 0, 0)
    screen = render.address_of_line(m, c, 0)
    colors = colors_of_line(m, c, 0)
    for index in range((hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)):
        intrinsics.store_byte(screen, index, grey(color))
        store_color(colors, index, color)


@wp.func
def draw_map(
    m: wp.ref[Machine],
    c: wp.ref[Cpu],
    screen: wp.uint64,
    colors: wp.uint64,
    tile_map: int,
    first: int,
    end: int,
    scroll: int,
    y: int,
):
    """Pixels `first` to `end` of a line from row `y` of a map, pixel x from its column x + scroll."""
    x = int(first)
    while x < end:
        column = x + scroll
        place = tile_map + ((y >> 3) & 31) * 32 + ((column >> 3) & 31)
        tile = row.load(c, place)
        attributes = int(0)
        if c.color_mode != 0:
            attributes = row.load(c, place - hw.VRAM + c.color_base)
        if (c.lcdc & hw.LCDC_TILE_DATA) == 0:
            tile = (tile ^ 0x80) + 0x80
        line = wp.where((attributes & 0x40) != 0, 7 - (y & 7), y & 7)
        data = wp.where((attributes & 0x08) != 0, c.color_base, hw.VRAM) + tile * 16 + line * 2
        planes = row.load(c, data) | (row.load(c, data + 1) << 8)
        count = wp.min(8 - (column & 7), end - x)
        for i in range(count):
            if (x + i) % m.pixel_step == 0:
                bit = (column + i) & 7
                bits = planes >> wp.where((attributes & 0x20) != 0, bit, 7 - bit)
                number = (bits & 1) | ((bits >> 7) & 2)
                color = int(0)
                if c.color_mode != 0:
                    color = palette_color(c, 0, attributes & 7, number)
                else:
                    color = compatible_color(c.bgp, 0, number)
                index = (x + i) // m.pixel_step
                store_color(colors, index, color)
                flags = wp.where(number == 0, COLOR_0, 0) | wp.where((attributes & 0x80) != 0, IN_FRONT, 0)
                intrinsics.store_byte(screen, index, flags)
        x = x + count


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, colors: wp.uint64, line: int):
    """Background and window of a line."""
    background = wp.where((c.lcdc & hw.LCDC_BG_MAP) != 0, render.MAP1, render.MAP0)
    window = wp.where((c.lcdc & hw.LCDC_WINDOW_MAP) != 0, render.MAP1, render.MAP0)
    left = int(hw.SCREEN_WIDTH)
    if render.window_shows(c, line):
        left = c.wx - 7
    if left == hw.SCREEN_WIDTH and c.color_mode == 0 and (c.lcdc & hw.LCDC_BG_ENABLE) == 0:
        for index in range(hw.SCREEN_WIDTH // m.pixel_step):
            store_color(colors, index, compatible_color(c.bgp, 0, 0))
            intrinsics.store_byte(screen, index, 0)
    else:
        draw_map(m, c, screen, colors, background, 0, left, c.scx, line + c.scy)
        row_of_window = render.window_row(c, line)
        draw_map(m, c, screen, colors, window, wp.max(left, 0), hw.SCREEN_WIDTH, -left, row_of_window)


@wp.func
def is_hidden(c: wp.ref[Cpu], attributes: int, under: int) -> bool:
    """True where the background is in front of a sprite's pixel."""
    is_behind = (attributes & 0x80) != 0
    if c.color_mode != 0:
        is_behind = (c.lcdc & hw.LCDC_BG_ENABLE) != 0 and (is_behind or (under & IN_FRONT) != 0)
    return is_behind and (under & COLOR_0) == 0


@wp.func
def draw_sprite(
    m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, colors: wp.uint64, line: int, sprite: int, height: int
):
    """The 8 pixels of a sprite, an entry of OAM, on a line."""
    y = line + 16 - (sprite & 0xFF)
    left = ((sprite >> 8) & 0xFF) - 8
    tile = (sprite >> 16) & 0xFF
    attributes = (sprite >> 24) & 0xFF
    if (attributes & 0x40) != 0:
        y = height - 1 - y
    if height == 16:
        tile = tile & 0xFE
    data = hw.VRAM + tile * 16 + y * 2
    if c.color_mode != 0 and (attributes & 0x08) != 0:
        data = data - hw.VRAM + c.color_base
    planes = row.load(c, data) | (row.load(c, data + 1) << 8)
    for dx in range(8):
        x = left + dx
        if x >= 0 and x < hw.SCREEN_WIDTH and x % m.pixel_step == 0:
            bits = planes >> wp.where((attributes & 0x20) != 0, dx, 7 - dx)
            number = (bits & 1) | ((bits >> 7) & 2)
            index = x // m.pixel_step
            if number != 0 and not is_hidden(c, attributes, intrinsics.load_byte(screen, index)):
                color = int(0)
                if c.color_mode != 0:
                    color = palette_color(c, OBJ_PALETTES, attributes & 7, number)
                elif (attributes & 0x10) != 0:
                    color = compatible_color(c.obp1, 2, number)
                else:
                    color = compatible_color(c.obp0, 1, number)
                store_color(colors, index, color)


@wp.func
def draw_sprites(
    m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, colors: wp.uint64, line: int, height: int, count: int
):
    """The first `count` sprites of a line, drawn from last to first in OAM; as a DMG by X before that."""
    above = int(0x10000)  # key of the sprite drawn last
    end = render.sprites_end(c, line, height) & 0xFF
    for _ in range(count):
        best = int(-1)
        for index in range(end):
            sprite = row.load_word(c, hw.OAM + 4 * index)
            y = line + 16 - (sprite & 0xFF)
            key = wp.where(c.color_mode != 0, 0, sprite & 0xFF00) | index
            if y >= 0 and y < height and key < above and key > best:
                best = key
        above = best
        draw_sprite(m, c, screen, colors, line, row.load_word(c, hw.OAM + 4 * (best & 0xFF)), height)


@wp.func(inline=False)
def draw_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Draw a line that is kept."""
    screen = render.address_of_line(m, c, line)
    colors = colors_of_line(m, c, line)
    draw_background(m, c, screen, colors, line)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        height = wp.where((c.lcdc & hw.LCDC_OBJ_SIZE) != 0, 16, 8)
        draw_sprites(m, c, screen, colors, line, height, render.sprites_end(c, line, height) >> 8)
    for index in range(hw.SCREEN_WIDTH // m.pixel_step):
        color = intrinsics.load_byte(colors, 2 * index) | (intrinsics.load_byte(colors, 2 * index + 1) << 8)
        intrinsics.store_byte(screen, index, grey(color))
