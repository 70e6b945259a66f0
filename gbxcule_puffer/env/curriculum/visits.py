"""Counts of the cells that the envs have visited: a bonus of 1 / sqrt(n) for the n-th visit of a cell, counted on the
device."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher, words
from gbxcule_puffer.tasks.ram import RamWatch

# A cell of a picture: 9 x 10 blocks, one a metatile of 16x16 pixels of the Game Boy, each with one of LEVELS shades.
BLOCK_ROWS, BLOCK_COLUMNS = 9, 10
LEVELS = 8
PART = 16  # words of a picture that a thread hashes; 80 x 72 and 160 x 144 pixels have multiples of it
TABLE_BITS = 20
TABLE_ROWS = 2


@wp.func
def mix(value: wp.uint64) -> wp.uint64:
    """SplitMix64's finaliser."""
    value = (value ^ (value >> wp.uint64(30))) * wp.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> wp.uint64(27))) * wp.uint64(0x94D049BB133111EB)
    return value ^ (value >> wp.uint64(31))


@wp.kernel(enable_backward=False)
def kernel_hash_picture(
    screen: wp.array2d(dtype=wp.int32), columns: int, size: int, levels: int, key: wp.array(dtype=wp.int64)
):
    """Adds the contribution of each block to the key of its env's picture: a function of its index and its mean shade.

    Four shades per word: a block of at most 16 x 16 has 64 words, so their sums fit into a word's bytes.
    """
    env, block = wp.tid()  # pyright: ignore
    row_words = columns * size // 4
    first = (block // columns) * size * row_words + (block % columns) * size // 4
    sums = wp.int32(0)
    for y in range(size):
        for x in range(size // 4):
            sums += screen[env, first + y * row_words + x]
    pairs = (sums & 0x00FF00FF) + ((sums >> 8) & 0x00FF00FF)
    total = (pairs & 0xFFFF) + (pairs >> 16)
    level = total * levels // (3 * size * size + 1)
    wp.atomic_add(key, env, wp.int64(mix(wp.uint64(block * 256 + level + 1))))


@wp.kernel(enable_backward=False)
def kernel_hash_pixels(screen: wp.array2d(dtype=wp.int32), each: int, key: wp.array(dtype=wp.int64)):
    """Adds the contributions of `each` words, of four pixels each, to the key of their env's picture."""
    env, part = wp.tid()  # pyright: ignore
    share = wp.uint64(0)
    for word in range(part * each, (part + 1) * each):
        share += mix((wp.uint64(word + 1) << wp.uint64(32)) + wp.uint64(screen[env, word]))
    wp.atomic_add(key, env, wp.int64(share))


@wp.kernel(enable_backward=False)
def kernel_hash_bytes(values: wp.array2d(dtype=wp.uint8), key: wp.array(dtype=wp.int64)):
    """Adds the contribution of each byte to the key of its env."""
    env, index = wp.tid()  # pyright: ignore
    wp.atomic_add(key, env, wp.int64(mix(wp.uint64(index * 256 + int(values[env, index]) + 1))))


@wp.func
def table_index(key: wp.int64, row: int, bits: int) -> int:
    """The column in which a row of the table counts a key: each row uses other bits of the mixed key."""
    return int((mix(wp.uint64(key)) >> wp.uint64(row * 32)) & wp.uint64((1 << bits) - 1))


@wp.kernel(enable_backward=False)
def kernel_visit(
    key: wp.array(dtype=wp.int64),
    before: wp.array(dtype=wp.int64),
    bits: int,
    table: wp.array2d(dtype=wp.int64),
    first: wp.array(dtype=wp.bool),
    totals: wp.array(dtype=wp.int64),
):
    """Counts each env's key once in every row; records which are new, and how many of how many."""
    env = wp.tid()
    for row in range(table.shape[0]):
        wp.atomic_add(table, row, table_index(key[env], row, bits), wp.int64(1))
    first[env] = before[env] == wp.int64(0)
    if first[env]:
        wp.atomic_add(totals, 0, wp.int64(1))
    if env == 0:
        totals[1] = totals[1] + wp.int64(first.shape[0])


@wp.kernel(enable_backward=False)
def kernel_look_up(
    key: wp.array(dtype=wp.int64), bits: int, table: wp.array2d(dtype=wp.int64), count: wp.array(dtype=wp.int64)
):
    """The count of each key: the least over the rows."""
    index = wp.tid()
    least = table[0, table_index(key[index], 0, bits)]
    for row in range(1, table.shape[0]):
        least = wp.min(least, table[row, table_index(key[index], row, bits)])
    count[index] = least


class VisitCounter:
    """Counts how often all envs together have visited each cell, over the whole run.

    The kind of cell is a downsampled 'picture' of `screen` (mean shades of 9 x 10 blocks in 8 levels), all its
    'pixels', or, opt-in, the bytes that a RamWatch reads. Its 64-bit key is counted in TABLE_ROWS rows of 2**TABLE_BITS
    counters, each in another column, and the smallest count is taken (a count-min sketch): memory is bounded, and a
    count is wrong only if a cell collides in every row. The counters are integers, and all visits of a step are counted
    before any is read. So the counts depend neither on the device nor on the order of the envs.

    coarse: the counter that weighs an archive's slots. It is this one, but for 'pixels' one of 'picture', because most
    cells of all pixels are visited only a few times.

    key, visits, before (num_envs,) int64: each env's cell, its visits including this step's, and excluding them; bonus
    (num_envs,) float32 = 1 / sqrt(visits); first (num_envs,) bool: before is 0. Allocates only here.
    """

    def __init__(self, screen: torch.Tensor, kind: RamWatch | str = "picture", archive: bool = False) -> None:
        n, device = len(screen), screen.device
        self.screen, self.kind = screen, kind
        self._held: torch.Tensor | None = None
        self.table = torch.zeros((TABLE_ROWS, 1 << TABLE_BITS), dtype=torch.int64, device=device)
        self.key, self.visits, self.before = (torch.zeros(n, dtype=torch.int64, device=device) for _ in range(3))
        self.bonus = torch.zeros(n, device=device)
        self._exact = torch.zeros(n, dtype=torch.float64, device=device)
        self.first = torch.zeros(n, dtype=torch.bool, device=device)
        self.coarse = VisitCounter(screen) if archive and kind == "pixels" else self
        self.totals = torch.zeros(2, dtype=torch.int64, device=device)
        self._launch = Launcher(device)

    def follow(self, held: torch.Tensor) -> None:
        """From now on these belong to a cell as well, beside its bytes of RAM: (parts, num_envs) bool. Allocates."""
        assert isinstance(self.kind, RamWatch)
        parts = (self.kind.values.shape[1], len(held))
        self._held = held
        self._values = torch.zeros((len(self.key), sum(parts)), dtype=torch.uint8, device=held.device)
        self._of_ram, self._of_held = self._values.split(parts, 1)

    def visit(self) -> None:
        """Counts the current cells of the envs."""
        n, launch = len(self.key), self._launch
        self.key.zero_()
        if isinstance(self.kind, RamWatch):
            values = self.kind.read()
            if self._held is not None:
                self._of_ram.copy_(values)
                self._of_held.copy_(self._held.T)
                values = self._values
            launch(kernel_hash_bytes, tuple(values.shape), values, self.key)
        elif self.kind == "pixels":
            screen = words(self.screen)
            launch(kernel_hash_pixels, (n, screen.shape[1] // PART), screen, PART, self.key)
        else:
            blocks = BLOCK_ROWS * BLOCK_COLUMNS
            size = self.screen.shape[1] // BLOCK_ROWS
            launch(kernel_hash_picture, (n, blocks), words(self.screen), BLOCK_COLUMNS, size, LEVELS, self.key)
        self.look_up(self.key, self.before)
        launch(kernel_visit, n, self.key, self.before, TABLE_BITS, self.table, self.first, self.totals)
        self.look_up(self.key, self.visits)
        # In float64, since some CPUs' float32 differs from the GPU's in the last bit.
        self.bonus.copy_(self._exact.copy_(self.visits).sqrt_().reciprocal_())
        if self.coarse is not self:
            self.coarse.visit()

    def look_up(self, key: torch.Tensor, count: torch.Tensor) -> None:
        """Visits so far of any cells, by their keys."""
        self._launch(kernel_look_up, len(key), key, TABLE_BITS, self.table, count)

    def read(self) -> dict[str, float]:
        """Cells in the table, the share of steps since the last read that entered a new one, and the current bonus."""
        cells = torch.count_nonzero(self.table, dim=1).amax()
        first, steps, known, bonus = torch.cat([self.totals.double(), cells[None], self.bonus.mean()[None]]).tolist()
        self.totals.zero_()
        return {"visits/cells": known, "visits/first_share": first / max(1.0, steps), "visits/bonus": bonus}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        coarse = {} if self.coarse is self else {"visit_coarse_table": self.coarse.table}
        return {"visit_table": self.table, "visit_totals": self.totals, **coarse}
