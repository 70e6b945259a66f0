"""The painter of a Game Boy Color's lines: colours of 15 bits, red lowest, into the memory row, and their shades of
grey into the screen.

Pan Docs, "Tile Maps", BG Map Attributes, and "OAM". A DMG's cartridge is drawn as on a DMG, in the palettes that PyBoy
chooses for it. While a line is drawn, its bytes of the screen hold flags for the sprites.
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

# Pixels of one tile: `shift` is where their planes have the first one, and `next` is from each to the next one
_STORE_PIXELS = """
    unsigned short* const to = (unsigned short*)colors + index;
    unsigned char* const under = (unsigned char*)screen + index;
    const unsigned long long four = (unsigned)low | (unsigned long long)(unsigned)high << 32;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#else
#pragma clang loop vectorize(disable)
#endif
    for (int i = 0; i < count; ++i, shift += next) {
        const int bits = planes >> shift, number = (bits & 1) | ((bits >> 7) & 2);
        to[i] = (unsigned short)(four >> (16 * number)) & 0x7FFF;
        under[i] = (unsigned char)(flags | (number == 0 ? zero : 0));
    }
"""

_GREYS = """
    const unsigned short* const from = (const unsigned short*)colors;
    unsigned char* const to = (unsigned char*)screen;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int i = 0; i < count; ++i) {
        const int color = from[i];
        to[i] = (unsigned char)(3 - ((2 * (color & 31) + 5 * ((color >> 5) & 31) + ((color >> 10) & 31)) >> 6));
    }
"""


@wp.func_native(_STORE_PIXELS)
def store_pixels(
    colors: wp.uint64,
    screen: wp.uint64,
    index: int,
    count: int,
    planes: int,
    shift: int,
    next: int,
    low: int,
    high: int,
    flags: int,
    zero: int,
):
    """Store `count` pixels of a tile from the pixel `index` of a line on: their colours, of four in the words `low` and
    `high`, and for the sprites `flags`, with `zero` where the colour's number is 0."""
    ...


@wp.func_native(_GREYS)
def greys_of(colors: wp.uint64, screen: wp.uint64, count: int):
    """Store the shades 0-3 of `count` colours."""
    ...


@wp.func_native("((unsigned short*)colors)[index] = (unsigned short)color;")
def store_color(colors: wp.uint64, index: int, color: int):
    """The colour of a pixel that is kept."""
    ...


@wp.func
def color_of(low: int, high: int, number: int) -> int:
    """Colour `number` of four, two in each word."""
    return (wp.where((number & 2) != 0, high, low) >> (16 * (number & 1))) & 0x7FFF


@wp.func
def compatible_pair(palette: int, low: int, high: int) -> int:
    """The two of four colours that the two lowest shades of BGP, OBP0 or OBP1 select, as a word."""
    return color_of(low, high, palette & 3) | (color_of(low, high, (palette >> 2) & 3) << 16)


@wp.func
def background_colors(c: wp.ref[Cpu], attributes: int):
    """The four colours of a tile of the background or the window, two words."""
    low = compatible_pair(c.bgp, BG_LOW, BG_HIGH)
    high = compatible_pair(c.bgp >> 4, BG_LOW, BG_HIGH)
    if c.color_mode != 0:
        offset = c.color_base + hw.COLOR_PALETTES + 8 * (attributes & 7)
        low = row.load_word(c, offset)
        high = row.load_word(c, offset + 4)
    return low, high


@wp.func
def sprite_colors(c: wp.ref[Cpu], attributes: int):
    """The four colours of a sprite, two words."""
    palette = wp.where((attributes & 0x10) != 0, c.obp1, c.obp0)
    low = compatible_pair(palette, OBJ_LOW, OBJ_HIGH)
    high = compatible_pair(palette >> 4, OBJ_LOW, OBJ_HIGH)
    if c.color_mode != 0:
        offset = c.color_base + hw.COLOR_PALETTES + hw.OBJ_PALETTES + 8 * (attributes & 7)
        low = row.load_word(c, offset)
        high = row.load_word(c, offset + 4)
    return low, high


@wp.func
def colors_of_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> wp.uint64:
    """The address of a line's colours."""
    pixels = (line // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)
    return c.row + wp.uint64(c.color_base + hw.COLOR_SIZE + 2 * pixels)


@wp.func(inline=False)
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in colour 0 of BGP, as in PyBoy for all cartridges."""
    color = color_of(BG_LOW, BG_HIGH, c.bgp & 3)
    screen = render.address_of_line(m, c, 0)
    colors = colors_of_line(m, c, 0)
    for index in range((hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step)):
        store_color(colors, index, color)
    greys_of(colors, screen, (hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step))


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Background and window of a line, one tile at a time. The bytes of the screen get flags for the sprites."""
    screen = render.address_of_line(m, c, line)
    colors = colors_of_line(m, c, line)
    left = render.window_left(c, line)
    is_blank = c.color_mode == 0 and render.is_blank(c, left)
    x = int(0)
    for layer in range(2):
        is_window = layer == 1
        end = wp.where(is_window, hw.SCREEN_WIDTH, left)
        tile_map, scroll, y = render.layer(c, line, left, is_window)
        map_row = render.row_of_map(tile_map, y)
        while x < end:
            address = map_row + (((x + scroll) >> 3) & 31)
            attributes = int(0)
            if c.color_mode != 0:
                attributes = row.load(c, address - hw.VRAM + c.color_base)
            bank = wp.where((attributes & 0x08) != 0, c.color_base, hw.VRAM)
            tile_y = wp.where((attributes & 0x40) != 0, ~y, y)
            planes = wp.where(is_blank, 0, render.tile_row(c, bank, row.load(c, address), tile_y))
            column = (x + scroll) & 7
            count = (wp.min(8 - column, end - x) + m.pixel_step - 1) >> (m.pixel_step - 1)
            first = wp.where((attributes & 0x20) != 0, column, 7 - column)
            next = wp.where((attributes & 0x20) != 0, m.pixel_step, -m.pixel_step)
            low, high = background_colors(c, attributes)
            flags = wp.where((attributes & 0x80) != 0, IN_FRONT, 0)
            zero = wp.where(is_blank, 0, COLOR_0)
            index = x >> (m.pixel_step - 1)
            store_pixels(colors, screen, index, count, planes, first, next, low, high, flags, zero)
            x = x + count * m.pixel_step


@wp.func
def is_hidden(c: wp.ref[Cpu], sprite: int, under: int) -> bool:
    """True if the background, whose flags are `under`, covers a sprite's pixel."""
    is_behind = (sprite & render.BEHIND) != 0
    if c.color_mode != 0:
        is_behind = (c.lcdc & hw.LCDC_BG_ENABLE) != 0 and (is_behind or (under & IN_FRONT) != 0)
    return is_behind and (under & COLOR_0) == 0


@wp.func
def draw_sprite_pixel(m: wp.ref[Machine], c: wp.ref[Cpu], line: int, sprite: int, planes: int, dx: int):
    """One kept pixel of a sprite on a line."""
    x = ((sprite >> 8) & 0xFF) - 8 + dx
    if x >= 0 and x < hw.SCREEN_WIDTH:
        number = render.number_at(planes, dx, (sprite & render.FLIPPED_RIGHT) != 0)
        index = x >> (m.pixel_step - 1)
        under = intrinsics.load_byte(render.address_of_line(m, c, line), index)
        if number != 0 and not is_hidden(c, sprite, under):
            low, high = sprite_colors(c, sprite >> 24)
            store_color(colors_of_line(m, c, line), index, color_of(low, high, number))


@wp.func
def store_greys(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Store the shades of grey of a drawn line in the screen."""
    greys_of(colors_of_line(m, c, line), render.address_of_line(m, c, line), hw.SCREEN_WIDTH // m.pixel_step)
