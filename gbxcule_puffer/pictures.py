"""Pictures of the screen for people, in PyBoy's colours: scaled by whole numbers, tiled, or as terminal text.

A picture is shades 0-3 (rows, columns) uint8, or colours (rows, columns) uint16, as in Emulator.colors.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, check_output, new_file, read_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

LEVELS = np.array([0xFF, 0x99, 0x55, 0x00], np.uint8)  # of the shades 0..3 in PyBoy's window: red, green and blue
TERMINAL_COLORS = np.array([231, 248, 240, 16], np.uint8)  # of the shades in a terminal's palette of 256
GREY_RAMP, GREY_STEP = (232, 255), 10  # of that palette, from level 8 upwards
CUBE, CUBE_BOUNDS = 16, np.array([48, 115, 155, 195, 235])  # of that palette: 6 x 6 x 6 colours, and what lies between
SCREENSHOT = Kind("picture", ConfigError, "give a screenshot as the emulator saves it, without borders or filters")
LARGEST_SCREENSHOT, MOST_SCALE = 2**22, 10  # bytes; pixels of a pixel
UPPER_HALF = "\u2580"


def to_rgb(picture: np.ndarray, scale: int = 1) -> np.ndarray:
    """A picture as RGB (scale * rows, scale * columns, 3) uint8, each pixel a square."""
    if picture.dtype == np.uint16:
        rgb = (np.stack([picture << 3, picture >> 2, picture >> 7], -1) & 0xF8).astype(np.uint8)
    else:
        rgb = np.stack([LEVELS[picture]] * 3, axis=-1)
    return rgb.repeat(scale, 0).repeat(scale, 1)


def mosaic(pictures: np.ndarray, columns: int | None = None, gap: int = 1) -> np.ndarray:
    """Pictures (n, rows, columns) side by side in one, row by row, with black gaps between them.

    columns: pictures per row; if None, chosen so that the mosaic is nearly square. Unused cells are black.
    """
    count, height, width = pictures.shape
    across = _across(count, columns)
    black = 0 if pictures.dtype == np.uint16 else 3
    sheet = np.full(mosaic_shape(count, height, width, columns, gap), black, pictures.dtype)
    for index, picture in enumerate(pictures):
        top, left = (index // across) * (height + gap), (index % across) * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def mosaic_shape(count: int, height: int, width: int, columns: int | None = None, gap: int = 1) -> tuple[int, int]:
    """Rows and columns of the `mosaic` of `count` pictures."""
    across = _across(count, columns)
    return -(-count // across) * (height + gap) - gap, across * (width + gap) - gap


def _across(count: int, columns: int | None) -> int:
    return columns or int(np.ceil(count**0.5))


def png_target(path: StrPath) -> Path:
    """The path of a PNG to write.

    Raises: ConfigError for a name that does not end with .png, and as `files.check_output`.
    """
    if Path(path).suffix.lower() != ".png":
        raise ConfigError(f"picture {path} has an unknown format: name it .png")
    return check_output(path)


def save_png(path: StrPath, picture: np.ndarray, scale: int = 4) -> None:
    """Write a picture as a PNG, each pixel `scale` pixels wide; raises as `write_png`."""
    write_png(path, to_rgb(picture, scale))


def write_png(path: StrPath, picture: np.ndarray) -> None:
    """Write a picture uint8, grey (rows, columns) or RGB (rows, columns, 3), as a PNG.

    Raises: ConfigError if Pillow is not installed, and the errors of `files.new_file`.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ConfigError("writing pictures needs Pillow: pip install pillow") from None
    with new_file(path) as file:
        Image.fromarray(picture).save(file, "PNG")


def read_shades(path: StrPath, shape: tuple[int, int]) -> np.ndarray:
    """A screenshot (PNG) as shades, `shape` uint8: of 160 x 144 pixels or a multiple, or as small as `shape`, in up to
    four greys; each becomes the nearest of PyBoy's.

    Raises: ConfigError for a file of another kind or size, or with more colours.
    """
    grey = _read_png(path, shape, "L")
    if (colours := len(np.unique(grey))) > len(LEVELS):
        raise SCREENSHOT.bad(path, f"has {colours} greys, a Game Boy has four")
    return np.abs(grey[..., None].astype(int) - LEVELS).argmin(-1).astype(np.uint8)


def read_colors(path: StrPath, shape: tuple[int, int]) -> np.ndarray:
    """A screenshot (PNG) of a Game Boy Color as colours, `shape` uint16: of a size as for read_shades; the upper 5 bits
    of each channel.

    Raises: ConfigError for a file of another kind or size.
    """
    red, green, blue = np.moveaxis(_read_png(path, shape, "RGB") >> 3, -1, 0).astype(np.uint16)
    return red | green << 5 | blue << 10


def _read_png(path: StrPath, shape: tuple[int, int], mode: str) -> np.ndarray:
    """The pixels of a screenshot at `shape`, in a mode of Pillow's."""
    from PIL import Image

    data = read_bytes(path, SCREENSHOT, LARGEST_SCREENSHOT)
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            columns, rows = image.size
            scale = columns // 160
            whole = (columns, rows) == (160 * scale, 144 * scale) and 1 <= scale <= MOST_SCALE
            if not whole and (rows, columns) != shape:
                raise SCREENSHOT.bad(path, f"has {columns} x {rows} pixels, not 160 x 144 or a multiple")
            pixels = np.asarray(image.convert("RGB").convert(mode))
    except (OSError, ValueError, SyntaxError) as error:
        if isinstance(error, ConfigError):
            raise
        raise SCREENSHOT.bad(path, "is not a PNG, or damaged") from None
    if whole:
        pixels = pixels[::scale, ::scale]
        pixels = pixels[:: 144 // shape[0], :: 160 // shape[1]]
    return pixels


def indexed(picture: np.ndarray, scale: int = 1) -> Image:
    """A picture as a Pillow image with a palette, each pixel a square: its own colours, or, if it has more than 256,
    the nearest to them."""
    from PIL import Image

    if picture.dtype == np.uint8:
        palette, indices = np.stack([LEVELS] * 3, -1), picture
    else:
        colors, indices = np.unique(picture, return_inverse=True)
        if len(colors) > 256:
            return Image.fromarray(to_rgb(picture, scale)).quantize(256)
        palette, indices = to_rgb(colors[None])[0], indices.reshape(picture.shape).astype(np.uint8)
    image = Image.fromarray(indices.repeat(scale, 0).repeat(scale, 1), "P")
    image.putpalette(palette.tobytes())
    return image


def for_terminal(picture: np.ndarray) -> np.ndarray:
    """A picture as a terminal's colours (rows, columns) uint8."""
    return TERMINAL_COLORS[picture] if picture.dtype == np.uint8 else _nearest(to_rgb(picture))


def _nearest(rgb: np.ndarray) -> np.ndarray:
    """The nearest colours of a terminal's palette to RGB (..., 3)."""
    return (CUBE + np.searchsorted(CUBE_BOUNDS, rgb) @ np.array([36, 6, 1])).astype(np.uint8)


def shrunk(picture: np.ndarray, columns: int, rows: int) -> np.ndarray:
    """A picture in a terminal's colours (rows or fewer, columns or fewer), in proportion; the number of rows is even,
    and each pixel is the mean of the pixels that it covers."""
    from PIL import Image

    height, width = picture.shape
    scale = min(columns / width, rows / height)
    size = max(1, int(width * scale)), 2 * max(1, int(height * scale) // 2)
    means = np.asarray(Image.fromarray(to_rgb(picture)).resize(size, Image.Resampling.BOX))
    if picture.dtype == np.uint16:
        return _nearest(means)
    greys = means[..., 0].astype(np.int32)
    ramp = np.clip(GREY_RAMP[0] + (greys - 8 + GREY_STEP // 2) // GREY_STEP, *GREY_RAMP)
    return np.where(greys < 4, TERMINAL_COLORS[3], np.where(greys > 246, TERMINAL_COLORS[0], ramp)).astype(np.uint8)


def half_blocks(colours: np.ndarray) -> list[str]:
    """A terminal's colours (rows, columns) as lines of text: a character is two pixels, with the upper as its colour
    and the lower as its background; the number of rows must be even."""
    lines = []
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        parts, last = [], None
        for pair in zip(upper.tolist(), lower.tolist(), strict=True):
            if pair != last:
                parts.append(f"\x1b[38;5;{pair[0]};48;5;{pair[1]}m")
                last = pair
            parts.append(UPPER_HALF)
        lines.append("".join(parts) + "\x1b[0m")
    return lines
