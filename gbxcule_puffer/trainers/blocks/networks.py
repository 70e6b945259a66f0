"""The layers that all networks begin with: from pictures to features."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

FEATURES = 256


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


def pixel_trunk(shape: tuple[int, int, int], normalised: bool = False) -> nn.Sequential:
    """Two strided convolutions and a hidden layer: pictures (batch, *shape) -> (batch, FEATURES).

    normalised: LayerNorm before each ReLU.
    """

    def norm(channels: int) -> list[nn.Module]:
        return [nn.GroupNorm(1, channels)] if normalised else []  # one group: LayerNorm, of pictures of any size

    convolutions = nn.Sequential(
        nn.PixelUnshuffle(4),  # 4x4 blocks as channels: with it 2x2 is 8x8 with stride 4, and faster
        layer_init(nn.Conv2d(16 * shape[0], 16, 2)),
        *norm(16),
        nn.ReLU(),
        layer_init(nn.Conv2d(16, 32, 4, stride=2)),
        *norm(32),
        nn.ReLU(),
        nn.Flatten(),
    )
    hidden = layer_init(nn.Linear(convolutions(torch.zeros(1, *shape)).shape[1], FEATURES))
    return nn.Sequential(*convolutions, hidden, *([nn.LayerNorm(FEATURES)] if normalised else []), nn.ReLU())
