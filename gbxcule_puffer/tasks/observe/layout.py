"""The layout of an observation: the last pictures, followed by vectors of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import gymnasium
import numpy as np
import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.pictures import MOST_PICTURES, PICTURE, PictureKind
from gbxcule_puffer.tasks.observe.pixels import signed, unpacked

Shape = tuple[int, ...]
Array = torch.Tensor | np.ndarray  # by the option io
Given = TypeVar("Given", torch.Tensor, np.ndarray)  # the one of them that an env gives
Observed = TypeVar("Observed", bound=Array)


class ObservationLayout:
    """The parts of an observation: `stack_k` pictures, the newest last, and `vectors`, float32 by name and shape.

    Without vectors, an observation is only the pictures, (stack_k * planes, rows, values of a row) uint8 or uint16.
    With vectors it is a row of bytes, as in PufferLib's emulation of Dict spaces: those of the structured `dtype`, with
    the pictures first.

    `box`: the Gymnasium space of this one array; `space`: the same, or with vectors a Dict of all parts.

    Raises: ConfigError for an empty stack, and for a stack that is too large.
    """

    def __init__(self, kind: PictureKind, stack_k: int, vectors: Mapping[str, Shape] | None = None) -> None:
        if not 1 <= stack_k <= MOST_PICTURES:
            raise ConfigError(f"stack_k {stack_k} must be from 1 to {MOST_PICTURES}")
        self.kind, self.stack_k, self.vectors = kind, stack_k, dict(vectors or {})
        pictures = stack_k * kind.planes, kind.rows, kind.row_values
        self.box = self.space = gymnasium.spaces.Box(0, kind.high, pictures, kind.dtype)
        parts: list[Any] = [(PICTURE, kind.dtype, pictures)]
        parts += [(name, np.float32, shape) for name, shape in self.vectors.items()]
        self.dtype = np.dtype(parts, align=True)
        if self.vectors:
            spaces: dict[str, Any] = {PICTURE: self.box}
            spaces |= {name: gymnasium.spaces.Box(-np.inf, np.inf, shape) for name, shape in self.vectors.items()}
            self.space = gymnasium.spaces.Dict(spaces)
            self.box = gymnasium.spaces.Box(0, 255, (self.dtype.itemsize,), np.uint8)

    @property
    def shape(self) -> Shape:
        """The shape of one env's observation as one array."""
        return self.box.shape

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """(channels of all pictures, rows, columns) of a network's input."""
        kind = self.kind
        return self.stack_k * max(kind.planes, kind.channels), kind.rows, kind.row_values * kind.pixels

    @property
    def picture_bytes(self) -> int:
        """Bytes of an observation's pictures; the other parts follow."""
        kind = self.kind
        return self.stack_k * kind.planes * kind.rows * kind.row_values * np.dtype(kind.dtype).itemsize

    @property
    def kept_dtype(self) -> torch.dtype:
        """The type of one env's observation in rollouts: uint16 as int16, for which torch has all operations."""
        return torch.int16 if self.box.dtype == np.uint16 else torch.uint8

    @property
    def vector_size(self) -> int:
        """Numbers of all vectors together."""
        return sum(int(np.prod(shape)) for shape in self.vectors.values())

    @property
    def emulated(self) -> dict[str, np.dtype] | bool:
        """False without vectors, else the types of the bytes and of their parts, for PufferLib's nativize_dtype."""
        if not self.vectors:
            return False
        return {"observation_dtype": np.dtype(np.uint8), "emulated_observation_dtype": self.dtype}

    def split(self, observations: Observed) -> dict[str, Observed]:
        """The parts of observations (n, *shape), tensor or array, by name, without a copy."""
        if not self.vectors:
            return {PICTURE: observations}
        is_tensor = isinstance(observations, torch.Tensor)
        parts: dict[str, Any] = {}
        for name, (dtype, offset) in (self.dtype.fields or {}).items():  # pyright: ignore[reportAssignmentType]
            part: Any = observations[:, offset : offset + dtype.itemsize]
            if (own := dtype.base) != np.uint8:
                part = part.view(getattr(torch, own.name) if is_tensor else own)
            parts[name] = part.view(len(part), *dtype.shape) if is_tensor else _shaped(part, dtype.shape)
        return parts

    def words(self, observations: torch.Tensor) -> torch.Tensor:
        """The pictures of observations (n, *shape) as 32-bit words (n, words), without a copy."""
        return observations.view(len(observations), -1).view(torch.int32)[:, : self.picture_bytes // 4]

    def newest(self, observations: torch.Tensor) -> torch.Tensor:
        """The newest picture of observations (n, *shape) for people, (n, rows, columns): shades 0-3 uint8, or, for
        observations in colour, colours of 15 bits uint16, as in Emulator.colors.

        Raises: ConfigError for tiles and objects.
        """
        kind = self.kind
        if not kind.is_picture:
            raise ConfigError(f"obs {kind.form!r} has no picture to show: call keep_pictures before the step")
        newest = self.split(observations)[PICTURE][:, -kind.planes :]
        if kind.dtype == np.uint16:
            return newest[:, 0]
        if kind.in_color:
            red, green, blue = (newest.to(torch.int16) >> 3).expand(-1, 3, -1, -1).unbind(1)
            return (red | green << 5 | blue << 10).view(torch.uint16)
        shades = unpacked(newest[:, 0], kind)
        return shades if kind.most == 3 else (shades * 3 + kind.most // 2) // kind.most  # the nearest shade

    def pixels(self, observations: torch.Tensor) -> torch.Tensor:
        """The pictures of observations (n, *shape) as (n, *picture_shape) uint8 from 0 to kind.most: shades from the
        lightest to the darkest; colours and luma from black. Tiles are int16."""
        pictures = signed(self.split(observations)[PICTURE])
        if self.kind.form == "rgb555":
            pictures = torch.stack([pictures & 31, pictures >> 5 & 31, pictures >> 10], 2).flatten(1, 2).byte()
        return unpacked(pictures, self.kind)

    def pictures(self, observations: torch.Tensor) -> torch.Tensor:
        """The same for a network, (n, *picture_shape) float32 from 0 to 1."""
        return self.pixels(observations).float() / self.kind.most

    def join(self, features: torch.Tensor, observations: torch.Tensor) -> torch.Tensor:
        """`features` (n, k) of the pictures followed by the vectors of the observations, (n, k + vector_size); without
        vectors, `features` itself."""
        if not self.vectors:
            return features
        parts = self.split(observations)
        return torch.cat([features, *(parts[name].flatten(1) for name in self.vectors)], 1)


def shades_layout(stack_k: int, rows: int = 72, columns: int = 80) -> ObservationLayout:
    """The layout of `stack_k` pictures in shades, of any size."""
    return ObservationLayout(PictureKind("shades", "half", rows, columns, 3), stack_k)


def _shaped(part: np.ndarray, shape: Shape) -> np.ndarray:
    """A view (n, *shape) of rows with gaps between them, which `reshape` might copy."""
    view = part.view()
    view.shape = (len(part), *shape)
    return view


class ShowsPictures:
    """The pictures of an env with a layout, for people: shades or colours, as of ObservationLayout.newest."""

    layout: ObservationLayout
    observations: Any
    final_observation: Any

    def pictures(self, rows: torch.Tensor | slice = slice(None)) -> torch.Tensor:
        """The current pictures of the envs of `rows`, an index, (n, rows, columns)."""
        return self.layout.newest(torch.as_tensor(self.observations[rows]))

    def final_pictures(self, rows: torch.Tensor | slice = slice(None)) -> torch.Tensor:
        """The pictures that each env's action led to, as final_observation."""
        return self.layout.newest(torch.as_tensor(self.final_observation[rows]))

    def keep_pictures(self) -> None:
        """From the next step on, final_pictures are there whatever is observed, those of Game Boy Colors in colour."""
