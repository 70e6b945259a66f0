"""Pixels of observed pictures in types that torch supports."""

from __future__ import annotations

import torch

from gbxcule_puffer.tasks.observe.pictures import PictureKind


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """Shades (..., 4 * columns) of packed pictures (..., columns) uint8, the leftmost of a byte's four in bits 7-6."""
    return torch.stack([packed >> 6, (packed >> 4) & 3, (packed >> 2) & 3, packed & 3], -1).flatten(-2)


def signed(values: torch.Tensor) -> torch.Tensor:
    """uint16 as int16, without a copy, because torch has few operations on uint16; other types unchanged."""
    return values.view(torch.int16) if values.dtype == torch.uint16 else values


def rows_of(colors: torch.Tensor, rows: torch.Tensor | slice) -> torch.Tensor:
    """The `rows`, an index, of pictures, which may be uint16."""
    return signed(colors)[rows].view(colors.dtype)


def unpacked(pictures: torch.Tensor, kind: PictureKind) -> torch.Tensor:
    """Pixels (..., rows, columns) of pictures (..., rows, values of a row)."""
    return unpack(pictures) if kind.pixels > 1 else pictures
