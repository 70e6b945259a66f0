"""The pictures of all Game Boys by PyBoy's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api import left_out
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.integrations.pyboy_api.hint import AxisHint
from gbxcule_puffer.integrations.pyboy_api.numbers import whole
from gbxcule_puffer.pictures import LEVELS

if TYPE_CHECKING:
    from PIL.Image import Image


class Screen:
    """The pictures of all Game Boys after the last tick."""

    def __init__(self, emulator: Emulator, fields: Fields, hint: AxisHint) -> None:
        self._emulator, self._fields, self._hint = emulator, fields, hint
        self.raw_buffer_dims = (hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH)
        self.image = Images(self)

    def __getattr__(self, name: str) -> NoReturn:
        left_out.refuse("screen", left_out.SCREEN, name)

    @property
    def shades(self) -> torch.Tensor:
        """Shades 0-3, 0 the lightest, (num_envs, 144, 160) uint8: the emulator's own buffer."""
        return self._emulator.screen

    @property
    def ndarray(self) -> np.ndarray:
        """Red, green, blue and 255 as PyBoy has them, (num_envs, 144, 160, 4) uint8: a copy on the host."""
        self._hint.say()
        return self.pictures()

    def pictures(self) -> np.ndarray:
        """`ndarray`, for those who know its axes."""
        if self._fields.is_color:
            rgb = self._emulator.render("rgb").cpu().numpy()
        else:
            rgb = LEVELS[self.shades.cpu().numpy()][..., None].repeat(3, -1)
        return np.concatenate([rgb, np.full_like(rgb[..., :1], 255)], axis=-1)

    def get_tilemap_position(self) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        """((SCX, SCY), (WX - 7, WY)) at the end of the frame, each (num_envs,) int32."""
        scx, scy, wx, wy = (self._fields[name].clone() for name in ("scx", "scy", "wx", "wy"))
        return (scx, scy), (wx - 7, wy)


class Images:
    """screen.image: called with the number of a Game Boy, 0 by default, its picture as Pillow has it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, env: int = 0) -> Image:
        """One Game Boy's picture.

        Raises: ConfigError where Pillow is not installed, and for a Game Boy that does not exist.
        """
        try:
            from PIL.Image import fromarray
        except ImportError:
            raise ConfigError("screen.image needs Pillow: pip install pillow") from None
        env = whole(env, "env of screen.image", 0, len(self._screen.shades) - 1)
        return fromarray(np.ascontiguousarray(self._screen.pictures()[env]))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"screen.image has no {name}: call it, screen.image(env).{name}")
