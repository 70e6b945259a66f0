"""Counts over a recording: kernels that read each value once, on the recording's device."""

# Kernels: Warp's integers are types of their own, a struct is not a class for pyright.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from dataclasses import dataclass

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher, fill
from gbxcule_puffer.scan.play import BRANCHES, FORK_LOOKS, HELD_LOOKS

VALID, DRAWN, SCENE = wp.constant(1), wp.constant(2), wp.constant(4)  # bits of an env's look
# Rows of the counts of changes; those of carries, once for each of two neighbours.
CHANGES = ("scene", "drawn", "gaps", "gap_sum", "gap_squares", "envs", "falls_to_start", "sets_bits", "clears_bits")
CARRIES = ("rose", "fell", "made_good", "wide")
# Rows of the counts of forks: for each branch, and for all of them together.
OF_BRANCH = ("higher", "lower", "reacts", "goes_on", "one_way", "back", "goes_higher", "goes_lower", "goes_further")
OF_FORK = ("noop_steps", "agree", "moved", "regardless")
ALL_BRANCHES, LOOKS, HELD, MIDDLE = (wp.constant(n) for n in (len(BRANCHES), FORK_LOOKS, HELD_LOOKS, HELD_LOOKS // 2))
FEW_STEP = wp.constant(10)  # a neighbour that rises by less takes a carry
HALF = wp.constant(128)
OfBranch = wp.types.vector(length=len(OF_BRANCH), dtype=wp.int32)


@wp.struct
class Looks:
    """A recording: values of bytes by look and env, the bits of each env's look, and of each byte its value at the
    start and two neighbours, -1 where there is none."""

    values: wp.array3d(dtype=wp.uint8)
    bits: wp.array2d(dtype=wp.uint8)
    start: wp.array(dtype=wp.uint8)
    neighbours: wp.array2d(dtype=wp.int32)


@wp.func
def near(difference: int) -> int:
    """The nearest number with the same lowest 8 bits, -128 to 127."""
    return ((difference + HALF) & 255) - HALF


@wp.func
def add(counts: wp.array2d(dtype=wp.int64), row: int, byte: int, number: int):
    """Adds a thread's count to a byte's."""
    if number > 0:
        wp.atomic_add(counts, row, byte, wp.int64(number))


@wp.kernel(enable_backward=False)
def kernel_changes(
    r: Looks,
    counts: wp.array2d(dtype=wp.int64),
    carries: wp.array2d(dtype=wp.int64),
    steps: wp.array2d(dtype=wp.int32),
    reached: wp.array2d(dtype=wp.int32),
    rose_to: wp.array2d(dtype=wp.int32),
    seen: wp.array2d(dtype=wp.bool),
):
    """All changes of one byte in one env."""
    env, byte = wp.tid()  # pyright: ignore
    scene, drawn, to_start, sets, clears = int(0), int(0), int(0), int(0), int(0)
    gaps, gap_sum, gap_squares, changes = int(0), int(0), wp.int64(0), int(0)
    last = int(-1)
    before = int(r.values[0, env, byte])
    for look in range(1, r.values.shape[0]):
        after = int(r.values[look, env, byte])
        if after == before:
            if (int(r.bits[look, env]) & VALID) == 0:
                last = -1
            continue
        bits = int(r.bits[look, env])
        if (bits & VALID) == 0:
            last = -1
            before = after
            continue
        step = after - before
        changes = changes + 1
        scene = scene + wp.where((bits & SCENE) != 0, 1, 0)
        drawn = drawn + wp.where((bits & DRAWN) != 0, 1, 0)
        to_start = to_start + wp.where(step < 0 and (after == int(r.start[byte]) or after == 0), 1, 0)
        sets = sets + wp.where((after & before) == before, 1, 0)
        clears = clears + wp.where((after & before) == after, 1, 0)
        if last >= 0:
            gaps = gaps + 1
            gap_sum = gap_sum + (look - last)
            gap_squares = gap_squares + wp.int64((look - last) * (look - last))
        last = look
        wp.atomic_add(steps, byte, step + 256, 1)
        wp.atomic_add(reached, byte, after, 1)
        if step > 0:
            wp.atomic_add(rose_to, byte, after, 1)
        seen[byte, before] = True
        seen[byte, after] = True
        for side in range(2):
            other = r.neighbours[side, byte]
            if other >= 0:
                its = near(int(r.values[look, env, other]) - int(r.values[look - 1, env, other]))
                if step > 0 or its >= 0:  # a fall of both is a game that begins again
                    if step < 0:
                        wp.atomic_add(carries, 4 * side + 1, byte, wp.int64(1))
                        if its > 0 and its < FEW_STEP:
                            wp.atomic_add(carries, 4 * side, byte, wp.int64(1))
                    if wp.abs(step) >= HALF:
                        wp.atomic_add(carries, 4 * side + 3, byte, wp.int64(1))
                        if wp.abs(its) == 1 and its * step < 0:
                            wp.atomic_add(carries, 4 * side + 2, byte, wp.int64(1))
        before = after
    if changes > 0:
        add(counts, 0, byte, scene)
        add(counts, 1, byte, drawn)
        add(counts, 2, byte, gaps)
        add(counts, 3, byte, gap_sum)
        wp.atomic_add(counts, 4, byte, gap_squares)
        add(counts, 5, byte, 1)
        add(counts, 6, byte, to_start)
        add(counts, 7, byte, sets)
        add(counts, 8, byte, clears)


@wp.kernel(enable_backward=False)
def kernel_branches(
    values: wp.array3d(dtype=wp.uint8), forks: wp.array(dtype=wp.int32), counts: wp.array3d(dtype=wp.int64)
):
    """One byte in one branch of a context, in all forks, beside the branch without buttons and on its own way."""
    context, branch, byte = wp.tid()  # pyright: ignore
    blank = context * ALL_BRANCHES
    env = blank + branch
    found = OfBranch()
    for fork in range(forks.shape[0]):
        first = forks[fork]
        before = int(values[first, env, byte])
        apart, middle, held_apart, half, way = int(0), int(0), int(0), int(0), int(0)
        up, down, differs, differed = int(0), int(0), int(0), int(0)
        for look in range(1, LOOKS + 1):
            after = int(values[first + look, env, byte])
            apart = near(after - int(values[first + look, blank, byte]))
            step = near(after - before)
            before = after
            differs = wp.where(apart != 0, 1, differs)
            if look <= HELD:
                differed = differs
                held_apart = apart
                way = way + step
                up = wp.where(step > 0, 1, up)
                down = wp.where(step < 0, 1, down)
            if look == MIDDLE:
                middle = apart
                half = way
        found[0] = found[0] + wp.where(held_apart > 0, 1, 0)
        found[1] = found[1] + wp.where(held_apart < 0, 1, 0)
        found[2] = found[2] + differs
        found[3] = found[3] + wp.where(wp.abs(held_apart) > wp.abs(middle) and held_apart * middle >= 0, 1, 0)
        found[4] = found[4] + wp.where(up != down, 1, 0)
        found[5] = found[5] + wp.where(differed != 0 and apart == 0, 1, 0)
        found[6] = found[6] + wp.where(way > 0, 1, 0)
        found[7] = found[7] + wp.where(way < 0, 1, 0)
        found[8] = found[8] + wp.where(wp.abs(way) > wp.abs(half) and way * half >= 0, 1, 0)
    for row in range(wp.static(len(OF_BRANCH))):
        if found[row] > 0:
            wp.atomic_add(counts, row, branch, byte, wp.int64(found[row]))


@wp.kernel(enable_backward=False)
def kernel_forks(
    values: wp.array3d(dtype=wp.uint8), forks: wp.array(dtype=wp.int32), counts: wp.array2d(dtype=wp.int64)
):
    """One byte of a context, in all branches of its forks together."""
    context, byte = wp.tid()  # pyright: ignore
    blank = context * ALL_BRANCHES
    steps, agree, moved, regardless = int(0), int(0), int(0), int(0)
    for fork in range(forks.shape[0]):
        first = forks[fork]
        same, moves, all_same = int(1), int(0), int(1)
        for look in range(LOOKS + 1):
            nothing = int(values[first + look, blank, byte])
            same = 1
            for branch in range(ALL_BRANCHES):
                value = int(values[first + look, blank + branch, byte])
                if value != nothing:
                    same = 0
                if look > 0 and value != int(values[first + look - 1, blank + branch, byte]):
                    moves = 1
                    if branch == 0:
                        steps = steps + 1
            agree = agree + same
            all_same = all_same * same
        moved = moved + moves
        regardless = regardless + moves * all_same
    add(counts, 0, byte, steps)
    add(counts, 1, byte, agree)
    add(counts, 2, byte, moved)
    add(counts, 3, byte, regardless)


@dataclass(frozen=True)
class Tally:
    """Counts, each with a number for each byte, int64.

    changes: by the names of CHANGES; carries: of two `neighbours`, by those of CARRIES; branches: (branches, bytes) by
    those of OF_BRANCH; forks: by those of OF_FORK. Of all changes, steps: (bytes, 512), that of 0 at 256; reached:
    (bytes, 256), values after them; rose_to: those after rises; seen: bool, values before or after them.
    """

    neighbours: torch.Tensor
    changes: dict[str, torch.Tensor]
    carries: list[dict[str, torch.Tensor]]
    branches: dict[str, torch.Tensor]
    forks: dict[str, torch.Tensor]
    steps: torch.Tensor
    reached: torch.Tensor
    rose_to: torch.Tensor
    seen: torch.Tensor


def tally(
    values: torch.Tensor, bits: torch.Tensor, start: torch.Tensor, neighbours: torch.Tensor, forks: list[int]
) -> Tally:
    """Counts of a recording: `values` (looks, envs, bytes) uint8, and the fields of Looks."""
    device, (_, envs, total) = values.device, values.shape
    launch = Launcher(device)

    def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)

    changes, carries = zeros(len(CHANGES), total), zeros(2 * len(CARRIES), total)
    branches, of_forks = zeros(len(OF_BRANCH), len(BRANCHES), total), zeros(len(OF_FORK), total)
    steps, reached, rose_to = (zeros(total, size, dtype=torch.int32) for size in (512, 256, 256))
    seen = zeros(total, 256, dtype=torch.bool)
    looks = fill(Looks(), values=values, bits=bits, start=start, neighbours=neighbours)
    launch(kernel_changes, (envs, total), looks, changes, carries, steps, reached, rose_to, seen)
    first = torch.tensor(forks, dtype=torch.int32, device=device)
    contexts = envs // len(BRANCHES)
    launch(kernel_branches, (contexts, len(BRANCHES), total), values, first, branches)
    launch(kernel_forks, (contexts, total), values, first, of_forks)
    return Tally(
        neighbours,
        dict(zip(CHANGES, changes, strict=True)),
        [dict(zip(CARRIES, each, strict=True)) for each in carries.view(2, len(CARRIES), total)],
        dict(zip(OF_BRANCH, branches, strict=True)),
        dict(zip(OF_FORK, of_forks, strict=True)),
        steps.long(),
        reached.long(),
        rose_to.long(),
        seen,
    )
