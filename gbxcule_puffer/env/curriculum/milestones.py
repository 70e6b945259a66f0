"""Milestones: states kept when an event of the game first happens, from which later episodes begin; the swarm, and
episodes that end where no event comes in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.protocol import PoolLike
from gbxcule_puffer.emulator.snapshot import Snapshot, profile_of
from gbxcule_puffer.env.curriculum.progress import BayesProgressTracker
from gbxcule_puffer.env.curriculum.starts import Starts, pick
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.randomness import MILESTONE_COIN, MILESTONE_SLOT, RANGE, SWARM, CounterRandom, Seed
from gbxcule_puffer.errors import ConfigError

Holds = Callable[[], torch.Tensor]


class Milestones:
    """Follows which milestones the envs have reached, of the `names` that a Task gives in the order of the game.

    An env that reaches one leaves its state in a slot of this milestone: the newest `each` states are kept, from slot
    `first` of the pool on. A share of the episodes begins there, more often at milestones behind which no further one
    is reached. With the swarm, an env that has reached fewer milestones than the best kept state goes on from it.

    held (milestones, num_envs) bool: those that each env has reached, in this episode or before the state from which it
    began; quiet (num_envs,) int32: steps since the last new one; filled (milestones * each,) bool: slots with a state;
    `seed` is that of the env's last reset. Uses integers only, which are equal on every device.
    """

    def __init__(
        self,
        names: Sequence[str],
        holds: Holds,
        pool: PoolLike,
        starts: Starts,
        filled: torch.Tensor,
        envs: EnvTensors,
        random: CounterRandom,
        options: EnvOptions,
        cartridge: Cartridge,
    ) -> None:
        n, device = len(random.lane), random.lane.device
        self.names, self._holds, self.pool, self.starts = tuple(names), holds, pool, starts
        self.envs, self.random, self.filled, self.cartridge = envs, random, filled, cartridge
        self.each, self.first = options.milestone_slots, starts.given
        self.seed: Seed = 0
        self.steps, self.swarm = options.milestone_steps, options.swarm_steps
        self.share, self.swarm_share = int(options.milestone_share * RANGE), int(options.swarm_share * RANGE)
        size, slots = len(self.names), len(starts.stage)
        self.held = torch.zeros((size, n), dtype=torch.bool, device=device)
        self.quiet = torch.zeros(n, dtype=torch.int32, device=device)
        self.progressed, self._moved = (torch.zeros(n, dtype=torch.bool, device=device) for _ in range(2))
        self.slot_held = torch.zeros((size, slots + 1), dtype=torch.bool, device=device)  # the last one is for nobody
        self.saves = torch.zeros(size, dtype=torch.int64, device=device)
        self.reached = torch.zeros(size, dtype=torch.bool, device=device)
        self.tracker = BayesProgressTracker(self.names, n, device)
        self._rank = torch.arange(1, size + 1, device=device)[:, None]
        self._index = torch.arange(n, device=device)
        self._last = torch.zeros(n, dtype=torch.int64, device=device)

    def ends(self) -> torch.Tensor:
        """Takes note of a step; mask of the envs whose episode is cut off, because no milestone came in time, or
        because the swarm moves them, (num_envs,) bool."""
        holds = self._holds()
        new = holds & ~self.held
        self.held.logical_or_(holds)
        self.reached.logical_or_(holds.any(1))
        self._last.copy_((new * self._rank).amax(0))  # the last of the new ones, counted from 1
        event = self._last > 0
        self.progressed.logical_or_(event)
        self.quiet.add_(1).masked_fill_(event, 0)
        cut = self.quiet >= self.steps if self.steps is not None else torch.zeros_like(event)
        if self.swarm is not None and self.each:
            coin = self.random.sample(self.seed, SWARM, self.envs.clock) < self.swarm_share
            behind = self.held.sum(0) < self._heights().amax()
            self._moved.copy_(behind & coin & (self.envs.clock % self.swarm == 0))
            cut = cut | self._moved
        return cut

    def count(self) -> None:
        """Keeps the states of the envs that reached a milestone and go on; of several in one step, that of the lowest
        number. Counts the episodes that have ended."""
        if not self.each:
            return
        t, size = self.envs, len(self.names)
        self._moved.logical_and_(t.truncations)
        began = torch.div(t.slots - self.first, self.each, rounding_mode="floor").long()
        counted = (began >= 0) & (began < size) & ~self._moved
        won = self.progressed | (t.terminals & ~t.failures)
        self.tracker.count(began.clamp(0, size - 1), won & t.ended, ~won & t.ended, counted)
        wanted, which = (self._last > 0) & ~t.ended, (self._last - 1).clamp(min=0)
        offered = torch.where(wanted, self._index, len(self._index))
        winner = self._index.new_full((size,), len(self._index)).scatter_reduce_(0, which, offered, "amin")
        kept = wanted & (winner[which] == self._index)
        slots = (self.first + which * self.each + self.saves[which] % self.each).to(torch.int32)
        self.saves.index_add_(0, which, kept.long())
        self.pool.save(kept, slots)
        target = self.record(kept, slots)
        given = torch.zeros(self.slot_held.shape[1], dtype=torch.bool, device=kept.device)
        given.index_fill_(0, target, True)
        given[-1:].fill_(False)
        t.replaced.logical_or_(given[t.slots.long()])
        self.filled.logical_or_(given[self.first : self.first + len(self.filled)])
        self._write(self.starts.stage, target, t.stage)
        self._write(self.starts.distance, target, t.previous)
        self.starts.counts.masked_fill_(given[:-1], 0)

    def record(self, kept: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Notes the milestones of the envs of `kept`, whose states are in the pool's `slots`. Returns these slots, and
        for the other envs one past the last slot, (num_envs,) int64."""
        target = torch.where(kept, slots.long(), self.slot_held.shape[1] - 1)
        self.slot_held.index_copy_(1, target, self.held)
        return target

    def _write(self, values: torch.Tensor, target: torch.Tensor, new: torch.Tensor) -> None:
        """values[target] = new, except targets past the end."""
        whole = torch.cat([values, values[:1]])
        whole.index_copy_(0, target, new)
        values.copy_(whole[:-1])

    def _heights(self) -> torch.Tensor:
        """How many milestones each slot's state has reached, -1 for an empty one."""
        return self.heights_of(self.filled, self.first)

    def heights_of(self, filled: torch.Tensor, first: int) -> torch.Tensor:
        """Numbers of milestones that the states of the pool's slots from `first` on have reached; -1 where they are not
        `filled`, (slots,) bool."""
        return torch.where(filled, self.slot_held[:, first : first + len(filled)].sum(0), -1)

    def sample(self, seed: Seed, episode: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Replaces a share of the `slots` sampled for the next episodes by slots of milestones, and those of the envs
        that the swarm moves by slots of the best states."""
        if not self.each:
            return slots
        filled = self.filled.view(-1, self.each)
        weights = self.tracker.weights[:, None] // filled.sum(1, keepdim=True).clamp(min=1) * filled
        chosen = self.random.sample(seed, MILESTONE_COIN, episode) < self.share
        self._take(seed, episode, weights.flatten(), chosen, slots)
        if self.swarm is not None:
            heights = self._heights()
            best = (heights == heights.amax()) & self.filled
            self._take(seed, episode, best.long(), self._moved, slots)
        return slots

    def _take(
        self, seed: Seed, episode: torch.Tensor, weights: torch.Tensor, which: torch.Tensor, slots: torch.Tensor
    ) -> None:
        """Samples a slot by `weights` for the envs of `which`, if any has a weight."""
        total = weights.cumsum(0)
        sampled = torch.zeros_like(slots)
        pick(self.random.sample(seed, MILESTONE_SLOT, episode), total, sampled)
        sampled.clamp_(max=len(weights) - 1).add_(self.first)
        torch.where(which & (total[-1] > 0), sampled, slots, out=slots)

    def begin(self, which: torch.Tensor) -> None:
        """Begins the episodes of `which`, with what their states have reached."""
        before = self.slot_held[:, self.envs.slots.long()] | self._holds()
        torch.where(which, before, self.held, out=self.held)
        self.quiet.masked_fill_(which, 0)
        self.progressed.masked_fill_(which, False)
        self._moved.masked_fill_(which, False)

    def kept(self, number: int) -> torch.Tensor:
        """The number of states of a milestone, () int64."""
        return self.filled[number * self.each : (number + 1) * self.each].sum()

    def newest(self, name: str) -> Snapshot:
        """The newest state of a milestone.

        Raises: ConfigError for an unknown milestone, or one without a state.
        """
        if name not in self.names or not self.each or not self.kept(self.names.index(name)):
            raise ConfigError(f"milestone {name!r:.60} has no state: give one whose row in table() has kept above 0")
        number = self.names.index(name)
        slot = (int(self.saves[number]) - 1) % self.each
        pool = {key: part.cpu().numpy() for key, part in self.parts(number).items()}
        one = slice(slot, slot + 1)
        arrays = (pool["state"][:, one], pool["memory"][one], pool["screen"][one])
        return Snapshot(self.cartridge.sha256, *arrays, profile=profile_of(self.cartridge))

    def parts(self, number: int) -> dict[str, torch.Tensor]:
        """The states of a milestone and what belongs to them, as views: for `adopt`."""
        spare = slice(number * self.each, (number + 1) * self.each)
        slots = slice(self.first + spare.start, self.first + spare.stop)
        pool = self.pool.spare_tensors()
        return {
            "filled": self.filled[spare], "saves": self.saves[number : number + 1], "held": self.slot_held[:, slots],
            "stage": self.starts.stage[slots], "distance": self.starts.distance[slots],
            "state": pool["pool_state"][:, spare], "memory": pool["pool_memory"][spare],
            "screen": pool["pool_screen"][spare],
        }  # fmt: skip

    def adopt(self, number: int, parts: Mapping[str, torch.Tensor]) -> None:
        """Takes the states of a milestone from another env of the same game, in place of its own."""
        for name, part in self.parts(number).items():
            part.copy_(parts[name])
        self.reached[number] = True

    def read(self) -> dict[str, float]:
        """The number of milestones that any env has reached, and of those with a state; the most that a state or an env
        has reached; the share of the envs whose episode began at one."""
        began = self.envs.slots - self.first
        inside = ((began >= 0) & (began < len(self.filled))).sum()
        kept = self.filled.view(len(self.names), -1).any(1).sum() if self.each else self.saves.sum()
        most = torch.maximum(self._heights().amax(), self.held.sum(0).amax()) if self.each else self.held.sum(0).amax()
        reached, kept, most, count = torch.stack([self.reached.sum(), kept, most, inside]).tolist()
        info = {"milestones/reached": float(reached), "milestones/most": float(most)}
        return info | ({"milestones/kept": float(kept), "milestones/share": count / len(began)} if self.each else {})

    def table(self) -> list[dict[str, float | str]]:
        """For each milestone: its name; the states that were offered, and those that are kept; of the recent episodes
        that began at one, how many reached a further milestone, and how many did not."""
        kept = self.filled.view(len(self.names), -1).sum(1) if self.each else torch.zeros_like(self.saves)
        rows = zip(
            self.names,
            self.reached.tolist(),
            self.saves.tolist(),
            kept.tolist(),
            *self.tracker.counts.tolist(),
            strict=True,
        )
        names = ("name", "reached", "saves", "kept", "won", "lost")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def env_tensors(self) -> dict[str, torch.Tensor]:
        """The tensors of each env that a saved state holds."""
        own = {"held": self.held, "quiet": self.quiet, "progressed": self.progressed}
        return {f"milestone_{name}": tensor for name, tensor in own.items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that all envs share."""
        own = {"slot_held": self.slot_held, "saves": self.saves, "reached": self.reached, **self.tracker.tensors()}
        return {f"milestone_{name}": tensor for name, tensor in own.items()}
