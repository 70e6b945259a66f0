"""The pictures of an emulator: shades, and on a Game Boy Color colours."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError


class Screens:
    """The part of Emulator that returns pictures."""

    num_envs: int
    pixel_step: int
    model: str
    _memory: torch.Tensor
    _screen: torch.Tensor

    @property
    def screen(self) -> torch.Tensor:
        """Pictures after the last step, shape (num_envs, 72, 80) or (num_envs, 144, 160), uint8 shades 0-3, 0 the
        lightest: the emulator's own buffer, changed in place by `step`. For a Game Boy Color, the shades of grey
        nearest to `colors`."""
        return self._screen

    @property
    def colors(self) -> torch.Tensor:
        """The same pictures of a Game Boy Color, shape as of `screen`, uint16: 5 bits each of red (lowest), green and
        blue. The emulator's own buffer.

        Raises: ConfigError for a DMG.
        """
        if self.model != "cgb":
            raise ConfigError("colors: this is a DMG, which has shades: use screen, or give model='cgb'")
        return colors_in(self._memory, self._screen.shape)

    @property
    def memory_without_colors(self) -> torch.Tensor:
        """The memory rows but for the pictures in colour at a Game Boy Color's ends, which emulators of another
        resolution have in another size: a view, (num_envs, bytes) uint8."""
        size = 2 * self._screen[0].numel() if self.model == "cgb" else 0
        return self._memory[:, : self._memory.shape[1] - size]

    def render(self, kind: str = "half") -> torch.Tensor:
        """The pictures as 'half' (num_envs, 72, 80), 'packed' (num_envs, 72, 20; four pixels per byte, the leftmost in
        bits 7-6) or 'full' (num_envs, 144, 160), uint8 shades. For a Game Boy Color also as 'rgb' (num_envs, rows,
        columns, 3) uint8, the upper 5 bits of PyBoy's values (docs/color.md).

        Raises: ConfigError for another kind, or for 'full' if only every second pixel is kept.
        """
        if kind == "rgb":
            colors = self.colors.view(torch.int16).int()
            return torch.stack([colors << 3 & 0xF8, colors >> 2 & 0xF8, colors >> 7 & 0xF8], -1).byte()
        if kind == "full":
            if self.pixel_step != 1:
                raise ConfigError("render('full') needs an Emulator with screen='full'")
            return self._screen
        half = self._screen if self.pixel_step == 2 else self._screen[:, ::2, ::2].contiguous()
        if kind == "half":
            return half
        if kind != "packed":
            raise ConfigError(f"kind is {kind!r}; it must be 'half', 'packed', 'full' or 'rgb'")
        quads = half.view(self.num_envs, hw.SCREEN_HEIGHT // 2, hw.SCREEN_WIDTH // 8, 4)
        return (quads[..., 0] << 6) | (quads[..., 1] << 4) | (quads[..., 2] << 2) | quads[..., 3]


def colors_in(memory: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The pictures in colour at the end of a Game Boy Color's memory rows (num_envs, row), of the screens' `shape`: a
    view, uint16."""
    _, rows, columns = shape
    return memory[:, -2 * rows * columns :].view(torch.uint16).view(-1, rows, columns)
