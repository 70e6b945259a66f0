"""The pace of a run: its steps and optimizer steps a second, and the seconds of its training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


class Pace:
    """Steps and seconds since a run was started or resumed, and since its last record."""

    def __init__(self, optimizer_steps: Callable[[], float], seconds_before: float = 0.0) -> None:
        """optimizer_steps: counts those since the run's beginning; seconds_before: of training, until the checkpoint
        from which the run goes on."""
        self._count, self._before = optimizer_steps, seconds_before
        self.parts: dict[str, float] = {}  # seconds of a step's parts, of the records that have them
        self.begin(0)

    def begin(self, step: int) -> None:
        """The training begins, at `step`."""
        self.begun = self._recorded = step
        self._optimizer_steps = self._count()  # until the last record
        self._begun_at = self._recorded_at = time.time()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.time() - self._begun_at

    @property
    def all_seconds(self) -> float:
        """Of training, over all starts of the run, without the time that a kill lost."""
        return self._before + self.seconds

    def steps_per_second(self, step: int) -> float:
        """From the start to `step`."""
        return (step - self.begun) / self.seconds

    def add_parts(self, seconds: Mapping[str, float]) -> None:
        """Counts the seconds of a step's parts."""
        for name, part in seconds.items():
            self.parts[name] = self.parts.get(name, 0.0) + part

    def charts(self, step: int) -> dict[str, float]:
        """charts/... of a record at `step`. The learner's speed is that since the last record."""
        optimizer_steps, seconds = self._count(), time.time() - self._recorded_at
        return {
            "charts/seconds": self.all_seconds,
            "charts/SPS": self.steps_per_second(step),
            "charts/SPS_learner": (step - self._recorded) / seconds,
            "charts/updates_per_s": (optimizer_steps - self._optimizer_steps) / seconds,
        }

    def end_record(self, step: int) -> None:
        """The record at `step` is written."""
        self._recorded, self._recorded_at, self._optimizer_steps = step, time.time(), self._count()

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Leaves the time of the block out of the learner's speed."""
        began = time.time()
        yield
        self._recorded_at += time.time() - began
