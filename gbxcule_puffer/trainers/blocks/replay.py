"""The replay of an off-policy learner: a ring of steps on the device, sampled uniformly or by priority.

One row is one step of every env. Of an observation only the newest picture is stored, shades with four pixels per byte,
and stacks are rebuilt when sampled: with stack_k 4, a step takes 1/16 of the memory of its observation. The picture
after an action is in the next row, so nothing is stored twice. The host knows the number of rows, so sampling never
waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import PICTURE
from gbxcule_puffer.tasks.observe.pixels import signed, unpack

PRIORITY_FLOOR = 1e-3  # so that every transition can be sampled
STORED = ("pictures", "vectors", "actions", "rewards", "terminals", "truncations", "ages", "priorities")


class Sample(NamedTuple):
    """Sampled steps, and the n_step steps from each on."""

    obs: torch.Tensor
    """(batch, *layout.shape) of layout.kept_dtype"""
    actions: torch.Tensor
    """(batch,) int64"""
    rewards: torch.Tensor
    """(n_step, batch) float32"""
    terminals: torch.Tensor
    """(n_step, batch) bool"""
    truncations: torch.Tensor
    """(n_step, batch) bool"""
    weights: torch.Tensor
    """(batch,) float32: importance, of a sample by priority"""
    index: torch.Tensor
    """(batch,) int64, for `observations_after` and `update_priorities`"""


class Sequences(NamedTuple):
    """A batch of sequences of consecutive steps, each field (length, batch, ...)."""

    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    terminals: torch.Tensor
    truncations: torch.Tensor


def pack(pictures: torch.Tensor) -> torch.Tensor:
    """Shades 0..3 (..., columns) uint8 -> four pixels a byte (..., columns / 4), as `unpack` takes them."""
    first, second, third, fourth = pictures.unflatten(-1, (-1, 4)).unbind(-1)
    return (first << 6) | (second << 4) | (third << 2) | fourth


def _is_packed_here(layout: ObservationLayout) -> bool:
    """True for shades with one byte per pixel: averages have too many values, and some observations are already
    packed."""
    return layout.kind.most == 3 and layout.kind.pixels == 1


def _kept_picture(layout: ObservationLayout) -> tuple[int, int]:
    """Rows (of all planes) and values per row of a stored picture."""
    kind = layout.kind
    return kind.planes * kind.rows, kind.row_values // (4 if _is_packed_here(layout) else 1)


def _kept_dtype(layout: ObservationLayout) -> torch.dtype:
    """The type of stored pictures: uint16 as int16, for which torch has all operations."""
    return torch.uint8 if layout.kind.dtype == np.uint8 else torch.int16


def _vector_bytes(layout: ObservationLayout) -> int:
    """Bytes of an observation's vectors."""
    return layout.dtype.itemsize - layout.picture_bytes if layout.vectors else 0


class Replay:
    """The last `capacity` steps of `num_envs` envs, from which sequences of `n_step` steps are sampled."""

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        layout: ObservationLayout,
        device: torch.device,
        *,
        n_step: int,
        alpha: float = 0.0,
        num_actions: int = 256,
    ) -> None:
        """capacity: rows, each one step of every env; layout: of the observations; alpha: exponent of the priorities (0
        samples uniformly and stores none); num_actions: the limit of the actions in a saved replay.

        Raises: ConfigError.
        """
        self.layout, self.stack_k = layout, layout.stack_k
        if n_step < 1:
            raise ConfigError(f"n_step {n_step} must be at least 1")
        if capacity < n_step + 2 * self.stack_k:
            raise ConfigError(
                f"a replay of {capacity} steps is too short for n_step {n_step}: give it more transitions"
            )
        if _is_packed_here(layout) and layout.kind.row_values % 4:
            raise ConfigError(f"pictures of {layout.kind.row_values} columns cannot be packed: give a multiple of 4")
        self.capacity, self.num_envs, self.n_step, self.alpha = capacity, num_envs, n_step, alpha
        self.device, self.num_actions = device, num_actions
        self.count = 0  # rows ever added; row i is at i % capacity

        def ring(*shape: int, dtype: torch.dtype) -> torch.Tensor:
            return torch.zeros((capacity, num_envs, *shape), dtype=dtype, device=device)

        self.pictures = ring(*_kept_picture(layout), dtype=_kept_dtype(layout))
        self.vectors = ring(_vector_bytes(layout), dtype=torch.uint8)
        self.actions, self.rewards = ring(dtype=torch.uint8), ring(dtype=torch.float32)
        self.terminals, self.truncations = ring(dtype=torch.bool), ring(dtype=torch.bool)
        self.ages = ring(dtype=torch.uint8)  # steps since the episode's start, at most stack_k - 1: the stack's reach
        self.age = torch.zeros(num_envs, dtype=torch.uint8, device=device)
        self.priorities = ring(dtype=torch.float32) if alpha else torch.zeros((0, 0), device=device)
        self.max_priority = torch.ones((), device=device)

    @staticmethod
    def bytes_needed(capacity: int, num_envs: int, layout: ObservationLayout, alpha: float) -> int:
        """Bytes of the ring."""
        picture = math.prod(_kept_picture(layout)) * _kept_dtype(layout).itemsize
        return capacity * num_envs * (picture + _vector_bytes(layout) + 8 + (4 if alpha else 0))

    @property
    def rows(self) -> int:
        """Rows in the ring."""
        return min(self.count, self.capacity)

    def has(self, length: int) -> bool:
        """True if `length` steps in a row can be sampled; `sample` takes n_step + 1."""
        return self._bounds(length)[1] > 0

    def add(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        terminals: torch.Tensor,
        truncations: torch.Tensor,
        serial: bool = False,
    ) -> None:
        """Writes one step of all envs: the observation, the action that was chosen, and its results.

        `serial` writes them one env after the other, for debugging.
        """
        row, n = self.count % self.capacity, self.num_envs
        for envs in [slice(env, env + 1) for env in range(n)] if serial else [slice(0, n)]:
            self._write(row, envs, obs[envs], actions[envs], rewards[envs], terminals[envs], truncations[envs])
        self.count += 1
        if self.alpha:
            self._open_priorities(row)

    def sample(self, batch: int, beta: float = 1.0) -> Sample:
        """`batch` steps, with replacement; beta: exponent of the importance weights of a prioritised sample."""
        if self.alpha:
            index, weights = self._sample_by_priority(batch, beta)
        else:
            start, choices = self._bounds(self.n_step + 1)
            moment = torch.randint(choices, (batch,), device=self.device).add_(start).remainder_(self.capacity)
            index = moment * self.num_envs + torch.randint(self.num_envs, (batch,), device=self.device)
            weights = torch.ones(batch, device=self.device)
        row, env = index // self.num_envs, index % self.num_envs
        window = self._window(row, self.n_step)
        return Sample(
            obs=self.observations(row, env),
            actions=self.actions[row, env].long(),
            rewards=self.rewards[window, env],
            terminals=self.terminals[window, env],
            truncations=self.truncations[window, env],
            weights=weights,
            index=index,
        )

    def sample_sequences(self, batch: int, length: int) -> Sequences:
        """`batch` sequences of `length` steps, uniformly and with replacement."""
        start, choices = self._bounds(length)
        row = torch.randint(choices, (batch,), device=self.device).add_(start).remainder_(self.capacity)
        env = torch.randint(self.num_envs, (batch,), device=self.device)
        window = self._window(row, length)
        return Sequences(
            self.observations(window, env.expand_as(window)),
            self.actions[window, env].long(),
            *(part[window, env] for part in (self.rewards, self.terminals, self.truncations)),
        )

    def observations(self, row: torch.Tensor, env: torch.Tensor) -> torch.Tensor:
        """Observations (..., *layout.shape) of layout.kept_dtype at `row` and `env`, both (...) int64."""
        reach = self.ages[row, env].long()
        # Before an episode's first picture, the stack repeats it, as in the env.
        planes = [
            self.pictures[(row - torch.clamp(reach, max=back)) % self.capacity, env]
            for back in reversed(range(self.stack_k))
        ]
        pictures = torch.cat(planes, -2).unflatten(-2, (-1, self.layout.kind.rows))
        if _is_packed_here(self.layout):
            pictures = unpack(pictures)
        if not self.layout.vectors:
            return pictures
        return torch.cat([pictures.flatten(-3).view(torch.uint8), self.vectors[row, env]], -1)

    def observations_after(self, index: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Observations, as in `observations`, up to n_step `steps` (batch,) after sampled steps (batch,)."""
        return self.observations((index // self.num_envs + steps) % self.capacity, index % self.num_envs)

    def update_priorities(self, index: torch.Tensor, errors: torch.Tensor, weights: torch.Tensor) -> None:
        """Sets the priorities of sampled steps to their errors'; those with weight 0 are not sampled again."""
        if self.alpha:
            priority = ((errors.abs() + PRIORITY_FLOOR) ** self.alpha) * (weights > 0)
            self.priorities.view(-1)[index] = priority
            torch.maximum(self.max_priority, priority.max(), out=self.max_priority)

    def state_dict(self) -> dict[str, Any]:
        """The rows in the ring and everything that the next samples depend on."""
        rings = {name: getattr(self, name)[: self.rows].clone() for name in STORED}
        return {**rings, "age": self.age.clone(), "max_priority": self.max_priority.clone(), "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from the state of `state_dict`.

        Raises: StateError if it is from a replay of another size, or is damaged.
        """
        if type(state["count"]) is not int or not 0 <= state["count"] < 2**62:
            raise StateError("saved replay is damaged in count: give another checkpoint")
        rows = min(state["count"], self.capacity)
        most = {"ages": self.stack_k - 1, "age": self.stack_k - 1, "actions": self.num_actions - 1}
        for name in (*STORED, "age", "max_priority"):
            mine, saved = getattr(self, name), state[name]
            mine = mine[:rows] if name in STORED else mine
            if not isinstance(saved, torch.Tensor) or (saved.shape, saved.dtype) != (mine.shape, mine.dtype):
                raise StateError(f"saved replay does not fit in {name}: use the sizes it was saved with")
            if saved.numel():
                low, high = (bound.item() for bound in saved.aminmax())
                least = -math.inf if name == "rewards" else 0  # what follows is also false for NaN
                if not least <= low <= high <= most.get(name, math.inf) or not math.isfinite(high - low):
                    raise StateError(f"saved replay is damaged in {name}: give another checkpoint")
        for name in STORED:
            getattr(self, name)[:rows] = state[name]
        self.age.copy_(state["age"])
        self.max_priority.copy_(state["max_priority"])
        self.count = state["count"]

    def cut_episodes(self) -> None:
        """Lets the next steps begin new episodes: the last ones count as truncated."""
        if self.count:
            newest = (self.count - 1) % self.capacity
            self.truncations[newest] = ~self.terminals[newest]
            self.age.zero_()

    def _write(
        self,
        row: int,
        envs: slice,
        obs: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        terminals: torch.Tensor,
        truncations: torch.Tensor,
    ) -> None:
        newest = signed(self.layout.split(obs)[PICTURE])[:, -self.layout.kind.planes :].flatten(1, 2)
        self.pictures[row, envs] = pack(newest) if _is_packed_here(self.layout) else newest
        if self.layout.vectors:
            self.vectors[row, envs] = obs[:, self.layout.picture_bytes :]
        self.ages[row, envs] = self.age[envs]
        parts = {"actions": actions, "rewards": rewards, "terminals": terminals, "truncations": truncations}
        for name, part in parts.items():
            getattr(self, name)[row, envs] = part
        self.age[envs].add_(1).clamp_(max=self.stack_k - 1).mul_(~(terminals | truncations))

    def _bounds(self, length: int) -> tuple[int, int]:
        """(first row, number of rows) at which a sequence of `length` steps can begin, counted from the oldest.

        The oldest rows of a full ring have lost the pictures of their stacks.
        """
        first = max(0, self.count - self.capacity)
        if first:
            first += self.stack_k - 1
        return first, max(0, self.count - length - first + 1)

    def _window(self, row: torch.Tensor, length: int) -> torch.Tensor:
        """`row` (batch,) and the rows after it, (length, batch)."""
        return (row + torch.arange(length, device=self.device)[:, None]) % self.capacity

    def _open_priorities(self, row: int) -> None:
        """Rows that were just written or will soon be overwritten cannot begin a transition; the row n_step before now
        can."""
        self.priorities[row] = 0
        for later in range(1, self.stack_k):
            self.priorities[(row + later) % self.capacity] = 0
        if self.count > self.n_step:
            self.priorities[(row - self.n_step) % self.capacity] = self.max_priority

    def _sample_by_priority(self, batch: int, beta: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(index, importance weights): one sample in each of `batch` equal parts of the sum of priorities.

        A cumulative sum over a million transitions reads and writes 8 MB, in microseconds on a GPU: it needs no tree.
        """
        flat = self.priorities.view(-1)
        total = flat.cumsum(0, dtype=torch.float64)
        point = torch.rand(batch, dtype=torch.float64, device=self.device)
        point.add_(torch.arange(batch, device=self.device)).mul_(total[-1] / batch)
        index = torch.searchsorted(total, point, right=True).clamp_(max=len(flat) - 1)
        priority = flat[index]
        weights = torch.where(
            priority > 0, priority**-beta, 0.0
        )  # rounding can hit a neighbour that must not be sampled
        return index, weights / weights.max().clamp(min=1e-12)
