"""The env that each lane of a GPU runs: envs whose next steps are expected to be alike share a warp.

The lanes of a warp execute together the instructions that they have in common, and the others one after the other. So a
warp with two envs that differ may take twice as long as with one. Three policies (LaunchShape.twins) assign envs to
lanes:

MIXED     sorted by expected number of instructions; twins are anywhere among the others
TOGETHER  the same, with twins side by side
PACKED    twins fill their own warps. Remainders of these, and envs without twins, share warps with envs of similar
          length; the longer they take, the fewer share a warp. All warps are to end at the same time: the earliest
          time for which there are enough warps.

docs/schedule.md explains them. The fastest depends on the game (autotuner.py).
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false, reportAssignmentType=false

from typing import Any, NamedTuple

import torch
import warp as wp

from gbxcule_puffer.emulator.gpu.schedule import forecast
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PACKED, TOGETHER, WARP_SIZE, LaunchShape
from gbxcule_puffer.emulator.gpu.schedule.twins import (
    BINS,
    KINDS,
    SEPARATE,
    TWINS,
    Steps,
    Twins,
    kernel_count,
    kernel_forget,
    kernel_learn,
)
from gbxcule_puffer.emulator.hw import intrinsics

LIMITS = wp.constant(96)  # time limits of a warp; the smallest for which there are enough warps is chosen
SHARE = wp.constant(12)  # limits that one thread examines
STEPS = wp.constant(6.0)  # limits in an octave
FIRST_LIMIT = wp.constant(128.0)
UNIT = wp.constant(1024)  # units of demand that make a warp
LANES = wp.constant(WARP_SIZE)
COUNTS = wp.constant((WARP_SIZE + 1) * BINS)  # rows of BINS: row 0 for sorting, row n for remainders with n per warp
MOST_MIXED = wp.constant(24)  # lanes of a warp whose envs are not all twins


@wp.func
def limit(number: int) -> float:
    """A time limit of a warp, in clocks; the last one means no limit."""
    return wp.where(number == LIMITS - 1, 1.0e12, FIRST_LIMIT * wp.pow(2.0, float(number) / STEPS))


@wp.func
def part_size(twins: Twins, index: int, most: float) -> int:
    """The number of twins in a warp that ends within `most` clocks."""
    spare = most / twins.time[index] - 1.0
    return wp.where(spare < 0.0, 1, 1 + int(wp.min(spare / twins.risk[index], float(LANES - 1))))


@wp.func
def rests(twins: Twins, index: int, number: int, lanes: int) -> int:
    """The number of remainders like this one, with `lanes` lanes each, in a warp that ends within a limit."""
    spare = limit(number) / (twins.time[index] * (1.0 + twins.risk[index] * float(lanes - 1))) - 1.0
    sharing = 1 + int(wp.clamp(spare / SEPARATE, 0.0, float(LANES)))
    return wp.clamp(sharing, 1, wp.max(wp.where(number == LIMITS - 1, LANES, MOST_MIXED) // lanes, 1))


@wp.func
def begin_of(bins: wp.array(dtype=wp.int32), index: int) -> int:
    """The index in its row at which a bin begins."""
    return bins[COUNTS + index] - bins[index]


@wp.kernel(enable_backward=False)
def kernel_demand(twins: Twins, listed: wp.array(dtype=wp.int32), demand: wp.array(dtype=wp.int32)):
    """The warps that each time limit needs, in UNITs; dim = (LIMITS / SHARE, num_envs rounded up to whole warps)."""
    share, entry = wp.tid()
    if entry - entry % LANES >= listed[0]:  # all lanes of a warp return, or none
        return
    index = int(0)
    count = int(0)
    if entry < listed[0]:
        index = listed[1 + entry]
        count = twins.count[index]
    for number in range(share * SHARE, (share + 1) * SHARE):
        needed = int(0)
        if count > 0:
            size = part_size(twins, index, limit(number))
            needed = count // size * UNIT
            if count % size != 0:
                needed = needed + UNIT // rests(twins, index, number, count % size) + 1
        needed = intrinsics.sum_of_lanes(needed)  # atomics of all lanes on one address would wait for each other
        if needed != 0 and (entry % LANES == 0 or intrinsics.is_gpu() == 0):
            wp.atomic_add(demand, number, needed)


@wp.kernel(enable_backward=False)
def kernel_split(
    twins: Twins,
    listed: wp.array(dtype=wp.int32),
    demand: wp.array(dtype=wp.int32),
    groups: wp.array(dtype=wp.int32),
    bins: wp.array(dtype=wp.int32),
    warps: int,
):
    """Split each set of twins into full warps and a remainder, by the smallest limit that needs at most `warps` warps.

    groups: entry 0 counts the full warps, entry n the remainders that share a warp with n - 1 others. Row n of bins
    counts these by length. dim = num_envs.
    """
    if wp.tid() < listed[0]:
        index = listed[1 + wp.tid()]
        count = twins.count[index]
        number = int(0)
        while number < LIMITS - 1 and demand[number] > warps * UNIT:
            number = number + 1
        size = part_size(twins, index, limit(number))
        twins.size[index] = size
        twins.first[index] = wp.atomic_add(groups, 0, count // size)
        if count % size != 0:
            sharing = rests(twins, index, number, count % size)
            twins.sharing[index] = sharing
            wp.atomic_add(groups, sharing, 1)
            twins.rest[index] = wp.atomic_add(bins, sharing * BINS + twins.bin[index], 1)


@wp.kernel(enable_backward=False)
def kernel_pack(
    steps: Steps,
    twins: Twins,
    groups: wp.array(dtype=wp.int32),
    bins: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    warps: int,
):
    """Assign envs to lanes. Falls back to the order of the envs if rounding in the earlier kernels asked for more warps
    than are launched. dim = num_envs."""
    env = wp.tid()
    needed = groups[0]
    for number in range(1, LANES + 1):
        needed = needed + (groups[number] + number - 1) // number
    if needed > warps:
        order[env] = env
        return
    index = steps.set[env]
    size = twins.size[index]
    part = steps.number[env] // size
    lane = steps.number[env] % size
    warp = twins.first[index] + part
    if part == twins.count[index] // size:
        sharing = twins.sharing[index]
        rest = begin_of(bins, sharing * BINS + twins.bin[index]) + twins.rest[index]
        warp = groups[0] + rest // sharing
        for fewer in range(1, sharing):
            warp = warp + (groups[fewer] + fewer - 1) // fewer
        lane = lane + rest % sharing * (LANES // sharing)
    order[warp * LANES + lane] = env


@wp.kernel(enable_backward=False)
def kernel_bins(twins: Twins, bins: wp.array(dtype=wp.int32)):
    """Count the envs in each bin, with twins side by side. Twins.first: how many envs of its bin precede a set. dim =
    TWINS."""
    index = wp.tid()
    if twins.count[index] > 0:
        twins.first[index] = wp.atomic_add(bins, twins.bin[index], twins.count[index])


@wp.kernel(enable_backward=False)
def kernel_mixed_bins(steps: Steps, twins: Twins, bins: wp.array(dtype=wp.int32)):
    """Count the envs in each bin, and number them in order of arrival; dim = num_envs."""
    env = wp.tid()
    index = steps.set[env]
    twins.first[index] = 0
    steps.number[env] = wp.atomic_add(bins, twins.bin[index], 1)


@wp.kernel(enable_backward=False)
def kernel_sort(
    steps: Steps,
    twins: Twins,
    bins: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    lanes: int,
    head_warps: int,
    head_lanes: int,
):
    """Assign envs to lanes: `head_lanes` in each of the first `head_warps` warps, `lanes` in each of the others; dim =
    num_envs."""
    env = wp.tid()
    index = steps.set[env]
    rank = begin_of(bins, twins.bin[index]) + twins.first[index] + steps.number[env]
    slot = rank // wp.max(head_lanes, 1) * LANES + rank % wp.max(head_lanes, 1)
    if rank >= head_warps * head_lanes:
        rank = rank - head_warps * head_lanes
        slot = (head_warps + rank // lanes) * LANES + rank % lanes
    order[slot] = env


@wp.kernel(enable_backward=False)
def kernel_in_turn(order: wp.array(dtype=wp.int32), lanes: int, num_envs: int):
    """Assign envs to lanes in the order of the envs, `lanes` per warp; dim = lanes of all warps."""
    slot = wp.tid()
    env = slot // LANES * lanes + slot % LANES
    order[slot] = wp.where(slot % LANES < lanes and env < num_envs, env, -1)


def most_warps(num_envs: int, lanes: int) -> int:
    """The most warps of a PACKED launch: those for `lanes` envs per warp, or for 17 if all sets of twins are half a
    warp and one; and one warp that is not full for each number of remainders that share one."""
    return min(num_envs, max(-(-num_envs // lanes), -(-num_envs // (WARP_SIZE // 2 + 1))) + WARP_SIZE + 1)


class Sizes(NamedTuple):
    """Sizes of an update's launches."""

    envs: int
    warps: int  # of the step
    lanes: int  # of these warps
    head: int  # warps with `head_lanes` envs
    wanted: int  # warps if each had `lanes` envs of the shape
    learners: int  # threads of kernel_learn
    counters: int  # threads of kernel_count
    whole: int  # envs, rounded up to whole warps

    @classmethod
    def of(cls, envs: int, shape: LaunchShape) -> "Sizes":
        """The sizes for a number of envs."""
        head, warps = shape.warps(envs)
        if shape.twins == PACKED:
            warps = most_warps(envs, shape.lanes)
        lanes, whole = warps * WARP_SIZE, -(-envs // WARP_SIZE) * WARP_SIZE
        return cls(envs, warps, lanes, head, -(-envs // shape.lanes), max(envs, TWINS), max(envs, lanes), whole)


class LaneOrder:
    """The assignment of an emulator's envs to lanes, chosen before each step.

    order: (32 * num_envs,) int32, the env of each lane of all warps, -1 for none; initially lane i has env i.
    took, path: (num_envs,) int32, the last step's clocks and path, as in Machine.
    """

    def __init__(self, state: torch.Tensor, skipped: torch.Tensor) -> None:
        """state, skipped: as in Machine; each update reads them."""
        n, device = len(skipped), skipped.device

        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        self.order = zeros(WARP_SIZE * n)
        self.order[:n] = torch.arange(n)
        self.took, self.path, self._beginning, self._set, self._number = (zeros(n) for _ in range(5))
        self._kind = torch.full((n,), -1, dtype=torch.int32, device=device)
        self._listed = zeros(1 + n)
        self._forecast, self._forecast_entries = forecast.make(device)
        self._means = torch.zeros((5, KINDS), dtype=torch.float32, device=device)
        self._entries = zeros(9, TWINS)
        self._bins = zeros(2 * COUNTS)  # the count of each bin; and its running sum in the row
        self._demand = zeros(LIMITS + WARP_SIZE + 1)  # of each limit; then the groups
        tensors = (self.order, self._listed, self._means, self._bins, self._demand, self._demand[LIMITS:])
        self._arrays = tuple(map(wp.from_torch, tensors))
        steps = self._steps = Steps()
        steps.state, steps.skipped = wp.from_torch(state), wp.from_torch(skipped)
        steps.took, steps.path = wp.from_torch(self.took), wp.from_torch(self.path)
        steps.kind, steps.beginning = wp.from_torch(self._kind), wp.from_torch(self._beginning)
        steps.set, steps.number = wp.from_torch(self._set), wp.from_torch(self._number)
        count, leader, time, risk, size, first, sharing, rest, bin_of = self._entries
        twins = self._twins = Twins()
        twins.count, twins.leader = wp.from_torch(count), wp.from_torch(leader)
        twins.time, twins.risk = wp.from_torch(time.view(torch.float32)), wp.from_torch(risk.view(torch.float32))
        twins.size, twins.first = wp.from_torch(size), wp.from_torch(first)
        twins.sharing, twins.rest, twins.bin = wp.from_torch(sharing), wp.from_torch(rest), wp.from_torch(bin_of)

    def update(self, buttons: torch.Tensor, shape: LaunchShape, stream: wp.Stream | None) -> int:
        """Learn from the last step, and assign the lanes of the next one. No host synchronisation and no allocation.

        Args: buttons: of the next step, (num_envs,) uint8; stream: to launch on, None on a CPU.
        Returns the number of warps to launch; some of them may have no env.
        """
        where: dict[str, Any] = {"device": str(self.order.device)} if stream is None else {"stream": stream}
        counts, sums = self._bins.view(2, -1, BINS)
        sizes = Sizes.of(len(self.took), shape)
        for kernel, dim, inputs in self.launches(wp.from_torch(buttons), shape, sizes):
            if kernel is None:  # with one row, torch would allocate memory
                torch.cumsum(counts[:dim], 1, dtype=torch.int32, out=sums[:dim])
            else:
                wp.launch(kernel, dim, inputs, **where)
        return sizes.warps

    def launches(self, buttons: wp.array, shape: LaunchShape, sizes: "Sizes") -> list[tuple[Any, Any, list[Any]]]:
        """The launches of an update in order: kernel, dim and inputs. None in place of a kernel stands for the running
        sums of the first `dim` rows of bins; its inputs are the bins."""
        steps, twins, n, warps = self._steps, self._twins, sizes.envs, sizes.warps
        order, listed, means, bins, demand, groups = self._arrays
        if not shape.grouped:
            return [(kernel_in_turn, sizes.lanes, [order, shape.lanes, n])]
        found: list[tuple[Any, Any, list[Any]]] = [
            (kernel_learn, sizes.learners, [steps, twins, means, self._forecast, demand, bins, listed]),
            (kernel_forget, KINDS, [means]),
            (
                kernel_count,
                sizes.counters,
                [steps, buttons, twins, means, self._forecast, order, listed, sizes.lanes],
            ),
        ]
        if shape.twins == PACKED:
            return [
                *found,
                (kernel_demand, (LIMITS // SHARE, sizes.whole), [twins, listed, demand]),
                (kernel_split, n, [twins, listed, demand, groups, bins, sizes.wanted]),
                (None, WARP_SIZE + 1, [bins]),
                (kernel_pack, n, [steps, twins, groups, bins, order, warps]),
            ]
        if shape.twins == TOGETHER:
            found.append((kernel_bins, TWINS, [twins, bins]))
        else:
            found.append((kernel_mixed_bins, n, [steps, twins, bins]))
        sort = [steps, twins, bins, order, shape.lanes, sizes.head, shape.head_lanes]
        return [*found, (None, 2, [bins]), (kernel_sort, n, sort)]


def memory_needed(num_envs: int) -> int:
    """Bytes that a LaneOrder allocates."""
    tables = 5 * KINDS + 9 * TWINS + 2 * COUNTS + 3 * forecast.BEGINNINGS
    return 4 * ((7 + WARP_SIZE) * num_envs + tables + LIMITS + WARP_SIZE + 2)
