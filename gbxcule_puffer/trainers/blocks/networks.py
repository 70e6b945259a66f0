"""The layers that all networks begin with: from observations to features."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gbxcule_puffer.tasks.observations import ObservationLayout

FEATURES = 256


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class Trunk(nn.Sequential):
    """Two strided convolutions on the pictures, and a hidden layer for what they find and for the vectors that are
    observed beside them: observations (batch, *layout.shape) -> (batch, FEATURES).

    normalised: LayerNorm before each ReLU.
    """

    def __init__(self, layout: ObservationLayout, normalised: bool = False) -> None:
        def norm(channels: int) -> list[nn.Module]:
            return [nn.GroupNorm(1, channels)] if normalised else []  # one group: LayerNorm, of pictures of any size

        shape = layout.picture_shape
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
        found = convolutions(torch.zeros(1, *shape)).shape[1]
        hidden = layer_init(nn.Linear(found + layout.vector_size, FEATURES))
        super().__init__(*convolutions, hidden, *([nn.LayerNorm(FEATURES)] if normalised else []), nn.ReLU())
        self.layout, self._joint = layout, len(convolutions)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The features of observations."""
        features = self.layout.pictures(observations)
        for number, layer in enumerate(self):
            if number == self._joint:
                features = self.layout.join(features, observations)
            features = layer(features)
        return features
