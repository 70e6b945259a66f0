"""Observations: the last pictures, and behind them vectors of numbers; nothing is allocated per step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch

from gbxcule_puffer.errors import ConfigError

PICTURE = "picture"
MOST_PICTURES = 256  # of an observation
SCREENS = {"half": (72, 80), "full": (144, 160)}  # rows and columns, as the emulator draws them
Shape = tuple[int, ...]


@dataclass(frozen=True)
class PictureKind:
    """A way to show the screen: what the emulator draws ('half' or 'full'), rows and bytes of a row in the observation,
    pixels of a byte, and the value of the darkest shade."""

    screen: str
    rows: int
    row_bytes: int
    darkest: int
    pixels: int = 1

    @property
    def screen_shape(self) -> tuple[int, int]:
        """Rows and columns that the emulator draws."""
        return SCREENS[self.screen]


PICTURES = {
    "shades": PictureKind("half", 72, 80, 3),
    "packed": PictureKind("half", 72, 20, 3, pixels=4),
    "averaged": PictureKind("full", 72, 80, 12),
    "full": PictureKind("full", 144, 160, 3),
}


def picture_kind(obs: str) -> PictureKind:
    """The kind of picture that the option `obs` names.

    Raises: ConfigError for an unknown one.
    """
    if obs not in PICTURES:
        raise ConfigError(f"obs {obs!r} is unknown: give one of {', '.join(PICTURES)}")
    return PICTURES[obs]


class ObservationLayout:
    """The parts of an observation: `stack_k` pictures, the newest last, and `vectors`, float32 by name and shape.

    Without vectors an observation is the pictures alone, (stack_k, rows, row bytes) uint8. With vectors it is a row of
    bytes, as PufferLib's emulation of Dict spaces has it: those of the structured `dtype`, with the pictures first.

    `box`: the Gymnasium space of this one array; `space`: the same, or with vectors a Dict of all parts.

    Raises: ConfigError for an empty stack, and for one that is too large.
    """

    def __init__(self, kind: PictureKind, stack_k: int, vectors: Mapping[str, Shape] | None = None) -> None:
        if not 1 <= stack_k <= MOST_PICTURES:
            raise ConfigError(f"stack_k {stack_k} must be from 1 to {MOST_PICTURES}")
        self.kind, self.stack_k, self.vectors = kind, stack_k, dict(vectors or {})
        pictures = stack_k, kind.rows, kind.row_bytes
        most = 255 if kind.pixels > 1 else kind.darkest
        self.box = self.space = gymnasium.spaces.Box(0, most, pictures, np.uint8)
        parts: list[Any] = [(PICTURE, np.uint8, pictures)]
        parts += [(name, np.float32, shape) for name, shape in self.vectors.items()]
        self.dtype = np.dtype(parts, align=True)
        if self.vectors:
            spaces: dict[str, Any] = {PICTURE: self.box}
            spaces |= {name: gymnasium.spaces.Box(-np.inf, np.inf, shape) for name, shape in self.vectors.items()}
            self.space = gymnasium.spaces.Dict(spaces)
            self.box = gymnasium.spaces.Box(0, 255, (self.dtype.itemsize,), np.uint8)

    @property
    def shape(self) -> Shape:
        """Of one env's observation as one array."""
        return self.box.shape

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """(stack_k, rows, columns) of the pixels."""
        return self.stack_k, self.kind.rows, self.kind.row_bytes * self.kind.pixels

    @property
    def picture_bytes(self) -> int:
        """Bytes of an observation's pictures, which its other parts follow."""
        return self.stack_k * self.kind.rows * self.kind.row_bytes

    @property
    def vector_size(self) -> int:
        """Numbers of all vectors together."""
        return sum(int(np.prod(shape)) for shape in self.vectors.values())

    @property
    def emulated(self) -> dict[str, Any] | bool:
        """False without vectors, else the types of the bytes and of their parts, for PufferLib's nativize_dtype."""
        if not self.vectors:
            return False
        return {"observation_dtype": np.dtype(np.uint8), "emulated_observation_dtype": self.dtype}

    def split(self, observations: Any) -> dict[str, Any]:
        """The parts of observations (n, *shape), tensor or array, by name, without a copy."""
        if not self.vectors:
            return {PICTURE: observations}
        is_tensor = isinstance(observations, torch.Tensor)
        parts = {}
        for name, (dtype, offset) in (self.dtype.fields or {}).items():  # pyright: ignore[reportAssignmentType]
            part = observations[:, offset : offset + dtype.itemsize]
            if name != PICTURE:
                part = part.view(torch.float32 if is_tensor else np.float32)
            parts[name] = part.view(len(part), *dtype.shape) if is_tensor else _shaped(part, dtype.shape)
        return parts

    def words(self, observations: torch.Tensor) -> torch.Tensor:
        """The pictures of observations (n, *shape) as 32-bit words (n, words), without a copy."""
        return observations.view(len(observations), -1).view(torch.int32)[:, : self.picture_bytes // 4]

    def shades(self, observations: torch.Tensor) -> torch.Tensor:
        """The newest picture of observations (n, *shape) as shades 0-3, (n, rows, columns) uint8."""
        newest = _unpacked(self.split(observations)[PICTURE][:, -1], self.kind)
        return newest if self.kind.darkest == 3 else (newest + 2) // 4

    def pictures(self, observations: torch.Tensor) -> torch.Tensor:
        """The pictures of observations (n, *shape) for a network, (n, stack_k, rows, columns) float32 from 0, the
        lightest, to 1."""
        return _unpacked(self.split(observations)[PICTURE], self.kind).float() / self.kind.darkest

    def join(self, features: torch.Tensor, observations: torch.Tensor) -> torch.Tensor:
        """`features` (n, k) that a network has of the pictures, and behind them the vectors of its observations, (n,
        k + vector_size); itself without vectors."""
        if not self.vectors:
            return features
        parts = self.split(observations)
        return torch.cat([features, *(parts[name].flatten(1) for name in self.vectors)], 1)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """Shades (..., 4 * columns) of packed pictures (..., columns) uint8, the leftmost of a byte's four in bits 7-6."""
    return torch.stack([packed >> 6, (packed >> 4) & 3, (packed >> 2) & 3, packed & 3], -1).flatten(-2)


def shades_layout(stack_k: int, rows: int = 72, columns: int = 80) -> ObservationLayout:
    """The layout of `stack_k` pictures as they are drawn, of any size."""
    return ObservationLayout(PictureKind("half", rows, columns, 3), stack_k)


def _shaped(part: np.ndarray, shape: Shape) -> np.ndarray:
    """A view (n, *shape) of rows that lie apart, which `reshape` might copy."""
    view = part.view()
    view.shape = (len(part), *shape)
    return view


def _unpacked(pictures: torch.Tensor, kind: PictureKind) -> torch.Tensor:
    """Pixels (..., rows, columns) of pictures (..., rows, row bytes)."""
    return unpack(pictures) if kind.pixels > 1 else pictures


class FrameStack:
    """The last `stack_k` pictures of each env in `observations` (num_envs, *layout.shape) uint8, for
    env/step_end/parts.py to fill.

    Without `out`, with stack_k 1, pictures as they are drawn and no vectors `observations` is a view of the screen
    itself: no shift, no copy.
    """

    def __init__(self, screen: torch.Tensor, layout: ObservationLayout, out: torch.Tensor | None = None) -> None:
        kind = layout.kind
        as_drawn = (kind.rows, kind.row_bytes) == screen.shape[1:]
        in_place = out is None and layout.stack_k == 1 and as_drawn and not layout.vectors
        if out is None:
            out = screen.unsqueeze(1) if in_place else screen.new_zeros((len(screen), *layout.shape))
        self.observations, self.layout = out, layout
        self.members: dict[str, Any] = {
            "screen": screen.view(len(screen), -1).view(torch.int32),
            "observations": layout.words(out),
            "stack_k": layout.stack_k,
            "packed": int(kind.pixels > 1),
            "averaged": int(kind.darkest == 12),
            "in_place": int(in_place),
        }
