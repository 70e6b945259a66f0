"""Meters of a run: means of its losses, and times of a step's parts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
