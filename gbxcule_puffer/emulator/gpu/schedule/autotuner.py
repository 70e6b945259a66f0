"""The fastest launch shape for the current game, found by timing steps of the run itself. No shape changes a result, so
these steps count like all others. Nothing waits for the GPU."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gbxcule_puffer.emulator.gpu.schedule.launch_shape import MIXED, PACKED, TOGETHER, LaunchShape

FIRST = 64  # steps before the first trial; the forecast learns in them
LATER = 8  # the next trial begins at this multiple of the step at which the last one began
ROUNDS = 2
GAIN = 0.9  # another shape wins only below this share of the usual shape's time: a smaller gain may be chance
# Usual number of lanes -> alternatives: each was the fastest for some game (docs/schedule.md). With a head, twins are
# side by side.
OTHERS: dict[int, list[dict[str, Any]]] = {
    1: [{"lanes": 2, "twins": MIXED}],
    2: [{"lanes": 1, "twins": MIXED}, {"lanes": 4, "twins": MIXED}, {"twins": PACKED}],
    8: [
        {"twins": PACKED},
        {"twins": TOGETHER},
        {"lanes": 16, "head": 4, "head_lanes": 4, "twins": TOGETHER},
        {"lanes": 1, "twins": MIXED},
    ],
    16: [{"twins": PACKED}, {"twins": TOGETHER}, {"lanes": 32, "head": 4, "head_lanes": 8, "twins": TOGETHER}],
    32: [
        {"head": 8, "head_lanes": 8, "twins": TOGETHER},
        {"head": 4, "head_lanes": 16, "twins": TOGETHER},
        {"calls": 4},
    ],
}


def candidates(usual: LaunchShape) -> list[LaunchShape]:
    """The usual shape and its alternatives."""
    return list(dict.fromkeys([usual, *(replace(usual, **other) for other in OTHERS[usual.lanes])]))


class Trial:
    """A comparison of shapes on consecutive steps.

    measured: the shape of each timed step: all shapes forward and backward, ROUNDS times, so that steps that become
    longer favour no shape.
    """

    def __init__(self, usual: LaunchShape) -> None:
        self.usual, self._shapes = usual, candidates(usual)
        self.measured = [*self._shapes, *reversed(self._shapes)] * ROUNDS

    def best(self, times: Sequence[float]) -> LaunchShape:
        """The shape with the smallest median share of its rounds' time, or the usual shape if it is about as fast.

        Args: times: the time of each step of `measured`, in any unit.
        """
        size = 2 * len(self._shapes)
        shares: dict[LaunchShape, list[float]] = {shape: [] for shape in self._shapes}
        for begin in range(0, len(times), size):
            round_times = times[begin : begin + size]
            for index, shape in enumerate(self._shapes):
                of_shape = round_times[index] + round_times[size - 1 - index]
                shares[shape].append(of_shape / sum(round_times))
        medians = {shape: statistics.median(found) for shape, found in shares.items()}
        fastest = min(medians, key=lambda shape: medians[shape])
        return fastest if medians[fastest] < GAIN * medians[self.usual] else self.usual


class Autotuner:
    """Repeated trials on a run's steps, because the steps of a game change as an agent learns. CUDA events time the
    steps, and a trial is evaluated once the GPU has finished it."""

    def __init__(self, usual: LaunchShape) -> None:
        self._trial, self._kept = Trial(usual), usual
        self._steps, self._begin = 0, FIRST
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @property
    def unsettled(self) -> bool:
        """True until the first trial has ended, and during a later one."""
        return self._begin == FIRST or bool(self._events)

    @contextlib.contextmanager
    def step(self, stream: torch.cuda.Stream) -> Iterator[LaunchShape]:
        """The shape for the step that is launched inside. A step in a CUDA graph is not timed: it keeps the shape
        chosen so far."""
        if torch.cuda.is_current_stream_capturing():
            yield self._kept
            return
        number = self._steps - self._begin
        self._steps += 1
        if 0 <= number < len(self._trial.measured):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self._events.append((begin, end))
            begin.record(stream)
            try:
                yield self._trial.measured[number]
            finally:  # Ctrl-C in a step must not leave a time without an end
                end.record(stream)
            return
        if number > 0 and self._events[-1][1].query():
            self._kept = self._trial.best([begin.elapsed_time(end) for begin, end in self._events])
            self._events, self._begin = [], max(LATER * self._begin, self._steps)
        yield self._kept
