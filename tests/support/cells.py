"""Cells of pictures, worked out another way."""

from __future__ import annotations

import numpy as np


def coarse_cell(picture: np.ndarray) -> bytes:
    """Mean shades of 9 x 10 blocks in 8 levels, as VisitCounter describes them."""
    size = picture.shape[0] // 9
    sums = picture.reshape(9, size, 10, size).astype(int).sum((1, 3))
    return (sums * 8 // (3 * size * size + 1)).astype(np.uint8).tobytes()
