"""The painter of a DMG's lines: from VRAM, OAM and the current registers; every `pixel_step`-th pixel.

A line consists of groups of 8 pixels. A group is two bytes, its planes; bit 7 of each is the leftmost pixel.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.hw.lcd import sprites
from gbxcule_puffer.emulator.state import Cpu, Machine

MAP0 = wp.constant(hw.VRAM + 0x1800)
MAP1 = wp.constant(hw.VRAM + 0x1C00)
GROUP = wp.constant(8)  # pixels
GROUPS = wp.constant(hw.SCREEN_WIDTH // 8)
# Attributes of a sprite, in an entry of OAM as one word
BEHIND, FLIPPED_DOWN = wp.constant(-(1 << 31)), wp.constant(1 << 30)
FLIPPED_RIGHT, SECOND_PALETTE, SECOND_BANK = wp.constant(1 << 29), wp.constant(1 << 28), wp.constant(1 << 27)

# Bits 8 to 15 of `q` are the low plane, 0 to 7 the high one, the leftmost pixel lowest.
_FOUR_PIXELS = """
#if defined(__CUDA_ARCH__)
    const unsigned q = __brev((unsigned)planes) >> 16;
    unsigned numbers;
    if (step == 2) {
        numbers = ((q >> 8) & 0x55) | ((q & 0x55) << 1);
        numbers = (numbers | numbers << 4) & 0x0F0F;
        numbers = (numbers | numbers << 2) & 0x3333;
    } else {
        const auto spread = [](unsigned bits) {
            bits = (bits | bits << 6) & 0x0303;
            return (bits | bits << 3) & 0x1111;
        };
        numbers = spread((q >> (8 + first)) & 15) | spread((q >> first) & 15) << 1;
    }
    return (int)__byte_perm((unsigned)shades, 0, numbers);
#else
    unsigned word = 0;
    for (int i = 0; i < 4; ++i) {
        const int bits = planes >> (7 - first - i * step);
        word |= (((unsigned)shades >> (8 * ((bits & 1) | ((bits >> 7) & 2)))) & 3) << (8 * i);
    }
    return (int)word;
#endif
"""


@wp.func_native(_FOUR_PIXELS)
def four_pixels(shades: int, planes: int, first: int, step: int) -> int:
    """Every `step`-th pixel (1 or 2) of a group from pixel `first`, as bytes; shades: of the four colours."""
    ...


@wp.func
def number_at(planes: int, column: int, is_flipped: bool) -> int:
    """The colour number of a pixel of a tile's row."""
    bits = planes >> wp.where(is_flipped, column, 7 - column)
    return (bits & 1) | ((bits >> 7) & 2)


@wp.func
def shade(palette: int, color: int) -> int:
    """Shade 0-3 of a colour number."""
    return (palette >> (2 * color)) & 3


@wp.func
def shades_of(palette: int) -> int:
    """The shades of the four colours, a byte each."""
    return (palette & 3) | ((palette & 12) << 6) | ((palette & 48) << 12) | ((palette & 192) << 18)


@wp.func
def address_of_line(m: wp.ref[Machine], c: wp.ref[Cpu], line: int) -> wp.uint64:
    """The address of a line in the screen."""
    shift = m.pixel_step - 1
    return intrinsics.address_of_picture(m.screen, c.env) + wp.uint64((line >> shift) * (hw.SCREEN_WIDTH >> shift))


@wp.func(inline=False)
def blank(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """The whole picture in background colour 0."""
    screen = address_of_line(m, c, 0)
    words = (hw.SCREEN_HEIGHT // m.pixel_step) * (hw.SCREEN_WIDTH // m.pixel_step) // 4
    for word in range(words):
        intrinsics.store_word(screen, 4 * word, (c.bgp & 3) * 0x01010101)


@wp.func
def tile_row(c: wp.ref[Cpu], bank: int, tile: int, y: int) -> int:
    """Row `y` of a tile of a map: low plane in bits 7-0, high plane in bits 15-8; bank: the address of VRAM's bank."""
    number = wp.where((c.lcdc & hw.LCDC_TILE_DATA) != 0, tile, (tile ^ 0x80) + 0x80)
    return row.load_half(c, bank + number * 16 + (y & 7) * 2)


@wp.func
def tile_at(c: wp.ref[Cpu], map_row: int, column: int) -> int:
    """The tile at a column, in pixels, of a map's row."""
    return row.load(c, map_row + ((column >> 3) & 31))


@wp.func
def row_of_map(tile_map: int, y: int) -> int:
    """The address of the map's row that contains line `y`."""
    return tile_map + ((y >> 3) & 31) * 32


@wp.func
def join(planes: int, after: int, shift: int) -> int:
    """The planes of the 8 pixels that begin at pixel `shift` of a tile's row and continue in the next tile's row."""
    low = (planes << shift) & 0xFF | ((after & 0xFF) >> (8 - shift))
    high = ((planes >> 8) << shift) & 0xFF | (after >> (16 - shift))
    return low | (high << 8)


@wp.func
def group_of_map(c: wp.ref[Cpu], tile_map: int, column: int, y: int) -> int:
    """The planes of the 8 pixels of a map that begin at `column`."""
    map_row = row_of_map(tile_map, y)
    planes = tile_row(c, hw.VRAM, tile_at(c, map_row, column), y)
    if (column & 7) != 0:
        planes = join(planes, tile_row(c, hw.VRAM, tile_at(c, map_row, column + GROUP), y), column & 7)
    return planes


@wp.func
def window_shows(c: wp.ref[Cpu], line: int) -> bool:
    """True if a line shows the window."""
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
def window_left(c: wp.ref[Cpu], line: int) -> int:
    """The column at which the window begins, or SCREEN_WIDTH if it does not show."""
    return wp.where(window_shows(c, line), c.wx - 7, hw.SCREEN_WIDTH)


@wp.func
def is_blank(c: wp.ref[Cpu], left: int) -> bool:
    """True if a line shows neither background nor window: then no pixel has colour 0 for the sprites' priority."""
    return left == hw.SCREEN_WIDTH and (c.lcdc & hw.LCDC_BG_ENABLE) == 0


@wp.func
def layer(c: wp.ref[Cpu], line: int, left: int, is_window: bool):
    """The map of the window, which begins at column `left`, or of the background: its address, the column at the left
    of the screen, and the row that a line shows."""
    is_map1 = (c.lcdc & wp.where(is_window, hw.LCDC_WINDOW_MAP, hw.LCDC_BG_MAP)) != 0
    tile_map = wp.where(is_map1, MAP1, MAP0)
    return tile_map, wp.where(is_window, -left, c.scx), wp.where(is_window, window_row(c, line), line + c.scy)


@wp.func
def group_of_line(c: wp.ref[Cpu], line: int, x: int, left: int) -> int:
    """The planes of the 8 pixels of a line from column `x` on; left: where its window begins."""
    planes = int(0)
    if x < left:
        background, scroll, y = layer(c, line, left, False)
        planes = group_of_map(c, background, x + scroll, y)
    if x + GROUP > left:
        window, begin, window_y = layer(c, line, left, True)
        over = 0x101 * (0xFF >> wp.max(left - x, 0))  # pixels that show the window
        planes = (planes & ~over) | (group_of_map(c, window, x + begin, window_y) & over)
    return planes


@wp.func
def store_group(m: wp.ref[Machine], screen: wp.uint64, group: int, shades: int, planes: int):
    """Store the kept pixels of 8 pixels of a line; `screen` is the line's address."""
    x = group * GROUP
    if m.pixel_step == 2:
        intrinsics.store_word(screen, x >> 1, four_pixels(shades, planes, 0, 2))
    else:
        intrinsics.store_word(screen, x, four_pixels(shades, planes, 0, 1))
        intrinsics.store_word(screen, x + 4, four_pixels(shades, planes, 4, 1))


@wp.func
def draw_group(m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, line: int, group: int):
    """Background and window of 8 pixels of a line; `screen` is the line's address."""
    left = window_left(c, line)
    shades = (c.bgp & 3) * 0x01010101
    planes = int(0)
    if not is_blank(c, left):
        shades = shades_of(c.bgp)
        planes = group_of_line(c, line, group * GROUP, left)
    store_group(m, screen, group, shades, planes)


@wp.func
def draw_run(
    m: wp.ref[Machine], c: wp.ref[Cpu], screen: wp.uint64, tile_map: int, scroll: int, y: int, first: int, end: int
):
    """The groups from `first` to `end` of a line, from line `y` of a map whose column `scroll` is at the left of the
    screen. Four groups at a time, so that a GPU waits for their loads together."""
    shades = shades_of(c.bgp)
    shift = scroll & 7
    map_row = row_of_map(tile_map, y)
    group = first
    planes = tile_row(c, hw.VRAM, tile_at(c, map_row, scroll + GROUP * first), y)
    while group < end:
        column = scroll + GROUP * group
        tile1 = tile_at(c, map_row, column + GROUP)
        tile2 = tile_at(c, map_row, column + 2 * GROUP)
        tile3 = tile_at(c, map_row, column + 3 * GROUP)
        tile4 = tile_at(c, map_row, column + 4 * GROUP)
        planes1 = tile_row(c, hw.VRAM, tile1, y)
        planes2 = tile_row(c, hw.VRAM, tile2, y)
        planes3 = tile_row(c, hw.VRAM, tile3, y)
        planes4 = tile_row(c, hw.VRAM, tile4, y)
        store_group(m, screen, group, shades, join(planes, planes1, shift))
        if group + 1 < end:
            store_group(m, screen, group + 1, shades, join(planes1, planes2, shift))
        if group + 2 < end:
            store_group(m, screen, group + 2, shades, join(planes2, planes3, shift))
        if group + 3 < end:
            store_group(m, screen, group + 3, shades, join(planes3, planes4, shift))
        planes = planes4
        group = group + 4


@wp.func
def draw_background(m: wp.ref[Machine], c: wp.ref[Cpu], line: int):
    """Background and window of a line."""
    screen = address_of_line(m, c, line)
    left = window_left(c, line)
    if is_blank(c, left):
        for word in range((hw.SCREEN_WIDTH // 4) >> (m.pixel_step - 1)):
            intrinsics.store_word(screen, 4 * word, (c.bgp & 3) * 0x01010101)
    else:
        run = int(0)
        while run < 2:  # a loop, so that draw_run is compiled once
            tile_map, scroll, y = layer(c, line, left, run != 0)
            begin = wp.where(run == 0, 0, (wp.max(left, 0) + GROUP - 1) >> 3)
            end = wp.where(run == 0, wp.max(left, 0) >> 3, GROUPS)
            if begin < end:
                draw_run(m, c, screen, tile_map, scroll, y, begin, end)
            run = run + 1
        if left > 0 and (left & 7) != 0:
            draw_group(m, c, screen, line, left >> 3)


@wp.func
def sprite_planes(c: wp.ref[Cpu], sprite: int, line: int) -> int:
    """The planes of the 8 pixels of a sprite (an entry of OAM) on a line."""
    height = sprites.height(c)
    y = line + 16 - (sprite & 0xFF)
    tile = (sprite >> 16) & 0xFF
    if (sprite & FLIPPED_DOWN) != 0:
        y = height - 1 - y
    if height == 16:
        tile = tile & 0xFE
    data = hw.VRAM + tile * 16 + y * 2
    if model.COLOR:
        if c.color_mode != 0 and (sprite & SECOND_BANK) != 0:
            data = data - hw.VRAM + c.color_base
    return row.load_half(c, data)


@wp.func
def is_color_0(c: wp.ref[Cpu], line: int, x: int) -> bool:
    """True if a sprite behind the background shows at column `x`."""
    left = window_left(c, line)
    pixel = 0x8080 >> (x & 7)
    return not is_blank(c, left) and (group_of_line(c, line, x & ~7, left) & pixel) == 0


@wp.func
def draw_sprite_pixel(m: wp.ref[Machine], c: wp.ref[Cpu], line: int, sprite: int, planes: int, dx: int):
    """One kept pixel of a sprite on a line."""
    x = ((sprite >> 8) & 0xFF) - 8 + dx
    if x >= 0 and x < hw.SCREEN_WIDTH:
        color = number_at(planes, dx, (sprite & FLIPPED_RIGHT) != 0)
        if color != 0 and ((sprite & BEHIND) == 0 or is_color_0(c, line, x)):
            palette = wp.where((sprite & SECOND_PALETTE) != 0, c.obp1, c.obp0)
            intrinsics.store_byte(address_of_line(m, c, line), x >> (m.pixel_step - 1), shade(palette, color))
