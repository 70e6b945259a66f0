"""Meters of a run: means of its losses and episodes, the time for evaluations, the times of a step's parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gbxcule_puffer.trainers.checkpoints import check_like
from gbxcule_puffer.trainers.distributed import World


class Means:
    """Means of a trainer's losses since the last read; the sums are on the device."""

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self.names, self.sums, self.count = names, torch.zeros(len(names), device=device), 0

    def add(self, losses: Tensor) -> None:
        """Counts one value of each loss, (len(names),)."""
        self.sums += losses
        self.count += 1

    def read(self, world: World) -> dict[str, float]:
        """losses/NAME over all processes, 0 if there were none; then the sums begin at 0."""
        world.average(self.sums)
        means = (self.sums / max(1, self.count)).tolist()
        self.sums.zero_()
        self.count = 0
        return {f"losses/{name}": mean for name, mean in zip(self.names, means, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums, "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_like(state, self.state_dict(), "losses")
        self.sums.copy_(state["sums"])
        self.count = state["count"]


class Budget:
    """The time that evaluations may take: a share of the time since the run began, less a reserve for the last one.
    clock: seconds."""

    def __init__(self, share: float, reserve: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.share, self.reserve, self.clock, self.begun, self.spent = share, reserve, clock, clock(), 0.0

    @property
    def left(self) -> float:
        """Seconds; below 0 after an evaluation that could not wait."""
        return self.share * (self.clock() - self.begun) - self.reserve - self.spent

    @property
    def taken(self) -> float:
        """The share of the time so far that evaluations have taken."""
        return self.spent / max(self.clock() - self.begun, 1e-9)

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Counts the time of the block."""
        start = self.clock()
        try:
            yield
        finally:
            self.spent += self.clock() - start


class Recent:
    """The mean of a number of the last episodes."""

    def __init__(self, episodes: int) -> None:
        self.episodes, self._means = episodes, list[tuple[float, float]]()

    def add(self, mean: float, episodes: float) -> None:
        """Counts the mean of as many episodes, which ended after those before."""
        self._means.append((mean, episodes))
        while sum(count for _, count in self._means[1:]) >= self.episodes:
            del self._means[0]

    @property
    def mean(self) -> float:
        """NaN before enough episodes have ended."""
        total = sum(count for _, count in self._means)
        return sum(mean * count for mean, count in self._means) / total if total >= self.episodes else math.nan


class Stopwatch:
    """Seconds between marks. On a GPU a mark waits for the work, so it is `on` only for steps with a record."""

    def __init__(self, device: torch.device, on: bool) -> None:
        self.cuda, self.on = device.type == "cuda", on
        self.seconds: dict[str, float] = {}
        self.last = self._now() if on else 0.0

    def mark(self, name: str) -> None:
        """Assigns the time since the previous mark to `name`; times of the same name add up."""
        if self.on:
            now = self._now()
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
            self.last = now

    def _now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()
