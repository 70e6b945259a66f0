"""The env that each lane of the GPU runs: envs whose steps will take equally long share a warp, the longest first.

A warp runs until its slowest env has finished the step. How long that takes depends on where the game is (a menu here,
a full screen of enemies there) and on the buttons: the mean of the steps that began alike, with the same buttons, stack
pointer, program counter and length of the step before, says it well. No result depends on it.
"""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator.state import INDEX

BINS = wp.constant(1024)
WIDTH = wp.constant(256)  # instructions of a bin
KINDS = wp.constant(1 << 14)  # of beginnings of a step
MANY = wp.constant(4096)  # samples of a kind; then the older ones count half
TEACHERS = 16_384  # envs that the means are made from, at most
INSTRUCTIONS = wp.constant(INDEX["instructions"])
STACK_POINTER = wp.constant(INDEX["sp"])
PROGRAM_COUNTER = wp.constant(INDEX["pc"])


@wp.func
def length(state: wp.array2d(dtype=wp.int32), skipped: wp.array(dtype=wp.int32), env: int) -> int:
    """Of the env's last step, in bins."""
    return wp.clamp((state[INSTRUCTIONS, env] - skipped[env]) // WIDTH, 0, BINS - 1)


@wp.func
def kind(state: wp.array2d(dtype=wp.int32), env: int, buttons: int, last: int) -> int:
    """A hash of how a step begins; a length counts by its order of magnitude, four to an octave."""
    magnitude = int(4.0 * wp.log2(float(last + 1)))
    value = wp.uint32(magnitude * 256 + buttons) * wp.uint32(0x9E3779B1) + wp.uint32(state[STACK_POINTER, env])
    value = value * wp.uint32(0x85EBCA6B) + wp.uint32(state[PROGRAM_COUNTER, env])
    value = value * wp.uint32(0xC2B2AE35)
    return int((value >> wp.uint32(15)) & wp.uint32(KINDS - 1))


@wp.kernel(enable_backward=False)
def kernel_learn(
    state: wp.array2d(dtype=wp.int32),
    skipped: wp.array(dtype=wp.int32),
    kinds: wp.array(dtype=wp.int32),
    means: wp.array2d(dtype=wp.int32),
    stride: int,
):
    """Sums and numbers of how long the steps of each kind took, of every env whose number divides by `stride`; dim =
    num_envs."""
    env = wp.tid()
    if env % stride == 0 and kinds[env] >= 0:  # pyright: ignore[reportOperatorIssue]
        took = length(state, skipped, env)  # pyright: ignore[reportArgumentType]
        wp.atomic_add(means, 0, kinds[env], took)
        wp.atomic_add(means, 1, kinds[env], 1)


@wp.kernel(enable_backward=False)
def kernel_count(
    state: wp.array2d(dtype=wp.int32),
    skipped: wp.array(dtype=wp.int32),
    buttons: wp.array(dtype=wp.uint8),
    kinds: wp.array(dtype=wp.int32),
    means: wp.array2d(dtype=wp.int32),
    place: wp.array2d(dtype=wp.int32),
    counts: wp.array2d(dtype=wp.int32),
):
    """Each env's bin and its place there, which comes first comes first; dim = num_envs."""
    env = wp.tid()
    expected = length(state, skipped, env)  # pyright: ignore[reportArgumentType]
    index = kind(state, env, int(buttons[env]), expected)  # pyright: ignore[reportArgumentType]
    kinds[env] = index
    if means[1, index] > 0:
        expected = means[0, index] // means[1, index]
    index_of_bin = BINS - 1 - wp.clamp(expected, 0, BINS - 1)
    place[0, env] = index_of_bin
    place[1, env] = wp.atomic_add(counts, 0, index_of_bin, 1)


@wp.kernel(enable_backward=False)
def kernel_add_up(counts: wp.array2d(dtype=wp.int32)):
    """The place at which each bin begins; dim = BINS."""
    index = wp.tid()
    begin = int(0)
    for earlier in range(index):  # pyright: ignore[reportArgumentType]
        begin = begin + counts[0, earlier]
    counts[1, index] = begin


@wp.kernel(enable_backward=False)
def kernel_order(
    place: wp.array2d(dtype=wp.int32),
    counts: wp.array2d(dtype=wp.int32),
    means: wp.array2d(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
):
    """The envs by bins, and counts and means for the next time; dim = num_envs or KINDS, whichever is more."""
    index = wp.tid()
    if index < order.shape[0]:
        order[counts[1, place[0, index]] + place[1, index]] = index
    if index < BINS:
        counts[0, index] = 0
    if index < KINDS and means[1, index] > MANY:
        means[0, index] = means[0, index] // 2
        means[1, index] = means[1, index] // 2


class LaneOrder:
    """order (num_envs,) int32: the env of each lane; at first lane i has env i."""

    def __init__(self, num_envs: int, device: str) -> None:
        self.order = torch.arange(num_envs, dtype=torch.int32, device=device)
        self._kinds = torch.full((num_envs,), -1, dtype=torch.int32, device=device)
        self._means = torch.zeros((2, KINDS), dtype=torch.int32, device=device)
        self._place = torch.zeros((2, num_envs), dtype=torch.int32, device=device)
        self._counts = torch.zeros((2, BINS), dtype=torch.int32, device=device)

    def update(
        self, state: torch.Tensor, skipped: torch.Tensor, buttons: torch.Tensor, stream: wp.Stream | None
    ) -> None:
        """Sort for a step with `buttons` (num_envs,) uint8; `state` and `skipped` as in Machine, after the last step.
        No host synchronisation and no allocation."""
        n, device = len(self.order), str(self.order.device)
        tensors = (state, skipped, buttons, self._kinds, self._means, self._place, self._counts, self.order)
        steps, skips, pressed, kinds, means, place, counts, order = (wp.from_torch(tensor) for tensor in tensors)
        where: dict[str, Any] = {"device": device} if stream is None else {"stream": stream}
        wp.launch(kernel_learn, n, [steps, skips, kinds, means, -(-n // TEACHERS)], **where)
        wp.launch(kernel_count, n, [steps, skips, pressed, kinds, means, place, counts], **where)
        wp.launch(kernel_add_up, BINS, [counts], **where)
        wp.launch(kernel_order, max(n, KINDS), [place, counts, means, order], **where)


def memory_needed(num_envs: int) -> int:
    """Bytes that a LaneOrder allocates."""
    return 4 * (4 * num_envs + 2 * BINS + 2 * KINDS)
