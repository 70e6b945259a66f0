"""The convolutions of a script's network, by the kernels of this folder."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gbxcule_puffer.trainers.blocks.layers import Patches
from gbxcule_puffer.trainers.kernels import ahead, convolutions


class FastConvolutions(nn.Sequential):
    """The same layers with the same weights: Patches, a 2x2 convolution, ReLU, a 4x4 convolution with stride 2,
    Flatten, ReLU.

    In bfloat16 on a GPU with tensor cores they are two kernels, which take a third of cuDNN's time for so few channels
    (docs/scale.md). Everywhere else they are torch's.
    """

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__(*layers)
        ahead.finish()
        patches, first, _, second, flatten, relu = layers
        assert isinstance(patches, Patches) and isinstance(first, nn.Conv2d) and isinstance(second, nn.Conv2d)
        assert isinstance(flatten, nn.Flatten) and isinstance(relu, nn.ReLU)
        self._most, self._channels = patches.most, (first.out_channels, second.out_channels)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The layers' output for pixels (n, channels, rows, columns) uint8."""
        if not convolutions.can_do(input, self._channels):
            return super().forward(input)
        first: Any = self[1]
        second: Any = self[3]
        found = convolutions.on_pixels(input.contiguous(), first.weight / self._most, first.bias)
        return convolutions.on_features(found, second.weight, second.bias).flatten(1)
