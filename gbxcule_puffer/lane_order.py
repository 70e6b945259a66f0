"""Which env a lane of the GPU runs: those whose steps take alike long share a warp, the longest first.

A warp runs until its slowest env has finished the step. Games that differ (a menu here, a full screen of enemies there)
differ for many steps, so the last step tells. No result depends on it.
"""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

BINS = wp.constant(1024)
WIDTH = wp.constant(256)  # instructions of a bin


@wp.kernel(enable_backward=False)
def kernel_count(
    instructions: wp.array(dtype=wp.int32),
    skipped: wp.array(dtype=wp.int32),
    place: wp.array2d(dtype=wp.int32),
    counts: wp.array2d(dtype=wp.int32),
):
    """Each env's bin and its place there, which comes first comes first; dim = num_envs."""
    env = wp.tid()
    index = BINS - 1 - wp.clamp((instructions[env] - skipped[env]) // WIDTH, 0, BINS - 1)
    place[0, env] = index
    place[1, env] = wp.atomic_add(counts, 0, index, 1)


@wp.kernel(enable_backward=False)
def kernel_add_up(counts: wp.array2d(dtype=wp.int32)):
    """Where each bin begins; dim = BINS."""
    index = wp.tid()
    begin = int(0)
    for earlier in range(index):  # pyright: ignore[reportArgumentType]
        begin = begin + counts[0, earlier]
    counts[1, index] = begin


@wp.kernel(enable_backward=False)
def kernel_order(
    place: wp.array2d(dtype=wp.int32), counts: wp.array2d(dtype=wp.int32), order: wp.array(dtype=wp.int32)
):
    """The envs by bins, and the counts for the next time; dim = num_envs or BINS, whichever is more."""
    env = wp.tid()
    if env < order.shape[0]:
        order[counts[1, place[0, env]] + place[1, env]] = env
    if env < BINS:
        counts[0, env] = 0


class LaneOrder:
    """order (num_envs,) int32: the env of each lane; at first lane i has env i."""

    def __init__(self, num_envs: int, device: str) -> None:
        self.order = torch.arange(num_envs, dtype=torch.int32, device=device)
        self._place = torch.zeros((2, num_envs), dtype=torch.int32, device=device)
        self._counts = torch.zeros((2, BINS), dtype=torch.int32, device=device)

    def update(self, instructions: torch.Tensor, skipped: torch.Tensor, stream: wp.Stream | None) -> None:
        """Sort by what each env executed in the last step, both (num_envs,) int32, into BINS bins. No host
        synchronisation and no allocation."""
        n, device = len(self.order), str(self.order.device)
        place, counts, order = (wp.from_torch(tensor) for tensor in (self._place, self._counts, self.order))
        where: dict[str, Any] = {"device": device} if stream is None else {"stream": stream}
        inputs = [wp.from_torch(instructions), wp.from_torch(skipped), place, counts]
        wp.launch(kernel_count, n, inputs, **where)
        wp.launch(kernel_add_up, BINS, [counts], **where)
        wp.launch(kernel_order, max(n, BINS), [place, counts, order], **where)


def memory_needed(num_envs: int) -> int:
    """Bytes that a LaneOrder allocates."""
    return 4 * (3 * num_envs + 2 * BINS)
