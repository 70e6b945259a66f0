"""Pictures of shades as PNG files and as text for a terminal."""

from __future__ import annotations

import os

import numpy as np

from gbxcule_puffer.errors import ConfigError

# Shades 0..3, lightest first: grey levels, and their nearest in a terminal's palette of 256 colours.
GREYS = np.array([255, 170, 85, 0], np.uint8)
PALETTE = (231, 248, 240, 16)
UPPER_HALF = "\u2580"


def save_png(path: str | os.PathLike[str], picture: np.ndarray, scale: int = 4) -> None:
    """Writes shades [row, column] as a grey PNG, each pixel `scale` pixels wide.

    Raises: ConfigError where Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ConfigError("writing pictures needs Pillow: pip install pillow") from None
    Image.fromarray(GREYS[picture].repeat(scale, 0).repeat(scale, 1)).save(path)


def side_by_side(pictures: np.ndarray, columns: int = 4) -> np.ndarray:
    """Pictures [picture, row, column] in one, `columns` beside each other with a line of shade 1 between them."""
    count, rows, width = pictures.shape
    columns = min(columns, count)
    lines = -(-count // columns)
    sheet = np.ones((lines * (rows + 1) - 1, columns * (width + 1) - 1), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = i // columns * (rows + 1), i % columns * (width + 1)
        sheet[top : top + rows, left : left + width] = picture
    return sheet


def half_blocks(picture: np.ndarray) -> list[str]:
    """Shades [row, column] as lines of a terminal: a character is two pixels, its colour the upper, its background the
    lower one."""
    lines = []
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        parts, last = [], None
        for pair in zip(upper.tolist(), lower.tolist(), strict=True):
            if pair != last:
                parts.append(f"\x1b[38;5;{PALETTE[pair[0]]};48;5;{PALETTE[pair[1]]}m")
                last = pair
            parts.append(UPPER_HALF)
        lines.append("".join(parts) + "\x1b[0m")
    return lines
