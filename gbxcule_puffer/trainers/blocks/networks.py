"""The layers that all networks begin with: from observations to features."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers.blocks import convolutions

FEATURES = 256
CHANNELS = (16, 32)  # of what the convolutions find
CONVOLUTIONS = 5  # layers of a Trunk that is not normalised up to the second convolution's ReLU


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias, made by one thread: several wait for each other at each column, which takes
    seconds where other programs want the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        nn.init.orthogonal_(layer.weight, std)
    finally:
        torch.set_num_threads(threads)
    nn.init.zeros_(layer.bias)
    return layer


class Patches(nn.Module):
    """Pixels (n, channels, rows, columns) from 0 to `most` -> (n, 16 * channels, rows / 4, columns / 4) from 0 to 1,
    float32 or what autocast takes: 4x4 pixels as channels, in the order of nn.PixelUnshuffle(4). With them a
    convolution of 2x2 is one of 8x8 with stride 4, and faster.

    They are moved before they are converted, bytes on a CPU four at a time, and lie in memory channels last.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """The patches."""
        count, channels, rows, columns = pixels.shape
        in_words = pixels.dtype == torch.uint8 and not pixels.is_cuda
        moved = pixels.contiguous().view(torch.int32 if in_words else pixels.dtype)
        moved = moved.view(count, channels, rows // 4, 4, columns // 4, -1).permute(0, 2, 4, 1, 3, 5).contiguous()
        patches = moved.view(pixels.dtype).view(count, rows // 4, columns // 4, 16 * channels).permute(0, 3, 1, 2)
        device = pixels.device.type
        autocast = torch.is_autocast_enabled(device)
        return patches.to(torch.get_autocast_dtype(device) if autocast else torch.float32) / self.most


class Trunk(nn.Sequential):
    """Two strided convolutions on the pictures, and a hidden layer for what they find and for the vectors that are
    observed beside them: observations (batch, *layout.shape) -> (batch, FEATURES).

    normalised: LayerNorm before each ReLU.
    """

    def __init__(self, layout: ObservationLayout, normalised: bool = False) -> None:
        def norm(channels: int) -> list[nn.Module]:
            return [nn.GroupNorm(1, channels)] if normalised else []  # one group: LayerNorm, of pictures of any size

        shape = layout.picture_shape
        layers = nn.Sequential(
            Patches(layout.kind.most),
            layer_init(nn.Conv2d(16 * shape[0], CHANNELS[0], 2)),
            *norm(CHANNELS[0]),
            nn.ReLU(),
            layer_init(nn.Conv2d(*CHANNELS, 4, stride=2)),
            *norm(CHANNELS[1]),
            nn.ReLU(),
            nn.Flatten(),
        )
        found = layers(torch.zeros(1, *shape)).shape[1]
        hidden = layer_init(nn.Linear(found + layout.vector_size, FEATURES))
        super().__init__(*layers, hidden, *([nn.LayerNorm(FEATURES)] if normalised else []), nn.ReLU())
        self.layout, self._joint, self._normalised = layout, len(layers), normalised

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The features of observations."""
        features = self.layout.pixels(observations)
        begin = 0
        if not self._normalised and convolutions.can_do(features, CHANNELS):
            features, begin = self._convolved(features), CONVOLUTIONS
        for number, layer in list(enumerate(self))[begin:]:
            if number == self._joint:
                features = self.layout.join(features, observations)
            features = layer(features)
        return features

    def _convolved(self, pixels: torch.Tensor) -> torch.Tensor:
        """What the first CONVOLUTIONS layers make of pixels."""
        first: Any = self[1]
        second: Any = self[3]
        found = convolutions.on_pixels(pixels.contiguous(), first.weight / self.layout.kind.most, first.bias)
        return convolutions.on_features(found, second.weight, second.bias).permute(0, 3, 1, 2)
