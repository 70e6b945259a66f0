"""Kinds of pictures and the limits of an observation, declared without importing torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from gbxcule_puffer.emulator.schedule import SCREENS
from gbxcule_puffer.errors import ConfigError

PICTURE = "picture"  # the name of an observation's pictures among its parts
MOST_PICTURES = 256  # of an observation
SIDE = 64  # side of the square of cells that VisitedCells distinguishes, a power of two
MOST_RADIUS = SIDE // 2 - 1

MOST_SIDE = 256  # rows and columns of a grey picture

Form = Literal["shades", "packed", "averaged", "luma", "rgb", "rgb555", "grey"]
FORMS: tuple[Form, ...] = get_args(Form)
"""How pixels become values; env/step_end/parts.py has a device function of each name."""
NO_TILE = 768  # in obs tiles; the tiles of both banks of a Game Boy Color are 0 to 767
SPRITES = 40
FEATURES = ("y", "x", "tile", "bank", "palette", "flip_x", "flip_y", "behind", "tall", "visible")
"""Numbers of a sprite in obs objects, in this order: y + 16 and x + 8 of its upper left corner, its tile 0-255 and the
bank of VRAM, the palette, and 1 or 0 for the others (behind: the background's colours 1-3 cover it; tall: 16 lines)."""


@dataclass(frozen=True)
class PictureKind:
    """A form of the screen in observations: pixels, tiles or sprites."""

    form: Form | Literal["tiles", "objects"]
    screen: str  # of the emulator: half or full
    rows: int
    row_values: int  # values of a row in the observation
    most: int  # the largest value of a pixel, or of one of its colours
    pixels: int = 1  # in a value
    channels: int = 0  # of a picture in a network; 0 unless colours are observed
    dtype: type[np.uint8 | np.uint16] = np.uint8

    @property
    def in_color(self) -> bool:
        """False if shades are observed."""
        return self.channels > 0

    @property
    def is_picture(self) -> bool:
        """False for tiles and objects, which have no pixels."""
        return self.form in FORMS

    @property
    def planes(self) -> int:
        """Planes of a picture in an observation: one, or separate red, green and blue; of tiles the background's and
        the sprites'."""
        if self.form == "tiles":
            return 2
        return self.channels if self.channels > 1 and self.dtype == np.uint8 else 1

    @property
    def high(self) -> int:
        """The largest value in the observation's space; for images that of a byte."""
        if self.form == "rgb555":
            return 2**15 - 1
        return 255 if self.in_color or self.pixels > 1 else self.most

    @property
    def screen_shape(self) -> tuple[int, int]:
        """Rows and columns of the emulator's screen."""
        return SCREENS[self.screen]


PICTURES = {
    "shades": PictureKind("shades", "half", 72, 80, 3),
    "packed": PictureKind("packed", "half", 72, 20, 3, pixels=4),
    "averaged": PictureKind("averaged", "full", 72, 80, 12),
    "full": PictureKind("shades", "full", 144, 160, 3),
    "luma": PictureKind("luma", "half", 72, 80, 248, channels=1),
    "rgb": PictureKind("rgb", "half", 72, 80, 248, channels=3),
    "rgb555": PictureKind("rgb555", "half", 72, 80, 31, channels=3, dtype=np.uint16),
    "luma_full": PictureKind("luma", "full", 144, 160, 248, channels=1),
    "rgb_full": PictureKind("rgb", "full", 144, 160, 248, channels=3),
    "rgb555_full": PictureKind("rgb555", "full", 144, 160, 31, channels=3, dtype=np.uint16),
    "grey": PictureKind("grey", "full", 84, 84, 255, channels=1),
}
OTHER_GREY = "grey_ROWSxCOLUMNS"
OBJECTS = {
    "tiles": PictureKind("tiles", "half", 18, 20, NO_TILE, dtype=np.uint16),
    "objects": PictureKind("objects", "half", SPRITES, len(FEATURES), 255),
}


def observation_kind(obs: str) -> PictureKind:
    """The kind that the option `obs` names: one of OBJECTS, or of picture_kind.

    Raises: ConfigError.
    """
    return OBJECTS[obs] if obs in OBJECTS else picture_kind(obs)


def picture_kind(obs: str) -> PictureKind:
    """The kind of picture that `obs` names: one of PICTURES, or grey of another size, such as grey_64x96.

    Raises: ConfigError for an unknown one, for tiles and objects, and for an impossible size.
    """
    if obs in PICTURES:
        return PICTURES[obs]
    if obs in OBJECTS:
        raise ConfigError(f"obs {obs!r} has no pictures, which are needed here: give one of {', '.join(PICTURES)}")
    size = re.fullmatch(r"grey_(\d{1,9})x(\d{1,9})", obs)
    if size is None:
        raise ConfigError(f"obs {obs!r:.60} is unknown: give one of {', '.join([*PICTURES, OTHER_GREY, *OBJECTS])}")
    rows, columns = map(int, size.groups())
    if not (1 <= rows <= MOST_SIDE and 1 <= columns <= MOST_SIDE) or rows * columns % 4:
        allowed = f"from 1 to {MOST_SIDE} rows and columns, whose product is a multiple of 4"
        raise ConfigError(f"obs {obs!r} has an impossible size: give {allowed}")
    return replace(PICTURES["grey"], rows=rows, row_values=columns)


def area_averaged(picture: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A picture (height, width) uint8 in another size, uint8: each pixel is the mean of the area that it covers, to the
    nearest whole number, halves up. The same as the step's kernels give, to the bit."""
    height, width = picture.shape
    total = _overlaps(rows, height) @ picture.astype(np.int64) @ _overlaps(columns, width).T
    return ((2 * total + height * width) // (2 * height * width)).astype(np.uint8)


def _overlaps(count: int, size: int) -> np.ndarray:
    """How much of each of `size` pixels each of `count` pixels covers, in 1 / count of a pixel, (count, size) int64."""
    new, old = size * np.arange(count + 1), count * np.arange(size + 1)
    return np.clip(np.minimum(new[1:, None], old[1:]) - np.maximum(new[:-1, None], old[:-1]), 0, None)
