"""Numbers as PyBoy takes them: of Python, NumPy or torch."""

from __future__ import annotations

import operator
from numbers import Real

import numpy as np
import torch

from gbxcule_puffer.errors import ConfigError


def whole(value: object, what: str, least: int, most: int | None = None) -> int:
    """A number without its decimals, as PyBoy takes it.

    Raises: ConfigError for what is not a number, or not from `least` to `most`.
    """
    scalar = isinstance(value, Real) or (isinstance(value, np.ndarray | torch.Tensor) and value.ndim == 0)
    try:
        number = int(value) if scalar else operator.index(value)  # type: ignore[arg-type, call-overload]
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{what} is {value!r:.60}: give a whole number") from None
    if number < least or (most is not None and number > most):
        raise ConfigError(f"{what} is {number}: give {least} {'or more' if most is None else f'to {most}'}")
    return number
