"""Kinds of pictures and the limits of an observation, declared without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gbxcule_puffer.emulator.schedule import SCREENS
from gbxcule_puffer.errors import ConfigError

PICTURE = "picture"  # the name of an observation's pictures among its parts
MOST_PICTURES = 256  # of an observation
SIDE = 64  # of the square of cells that VisitedCells tells apart, a power of two
MOST_RADIUS = SIDE // 2 - 1

Form = Literal["shades", "packed", "averaged", "luma", "rgb", "rgb555"]
FORMS: tuple[Form, ...] = get_args(Form)
"""How pixels become values; env/step_end/parts.py has a device function of each name."""


@dataclass(frozen=True)
class PictureKind:
    """A way to show the screen: the form of its values, what the emulator draws ('half' or 'full'), rows and values of
    a row in the observation, the largest value of a pixel or of one of its colours, pixels of a value, and for
    observations in colour the channels that a network gets of a picture, else 0."""

    form: Form
    screen: str
    rows: int
    row_values: int
    most: int
    pixels: int = 1
    channels: int = 0
    dtype: Any = np.uint8

    @property
    def in_color(self) -> bool:
        """False where shades are observed."""
        return self.channels > 0

    @property
    def planes(self) -> int:
        """Of a picture in an observation: one, or red, green and blue apart."""
        return self.channels if self.channels > 1 and self.dtype == np.uint8 else 1

    @property
    def high(self) -> int:
        """The largest value in the observation's space, for images that of a byte."""
        if self.dtype == np.uint16:
            return 2**15 - 1
        return 255 if self.in_color or self.pixels > 1 else self.most

    @property
    def screen_shape(self) -> tuple[int, int]:
        """Rows and columns that the emulator draws."""
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
}


def picture_kind(obs: str) -> PictureKind:
    """The kind of picture that the option `obs` names.

    Raises: ConfigError for an unknown one.
    """
    if obs not in PICTURES:
        raise ConfigError(f"obs {obs!r} is unknown: give one of {', '.join(PICTURES)}")
    return PICTURES[obs]
