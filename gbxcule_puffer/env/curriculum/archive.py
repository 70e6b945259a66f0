"""Go-Explore's archive: states in which a cell was visited for the first time become starts of later episodes."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher, fill
from gbxcule_puffer.emulator.protocol import PoolLike
from gbxcule_puffer.env.curriculum.milestones import Milestones
from gbxcule_puffer.env.curriculum.progress import UNIT
from gbxcule_puffer.env.curriculum.starts import Starts, pick
from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.randomness import ARCHIVE_COIN, ARCHIVE_SLOT, RANGE, CounterRandom, Seed

CHUNK = wp.constant(64)  # slots per partial sum
WINDOW = wp.constant(16)
"""The number of episodes from which a slot's rate of success is estimated. Beyond it the slot's counts are halved, once
one episode has succeeded. So a slot that never succeeds is tried less and less, and a success counts soon."""


@wp.struct
class Offers:
    """The state of each env after a step, (num_envs,), and what becomes of it."""

    key: wp.array(dtype=wp.int64)  # of its cell
    coarse_key: wp.array(dtype=wp.int64)
    wanted: wp.array(dtype=wp.bool)
    stage: wp.array(dtype=wp.int64)
    distance: wp.array(dtype=wp.float32)
    began: wp.array(dtype=wp.int32)  # the pool's slot that its episode began at
    height: wp.array(dtype=wp.int64)  # milestones that it has reached
    replaced: wp.array(dtype=wp.bool)  # set where that slot gets another state
    admitted: wp.array(dtype=wp.bool)  # set for the envs that get a slot
    slots: wp.array(dtype=wp.int32)  # set to the pool's slot of each env's cell


@wp.struct
class Slots:
    """The slots of an archive, (size,), and where they stand in the pool."""

    winner: wp.array(dtype=wp.int32)  # the env that gets the slot, the number of envs for none
    coarse_keys: wp.array(dtype=wp.int64)
    filled: wp.array(dtype=wp.bool)
    height: wp.array(dtype=wp.int64)  # milestones that the state has reached, -1 for an empty slot
    forgotten: wp.array2d(dtype=wp.int64)  # episodes and successes that no longer count
    first: int  # of them in the pool
    stage: wp.array(dtype=wp.int64)  # of all of the pool's slots, as the next two (curriculum/starts.py)
    distance: wp.array(dtype=wp.float32)
    counts: wp.array2d(dtype=wp.int64)


@wp.func
def slot_of(key: wp.int64, size: int) -> int:
    """The slot of a cell."""
    return int(wp.uint64(key) % wp.uint64(size))


@wp.kernel(enable_backward=False)
def kernel_claim(offers: Offers, slots: Slots):
    """Of the envs that want a slot the one with the lowest number gets it, if it is not behind the slot's state; dim =
    envs."""
    env = wp.tid()
    slot = slot_of(offers.key[env], slots.winner.shape[0])
    if offers.wanted[env] and offers.height[env] >= slots.height[slot]:
        wp.atomic_min(slots.winner, slot, env)


@wp.kernel(enable_backward=False)
def kernel_admit(offers: Offers, slots: Slots):
    """Records the states of the winners in their slots. The previous states are lost, and the episodes that began at
    them do not count."""
    env = wp.tid()
    origin = offers.began[env] - slots.first  # below 0 for another start
    if origin >= 0 and slots.winner[wp.max(origin, 0)] < offers.began.shape[0]:  # a kernel's `and` evaluates both
        offers.replaced[env] = True
    slot = slot_of(offers.key[env], slots.winner.shape[0])
    won = offers.wanted[env] and slots.winner[slot] == env
    offers.admitted[env] = won
    offers.slots[env] = slots.first + slot
    if won:
        slots.coarse_keys[slot] = offers.coarse_key[env]
        slots.filled[slot] = True
        slots.stage[slots.first + slot] = offers.stage[env]
        slots.distance[slots.first + slot] = offers.distance[env]
        for row in range(slots.counts.shape[0]):
            slots.counts[row, slots.first + slot] = wp.int64(0)
        for row in range(slots.forgotten.shape[0]):
            slots.forgotten[row, slot] = wp.int64(0)


@wp.func
def chance(episodes: wp.int64, successes: wp.int64) -> wp.int64:
    """1 / 256 + (4 p (1 - p))**2 in units of 2**-16, where p is the expected success rate (1/2 + successes) / (1 +
    episodes). It is largest if both outcomes are likely, and squared because many slots never succeed or never fail. It
    uses integers, which are equal on every device."""
    size = wp.int64(2) * episodes + wp.int64(2)
    won = (wp.int64(4 << 16) * (wp.int64(2) * successes + wp.int64(1))) // size
    either = (won * (wp.int64(2) * (episodes - successes) + wp.int64(1))) // size
    return wp.int64(256) + ((either * either) >> wp.int64(16))


@wp.kernel(enable_backward=False)
def kernel_weigh(slots: Slots, visits: wp.array(dtype=wp.int64), by_chance: int, weights: wp.array(dtype=wp.int64)):
    """1 / sqrt(visits) in units of 2**-16, optionally times the `chance` of the last episodes; 0 if empty."""
    slot = wp.tid()
    weight = wp.int64(0)
    if slots.filled[slot]:
        weight = wp.int64(wp.float64(65536.0) / wp.sqrt(wp.float64(wp.max(visits[slot], wp.int64(1)))))
        if by_chance != 0:
            episodes = slots.counts[0, slots.first + slot] - slots.forgotten[0, slot]
            successes = slots.counts[1, slots.first + slot] - slots.forgotten[1, slot]
            if episodes > wp.int64(WINDOW) and successes > wp.int64(0):
                slots.forgotten[0, slot] = slots.forgotten[0, slot] + episodes // wp.int64(2)
                slots.forgotten[1, slot] = slots.forgotten[1, slot] + successes // wp.int64(2)
                episodes -= episodes // wp.int64(2)
                successes -= successes // wp.int64(2)
            weight = (weight * chance(episodes, successes)) >> wp.int64(16)
        weight = wp.max(weight, wp.int64(1))
    weights[slot] = weight


@wp.kernel(enable_backward=False)
def kernel_add_chunks(weights: wp.array(dtype=wp.int64), chunks: wp.array(dtype=wp.int64)):
    """The sum of each CHUNK of weights; dim = chunks."""
    chunk = wp.tid()
    total = wp.int64(0)
    for slot in range(chunk * CHUNK, wp.min((chunk + 1) * CHUNK, weights.shape[0])):
        total += weights[slot]
    chunks[chunk] = total


@wp.kernel(enable_backward=False)
def kernel_sum(
    weights: wp.array(dtype=wp.int64), chunks: wp.array(dtype=wp.int64), cumulative: wp.array(dtype=wp.int64)
):
    """Running sum; dim = slots. torch.cumsum would allocate on a GPU."""
    slot = wp.tid()
    total = wp.int64(0)
    for chunk in range(slot // CHUNK):
        total += chunks[chunk]
    for earlier in range(slot // CHUNK * CHUNK, slot + 1):
        total += weights[earlier]
    cumulative[slot] = total


class Archive:
    """The last `size` spare slots of a pool, each for the cells whose key falls on it; a new state replaces the old.

    A `share` of the episodes begins there, more often at rarely visited cells (with the key pixels: at rarely visited
    coarse cells). With `by_chance` also more often at slots whose last episodes sometimes succeeded and sometimes
    failed. If the archive `follows` milestones, a state never replaces one that has reached more of them. A slot's
    chance is then multiplied by a factor for each milestone that the furthest state has beyond it.

    filled (size,) bool: the slots that have a state; admitted (num_envs,) bool, slots (num_envs,) int32: the envs whose
    state the last `offer` took, and where.
    """

    def __init__(
        self,
        pool: PoolLike,
        starts: Starts,
        visits: VisitCounter,
        size: int,
        share: float,
        by_chance: bool,
        random: CounterRandom,
        envs: EnvTensors,
        filled: torch.Tensor,
    ) -> None:
        n, device = len(random.lane), visits.key.device
        self.pool, self.starts, self.visits, self.random, self.envs = pool, starts, visits, random, envs
        self.size, self.threshold, self.by_chance = size, int(share * RANGE), int(by_chance)
        self.coarse_keys, self.occupant_visits, self.weights, self.cumulative = (
            torch.zeros(size, dtype=torch.int64, device=device) for _ in range(4)
        )
        self._chunks = torch.zeros(-(-size // CHUNK), dtype=torch.int64, device=device)
        self.filled, self.first = filled, len(starts.stage) - size
        self.forgotten = torch.zeros((2, size), dtype=torch.int64, device=device)
        self._winner = torch.zeros(size, dtype=torch.int32, device=device)
        self._wanted, self.admitted, self._coin = (torch.zeros(n, dtype=torch.bool, device=device) for _ in range(3))
        self._some = torch.zeros(1, dtype=torch.bool, device=device)
        self.slots, self._sampled = (torch.zeros(n, dtype=torch.int32, device=device) for _ in range(2))
        self._height, self._slot_height = (torch.zeros(size, dtype=torch.int64, device=device) for size in (n, size))
        self._milestones: Milestones | None = None
        self._launch = Launcher(device)
        self._offer = fill(
            Offers(), key=visits.key, coarse_key=visits.coarse.key, wanted=self._wanted, stage=envs.stage,
            distance=envs.previous, began=envs.slots, height=self._height, replaced=envs.replaced,
            admitted=self.admitted, slots=self.slots,
        )  # fmt: skip
        self._all = fill(
            Slots(), winner=self._winner, coarse_keys=self.coarse_keys, filled=self.filled, height=self._slot_height,
            forgotten=self.forgotten, first=self.first, stage=starts.stage, distance=starts.distance,
            counts=starts.counts,
        )  # fmt: skip

    def follow(self, milestones: Milestones, behind: float) -> None:
        """From now on the states' milestones count; behind: the factor of a state's chance."""
        factors = [round(UNIT * behind**number) for number in range(len(milestones.names) + 1)]
        self._factors = torch.tensor(factors, dtype=torch.int64, device=self.filled.device)
        self._milestones = milestones

    def offer(self) -> None:
        """Saves the envs that visit a cell for the first time and continue, with their stage and their distance to its
        goal."""
        n = len(self._wanted)
        torch.gt(self.visits.first, self.envs.ended, out=self._wanted)
        if self._milestones is not None:
            torch.sum(self._milestones.held, 0, out=self._height)
            self._slot_height.copy_(self._milestones.heights_of(self.filled, self.first))
        self._winner.fill_(n)
        self._launch(kernel_claim, n, self._offer, self._all)
        self._launch(kernel_admit, n, self._offer, self._all)
        self.pool.save(self.admitted, self.slots)

    def sample(self, seed: Seed, episode: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Replaces a share of the `slots` sampled for the next episodes by slots of the archive, if it has any."""
        torch.lt(self.random.sample(seed, ARCHIVE_COIN, episode), self.threshold, out=self._coin)
        self.visits.coarse.look_up(self.coarse_keys, self.occupant_visits)
        self._launch(kernel_weigh, self.size, self._all, self.occupant_visits, self.by_chance, self.weights)
        if self._milestones is not None:
            heights = self._milestones.heights_of(self.filled, self.first)
            factors = self._factors[(heights.amax() - heights).clamp_(max=len(self._factors) - 1)]
            nearer = (self.weights * factors).bitwise_right_shift_(16).clamp_(min=1)
            self.weights.copy_(nearer).mul_(self.filled)
        self._launch(kernel_add_chunks, len(self._chunks), self.weights, self._chunks)
        self._launch(kernel_sum, self.size, self.weights, self._chunks, self.cumulative)
        torch.gt(self.cumulative[-1:], 0, out=self._some)
        self._coin.logical_and_(self._some)
        sampled = pick(self.random.sample(seed, ARCHIVE_SLOT, episode), self.cumulative, self._sampled)
        sampled.clamp_(max=self.size - 1).add_(self.first)  # an empty archive samples past the end, unused
        return torch.where(self._coin, sampled, slots, out=slots)

    def read(self) -> dict[str, float]:
        """Filled slots, and the share of the envs whose episode began in one."""
        begun = self.envs.from_start.logical_not()
        filled, count = torch.stack([self.filled.sum(), begun.sum()]).tolist()
        return {"archive/filled": float(filled), "archive/share": count / len(begun)}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        return {"archive_coarse_keys": self.coarse_keys, "archive_forgotten": self.forgotten}
