"""Pictures as the pages take them."""

from __future__ import annotations

import torch

from gbxcule_puffer.trainers.blocks.replay import pack


def encoded(pictures: torch.Tensor) -> torch.Tensor:
    """Bytes of pictures (..., columns) for a page: of shades four pixels a byte, of colours two bytes a pixel."""
    return pack(pictures) if pictures.dtype == torch.uint8 else pictures.contiguous().view(torch.uint8)
