"""The convolutions of a script's network, by the kernels of this folder."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gbxcule_puffer.trainers.blocks.layers import Patches
from gbxcule_puffer.trainers.kernels import ahead, convolutions

CONVOLUTIONS = 5  # layers from the pixels to the second ReLU


class FastConvolutions(nn.Sequential):
    """The same layers with the same weights: Patches, a 2x2 convolution, ReLU, a 4x4 convolution with stride 2, ReLU,
    and the layers after them.

    In bfloat16 on a GPU with tensor cores, the first five layers are two kernels, which take a third of cuDNN's time
    for so few channels (docs/scale.md). Everywhere else they are torch's.
    """

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__(*layers)
        ahead.finish()
        patches, first, _, second, _ = list(layers)[:CONVOLUTIONS]
        assert isinstance(patches, Patches) and isinstance(first, nn.Conv2d) and isinstance(second, nn.Conv2d)
        self._most, self._channels = patches.most, (first.out_channels, second.out_channels)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The layers' output for pixels (n, channels, rows, columns) uint8."""
        if not convolutions.can_do(input, self._channels):
            return super().forward(input)
        first: Any = self[1]
        second: Any = self[3]
        found = convolutions.on_pixels(input.contiguous(), first.weight / self._most, first.bias)
        features = convolutions.on_features(found, second.weight, second.bias).permute(0, 3, 1, 2)
        for layer in list(self)[CONVOLUTIONS:]:
            features = layer(features)
        return features
