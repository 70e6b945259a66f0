"""Layers of the scripts' networks."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from gbxcule_puffer.errors import ConfigError

LEAST_SIDE = 20  # pixels, for convolutions of 8 with stride 4 and then of 4 with stride 2

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def layer_init(layer: Layer, std: float = 2**0.5) -> Layer:
    """Orthogonal weights and no bias, computed by one thread: several threads wait for each other at each column, which
    takes seconds if other programs want the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        nn.init.orthogonal_(layer.weight, std)
    finally:
        torch.set_num_threads(threads)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


class Patches(nn.Module):
    """Pixels (n, channels, rows, columns) from 0 to `most` -> (n, 16 * channels, rows / 4, columns / 4) from 0 to 1,
    float32 or the type of autocast: 4x4 pixels as channels, in the order of nn.PixelUnshuffle(4). A 2x2 convolution of
    them is an 8x8 convolution with stride 4, and faster.

    They are moved before they are converted (on a CPU, four bytes at a time), and stored channels last.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """The patches.

        Raises: ConfigError for pictures that do not consist of them, or are too small for the scripts' networks.
        """
        count, channels, rows, columns = pixels.shape
        if rows % 4 or columns % 4 or min(rows, columns) < LEAST_SIDE:
            allowed = f"multiples of 4 from {LEAST_SIDE} on"
            raise ConfigError(f"pictures of {rows}x{columns} pixels: the trainers' networks take {allowed}")
        in_words = pixels.dtype == torch.uint8 and not pixels.is_cuda
        moved = pixels.contiguous().view(torch.int32 if in_words else pixels.dtype)
        moved = moved.view(count, channels, rows // 4, 4, columns // 4, -1).permute(0, 2, 4, 1, 3, 5).contiguous()
        patches = moved.view(pixels.dtype).view(count, rows // 4, columns // 4, 16 * channels).permute(0, 3, 1, 2)
        device = pixels.device.type
        autocast = torch.is_autocast_enabled(device)
        return patches.to(torch.get_autocast_dtype(device) if autocast else torch.float32) / self.most
