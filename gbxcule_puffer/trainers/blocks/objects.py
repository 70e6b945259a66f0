"""First layers of the scripts' networks for observations without pixels: tiles and sprites."""

from __future__ import annotations

import torch
from torch import nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import NO_TILE
from gbxcule_puffer.trainers.blocks.layers import layer_init

VECTOR = 8  # numbers that are learned for each tile
SPRITE_TILES = 512  # of both banks
CENTRE, REACH = 88.0, 44.0  # of positions


class TileVectors(nn.Module):
    """Tiles (n, 2 * stack_k, 18, 20) -> (n, 2 * stack_k * VECTOR, 18, 20): a learned vector for each tile of the
    background, and another one for the same tile as a sprite's."""

    first: torch.Tensor

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(2 * (NO_TILE + 1), VECTOR)
        self.register_buffer("first", torch.arange(planes) % 2 * (NO_TILE + 1), persistent=False)

    def forward(self, tiles: torch.Tensor) -> torch.Tensor:
        """The vectors, as channels, stored last."""
        return self.vectors(tiles.permute(0, 2, 3, 1).int() + self.first).flatten(3).permute(0, 3, 1, 2)


class SpriteVectors(nn.Module):
    """Sprites (n, stack_k, 40, 10) -> (n, 40, stack_k * (VECTOR + 8)): a learned vector for each tile, and the other
    numbers in units of about 1; zeros for a sprite that is not visible."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Embedding(SPRITE_TILES, VECTOR)

    def forward(self, sprites: torch.Tensor) -> torch.Tensor:
        """The vectors of each sprite, the newest last."""
        sprites = sprites.transpose(1, 2)
        tile, positions = sprites[..., 2].int() + 256 * sprites[..., 3].int(), sprites[..., :2].float()
        parts = [self.vectors(tile), (positions - CENTRE) / REACH, sprites[..., 4:5] / 7, sprites[..., 5:].float()]
        return (torch.cat(parts, -1) * sprites[..., 9:]).flatten(2)


def object_layers(layout: ObservationLayout) -> nn.Sequential | None:
    """Layers for tiles or objects, from layout.pixels to a vector of features; None where pictures are observed."""
    if layout.kind.form == "tiles":
        planes = layout.picture_shape[0]
        first, second = nn.Conv2d(planes * VECTOR, 32, 3, stride=2, padding=1), nn.Conv2d(32, 32, 3)
        layers = [TileVectors(planes), layer_init(first), nn.ReLU(), layer_init(second), nn.ReLU()]
    elif layout.kind.form == "objects":
        first, second = nn.Linear(layout.stack_k * (VECTOR + 8), 64), nn.Linear(64, 32)
        layers = [SpriteVectors(), layer_init(first), nn.ReLU(), layer_init(second), nn.ReLU()]
    else:
        return None
    return nn.Sequential(*layers, nn.Flatten())
