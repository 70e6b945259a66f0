"""The positions of all players: now, and all that were seen since somebody looked for the first time."""

from __future__ import annotations

import time

import numpy as np

MOST_CELLS = 2**15 - 1  # of all maps; further ones are left out
SECONDS = 0.5  # between two messages with all cells


class Footprints:
    """Counts of visits by cell. A cell is (map, row, column), of a byte each, as one number: map << 16 | row << 8 |
    column."""

    def __init__(self, sample: np.ndarray) -> None:
        """sample: numbers of the Game Boys on the wall."""
        self._sample, self._sent = sample, 0.0
        # By cell its number, from 1 on in the order of discovery; pages that are never touched take no memory.
        self._numbers = np.zeros(2**24, np.uint16)
        self._cells, self._visits = np.zeros(MOST_CELLS + 1, np.int32), np.zeros(MOST_CELLS + 1, np.int64)
        self._count = 0

    def take(self, positions: np.ndarray) -> bytes:
        """Counts where everybody is now, (num_envs, 2 or 3) uint8, and returns little-endian int32: the cells of those
        on the wall; twice a second also rows of cell, Game Boys that are there now, and visits, of all cells."""
        cells = positions[:, -2].astype(np.int32) << 8 | positions[:, -1]
        if positions.shape[1] == 3:
            cells |= positions[:, 0].astype(np.int32) << 16
        fresh = np.unique(cells[self._numbers[cells] == 0])[: MOST_CELLS - self._count]
        numbers = slice(self._count + 1, self._count + 1 + len(fresh))
        self._numbers[fresh] = np.arange(numbers.start, numbers.stop)
        self._cells[numbers] = fresh
        self._count += len(fresh)
        now = np.bincount(self._numbers[cells], minlength=MOST_CELLS + 1)
        self._visits += now
        rows = cells[self._sample].astype("<i4").tobytes()
        if time.monotonic() < self._sent + SECONDS:
            return rows
        self._sent = time.monotonic()
        known = slice(1, self._count + 1)
        visits = np.minimum(self._visits[known], 2**31 - 1)
        return rows + np.stack([self._cells[known], now[known], visits], axis=1).astype("<i4").tobytes()
