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
# Of a DMG's cartridge: colours 0 and 1 in one word, 2 and 3 in the other, for BGP and for OBP0 and OBP1
BG_LOW, BG_HIGH, OBJ_LOW, OBJ_HIGH = (
    wp.constant(hw.COMPATIBLE_COLORS[first] | hw.COMPATIBLE_COLORS[first + 1] << 16) for first in (0, 2, 4, 6)
)


@wp.func
def grey(color: int) -> int:
    """The shade 0-3 of a colour."""
    luma = (2 * (color & 31) + 5 * ((color >> 5) & 31) + ((color >> 10) & 31)) >> 3
    return 3 - (luma >> 3)


@wp.func
def color_of(low: int, high: int, number: int) -> int:
    """Colour `number` of four, two in each word."""
    return (wp.where((number & 2) != 0, high, low) >> (16 * (number & 1))) & 0x7FFF


@wp.func
def compatible_pair(palette: int, low: int, high: int) -> int:
    """The two of four colours that the lower two shades of BGP, OBP0 or OBP1 choose, as a word."""
    return color_of(low, high, palette & 3) | (color_of(low, high, (palette >> 2) & 3) << 16)


@wp.func
def background_colors(c: wp.ref[Cpu], attributes: int):
    """The four colours of a tile of the background or the window, two words."""
    low = compatible_pair(c.bgp, BG_LOW, BG_HIGH)
    high = compatible_pair(c.bgp >> 4, BG_LOW, BG_HIGH)
    if c.color_mode != 0:
        place = c.color_base + hw.COLOR_PALETTES + 8 * (attributes & 7)
        low = row.load_word(c, place)
        high = row.load_word(c, place + 4)
    return low, high


@wp.func
def sprite_colors(c: wp.ref[Cpu], attributes: int):
    """The four colours of a sprite, two words."""
    palette = wp.where((attributes & 0x10) != 0, c.obp1, c.obp0)
    low = compatible_pair(palette, OBJ_LOW, OBJ_HIGH)
    high = compatible_pair(palette >> 4, OBJ_LOW, OBJ_HIGH)
    if c.color_mode != 0:
        place = c.color_base + hw.COLOR_PALETTES + hw.OBJ_PALETTES + 8 * (attributes & 7)
        low = row.load_word(c, place)
        high = row.load_word(c, place + 4)
    return low, high


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
    color = color_of(BG_LOW, BG_HIGH, c.bgp & 3)
    screen = render.address_of_line(m, c, 0)
    colors = colors_of_line(m, c, 0)
    for index in range((hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)):
        intrinsics.store_byte(screen, index, grey(color))
        store_color(colors, index, color)


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, colors: wp.uint64, line: int):
    """Background and window of a line, a tile at a time."""
    left = int(hw.SCREEN_WIDTH)  # where the window begins
    if render.window_shows(c, line):
        left = c.wx - 7
    is_blank = left == hw.SCREEN_WIDTH and c.color_mode == 0 and (c.lcdc & hw.LCDC_BG_ENABLE) == 0
    x = int(0)
    while x < hw.SCREEN_WIDTH:
        is_window = x >= left
        scroll = wp.where(is_window, -left, c.scx)
        y = wp.where(is_window, render.window_row(c, line), line + c.scy)
        is_map1 = (c.lcdc & wp.where(is_window, hw.LCDC_WINDOW_MAP, hw.LCDC_BG_MAP)) != 0
        place = wp.where(is_map1, render.MAP1, render.MAP0) + ((y >> 3) & 31) * 32 + (((x + scroll) >> 3) & 31)
        tile = row.load(c, place)
        attributes = int(0)
        if c.color_mode != 0:
            attributes = row.load(c, place - hw.VRAM + c.color_base)
        if (c.lcdc & hw.LCDC_TILE_DATA) == 0:
            tile = (tile ^ 0x80) + 0x80
        tile_line = wp.where((attributes & 0x40) != 0, 7 - (y & 7), y & 7)
        data = wp.where((attributes & 0x08) != 0, c.color_base, hw.VRAM) + tile * 16 + tile_line * 2
        planes = wp.where(is_blank, 0, row.load(c, data) | (row.load(c, data + 1) << 8))
        low, high = background_colors(c, attributes)
        end = wp.min(x + 8 - ((x + scroll) & 7), wp.where(is_window, hw.SCREEN_WIDTH, left))
        while x < end:
            bit = (x + scroll) & 7
            bits = planes >> wp.where((attributes & 0x20) != 0, bit, 7 - bit)
            number = (bits & 1) | ((bits >> 7) & 2)
            flags = wp.where(number == 0 and not is_blank, COLOR_0, 0)
            flags = flags | wp.where((attributes & 0x80) != 0, IN_FRONT, 0)
            index = x >> (m.pixel_step - 1)
            store_color(colors, index, color_of(low, high, number))
            intrinsics.store_byte(screen, index, flags)
            x = x + m.pixel_step


@wp.func
def is_hidden(c: wp.ref[Cpu], attributes: int, under: int) -> bool:
    """True where the background is in front of a sprite's pixel."""
    is_behind = (attributes & 0x80) != 0
    if c.color_mode != 0:
        is_behind = (c.lcdc & hw.LCDC_BG_ENABLE) != 0 and (is_behind or (under & IN_FRONT) != 0)
    return is_behind and (under & COLOR_0) == 0


@wp.func(inline=False)
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
    low, high = sprite_colors(c, attributes)
    x = left + (left & (m.pixel_step - 1))
    while x < left + 8:
        if x >= 0 and x < hw.SCREEN_WIDTH:
            bits = planes >> wp.where((attributes & 0x20) != 0, x - left, left + 7 - x)
            number = (bits & 1) | ((bits >> 7) & 2)
            index = x >> (m.pixel_step - 1)
            if number != 0 and not is_hidden(c, attributes, intrinsics.load_byte(screen, index)):
                store_color(colors, index, color_of(low, high, number))
        x = x + m.pixel_step


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
def draw_sprites(
    m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, colors: wp.uint64, line: int, height: int, sprites: int
):
    """The sprites of a line (sprites_end), drawn from last to first in OAM; as a DMG by X before that."""
    above = int(0x10000)  # key of the sprite drawn last
    for _ in range(sprites >> 8):
        best = int(-1)
        for index in range(sprites & 0xFF):
            sprite = row.load_word(c, hw.OAM + 4 * index)
            y = line + 16 - (sprite & 0xFF)
            key = wp.where(c.color_mode != 0, 0, sprite & 0xFF00) | index
            if y >= 0 and y < height and key < above and key > best:
                best = key
        above = best
        draw_sprite(m, c, screen, colors, line, row.load_word(c, hw.OAM + 4 * (best & 0xFF)), height)


@wp.func
def draw_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Draw a line that is kept."""
    screen = render.address_of_line(m, c, line)
    colors = colors_of_line(m, c, line)
    draw_background(m, c, screen, colors, line)
    if (c.lcdc & hw.LCDC_OBJ_ENABLE) != 0:
        height = wp.where((c.lcdc & hw.LCDC_OBJ_SIZE) != 0, 16, 8)
        draw_sprites(m, c, screen, colors, line, height, sprites_end(c, line, height))
    for index in range(hw.SCREEN_WIDTH // m.pixel_step):
        color = intrinsics.load_byte(colors, 2 * index) | (intrinsics.load_byte(colors, 2 * index + 1) << 8)
        intrinsics.store_byte(screen, index, grey(color))
