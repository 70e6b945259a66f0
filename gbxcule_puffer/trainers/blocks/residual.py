"""Deeper convolutions than the scripts' usual two, for games on a board: residual blocks on the grid of tiles."""

from __future__ import annotations

import torch
from torch import nn

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers.blocks.layers import Patches, layer_init
from gbxcule_puffer.trainers.blocks.objects import VECTOR, TileVectors

CHANNELS = 32
BLOCKS = 2


class Residual(nn.Module):
    """Features (n, CHANNELS, rows, columns) -> the same shape: the input plus two convolutions of 3x3 cells. The second
    begins with zeros, so that an untrained block changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layer_init(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1))
        self.second = layer_init(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), 0.0)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The changed features."""
        return features + self.second(self.first(features.relu()).relu())


def residual_layers(layout: ObservationLayout) -> nn.Sequential:
    """Layers from layout.pixels to a vector of features. In pictures of half the resolution, 4x4 pixels are a tile of
    the Game Boy; the blocks work on cells of 2x2 tiles.

    Raises: ConfigError for sprites, which lie on no grid.
    """
    planes = layout.picture_shape[0]
    if layout.kind.form == "objects":
        raise ConfigError("--residual takes pictures or tiles, not objects, which lie on no grid")
    first, channels = (
        (TileVectors(planes), planes * VECTOR)
        if layout.kind.form == "tiles"
        else (Patches(layout.kind.most), 16 * planes)
    )
    onto_tiles = layer_init(nn.Conv2d(channels, CHANNELS, 3, padding=1))
    onto_cells = layer_init(nn.Conv2d(CHANNELS, CHANNELS, 3, stride=2, padding=1))
    blocks = [Residual() for _ in range(BLOCKS)]
    return nn.Sequential(first, onto_tiles, nn.ReLU(), onto_cells, *blocks, nn.Flatten(), nn.ReLU())
