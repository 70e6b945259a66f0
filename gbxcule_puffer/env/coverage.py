"""Coverage: how often all envs together have been at each position of the game's maps, and a picture of it."""

from __future__ import annotations

import numpy as np
import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.ram.position import Position

CELLS = 2**24  # map, row and column, a byte each
GAP, LEAST_WIDTH = 2, 192  # pixels between two maps, and of a picture
COLD, WARM = np.array([40.0, 24, 72]), np.array([255.0, 214, 92])  # of cells that were seen once, and most often
GROUND = np.array([16, 16, 24], np.uint8)


class Coverage:
    """Counts of the steps that ended at each (map, row, column), over all envs and the whole run: 64 MiB.

    position: RAM of (map,) row and column. Allocates only here.
    """

    def __init__(self, ram: Ram, position: Position) -> None:
        self._ram, self._position = ram, list(position)
        self.counts = torch.zeros(CELLS, dtype=torch.int32, device=ram.device)
        self._ones = torch.ones(ram.num_envs, dtype=torch.int32, device=ram.device)

    def count(self) -> None:
        """Adds where the envs are now."""
        key = torch.zeros_like(self._ones)
        for part in self._ram[self._position].unbind(1):  # pyright: ignore[reportArgumentType]
            key = key * 256 + part
        self.counts.index_add_(0, key, self._ones)

    def cells(self) -> np.ndarray:
        """Map, row, column and count of each cell that was seen, (cells, 4) int64."""
        seen = self.counts.nonzero()[:, 0]
        found = torch.stack([seen >> 16, seen >> 8 & 255, seen & 255, self.counts[seen]], 1)
        return found.cpu().numpy()

    def read(self) -> dict[str, float]:
        """Cells and maps that were seen."""
        seen = self.counts.view(256, -1) > 0
        cells, maps = torch.stack([seen.sum(), seen.any(1).sum()]).tolist()
        return {"coverage/cells": float(cells), "coverage/maps": float(maps)}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        return {"coverage_counts": self.counts}


def merged(parts: list[np.ndarray]) -> np.ndarray:
    """The cells of several envs or processes as those of one."""
    every = np.concatenate(parts)
    keys, index = np.unique(every[:, 0] << 16 | every[:, 1] << 8 | every[:, 2], return_inverse=True)
    counts = np.bincount(index, every[:, 3], minlength=len(keys)).astype(np.int64)
    return np.stack([keys >> 16, keys >> 8 & 255, keys & 255, counts], 1)


def picture(cells: np.ndarray) -> np.ndarray:
    """The maps that were seen, by their numbers from left to right and top to bottom, each cut to the cells that were
    seen: RGB (rows, columns, 3) uint8. The more often a cell was seen, the warmer it is, on a logarithmic scale."""
    tiles = []
    most = np.log1p(cells[:, 3].max(initial=1))
    for number in np.unique(cells[:, 0]):
        own = cells[cells[:, 0] == number]
        low, high = own[:, 1:3].min(0), own[:, 1:3].max(0)
        tile = np.empty((*(high - low + 1), 3), np.uint8)
        tile[:] = GROUND
        warmth = (np.log1p(own[:, 3]) / most)[:, None]
        tile[tuple((own[:, 1:3] - low).T)] = (COLD + (WARM - COLD) * warmth).astype(np.uint8)
        tiles.append(tile)
    area = sum((tile.shape[0] + GAP) * (tile.shape[1] + GAP) for tile in tiles)
    width = max(LEAST_WIDTH, int(area**0.5), *(tile.shape[1] for tile in tiles)) if tiles else LEAST_WIDTH
    corners, x, y, height = [], 0, 0, 0
    for tile in tiles:
        if x and x + tile.shape[1] > width:
            x, y, height = 0, y + height + GAP, 0
        corners.append((y, x))
        x, height = x + tile.shape[1] + GAP, max(height, tile.shape[0])
    sheet = np.zeros((max(1, y + height), width, 3), np.uint8)
    for (top, left), tile in zip(corners, tiles, strict=True):
        sheet[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return sheet
