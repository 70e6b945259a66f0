"""Observations as Gymnasium's wrappers for images and stable-baselines3 expect them."""

from __future__ import annotations

import gymnasium
import numpy as np

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import LEVELS
from gbxcule_puffer.tasks.observe.layout import Array, ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import PICTURE

NO_IMAGES = ("packed", "averaged", "rgb555", "tiles")  # forms of observations
Shown = Array | dict[str, Array]  # the pictures, or with what else is observed, by name


def shown(layout: ObservationLayout, observations: Array) -> Shown:
    """Observations (n, *shape) as Gymnasium's space has them, without a copy: pictures, or a dict where there is more.
    A single grey picture has rows and columns alone, as Gymnasium's wrappers expect an image."""
    parts = layout.split(observations)
    if _is_flat(layout):
        parts[PICTURE] = parts[PICTURE][:, 0]
    return parts if layout.vectors else parts[PICTURE]


def first_shown(layout: ObservationLayout, observations: Array) -> Shown:
    """The first of some observations as `shown` has it."""
    parts = shown(layout, observations)
    return {name: part[0] for name, part in parts.items()} if isinstance(parts, dict) else parts[0]


def observation_space(layout: ObservationLayout) -> gymnasium.Space:
    """The space of one of the observations of `shown`."""
    shape = layout.picture_shape[1:]
    return _with_picture(layout, gymnasium.spaces.Box(0, 255, shape, np.uint8)) if _is_flat(layout) else layout.space


class Images:
    """The pictures of observations as stable-baselines3 knows images: (channels, rows, columns) uint8 from 0 to 255.
    Shades are PyBoy's greys, 255 153 85 0. Sprites stay as they are, for policies without convolutions. `space`: of one
    observation.

    Raises: ConfigError for pictures that are not images.
    """

    def __init__(self, layout: ObservationLayout, obs: str) -> None:
        if layout.kind.form in NO_IMAGES:
            remedy = "give obs='grey', or another image of 0 to 255 (docs/environment.md)"
            raise ConfigError(f"obs {obs!r} is not an image to stable-baselines3: {remedy}")
        self._has_shades, self._is_flat = layout.kind.form == "shades", _is_flat(layout)
        self.space = _with_picture(layout, gymnasium.spaces.Box(0, 255, layout.picture_shape, np.uint8))

    def of(self, observations: np.ndarray | dict[str, np.ndarray]) -> np.ndarray | dict[str, np.ndarray]:
        """Observations of `shown`, of all envs or of one, with their pictures as images."""
        if isinstance(observations, dict):
            return {**observations, PICTURE: self._image(observations[PICTURE])}
        return self._image(observations)

    def _image(self, pictures: np.ndarray) -> np.ndarray:
        if self._has_shades:
            return LEVELS[pictures]
        return np.expand_dims(pictures, -3) if self._is_flat else pictures


def _is_flat(layout: ObservationLayout) -> bool:
    """True where `shown` leaves out the axis of the channels."""
    return layout.kind.form == "grey" and layout.stack_k == 1


def _with_picture(layout: ObservationLayout, picture: gymnasium.Space) -> gymnasium.Space:
    """The layout's space with another one for its pictures."""
    if not isinstance(layout.space, gymnasium.spaces.Dict):
        return picture
    return gymnasium.spaces.Dict({**layout.space.spaces, PICTURE: picture})
