"""The launch shape for the game at hand, chosen by measuring a run's own steps: no shape changes a result, so these are
steps as all others. Nothing waits for the GPU meanwhile."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gbxcule_puffer.emulator.lanes.launch_shape import MIXED, PACKED, TOGETHER, LaunchShape

FIRST = 64  # steps before the first trial, in which forecasts learn
LATER = 8  # at so many times the steps of a trial's begin the next one begins
ROUNDS = 2
GAIN = 0.9  # of the usual shape's time is what another one takes at most: less may be chance, or not last
# By the usual lanes: what is tried in their place, if it is not the usual shape. What was the fastest for some game
# (docs/performance.md); by analogy, twins are side by side where a head has lanes of its own.
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
    """The usual shape, and what else is tried."""
    return list(dict.fromkeys([usual, *(replace(usual, **other) for other in OTHERS[usual.lanes])]))


class Trial:
    """measured: the shape of each step that is measured, all of them ROUNDS times forward and backward, so that steps
    that become longer favour none."""

    def __init__(self, usual: LaunchShape) -> None:
        self.usual, self._shapes = usual, candidates(usual)
        self.measured = [*self._shapes, *reversed(self._shapes)] * ROUNDS

    def best(self, times: Sequence[float]) -> LaunchShape:
        """The shape that took the smallest share of its rounds, in the median; the usual one where it is about as good.

        Args: times: of each step of `measured`, in any unit.
        """
        size = 2 * len(self._shapes)
        shares: dict[LaunchShape, list[float]] = {shape: [] for shape in self._shapes}
        for begin in range(0, len(times), size):
            round_times = times[begin : begin + size]
            for place in range(len(self._shapes)):
                of_shape = round_times[place] + round_times[size - 1 - place]
                shares[self._shapes[place]].append(of_shape / sum(round_times))
        medians = {shape: statistics.median(found) for shape, found in shares.items()}
        fastest = min(medians, key=lambda shape: medians[shape])
        return fastest if medians[fastest] < GAIN * medians[self.usual] else self.usual


class Autotuner:
    """Trials on a run's steps, again and again, since a game's steps change as an agent learns; CUDA events time them.
    Each stays without a choice until the GPU has come to its end."""

    def __init__(self, usual: LaunchShape) -> None:
        self._trial, self._kept = Trial(usual), usual
        self._steps, self._begin = 0, FIRST
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @property
    def unsettled(self) -> bool:
        """True until the first trial has ended, and while a later one is under way."""
        return self._begin == FIRST or bool(self._events)

    @contextlib.contextmanager
    def step(self, stream: torch.cuda.Stream) -> Iterator[LaunchShape]:
        """The shape of the step that is launched inside. What a CUDA graph records is not measured: it keeps the shape
        chosen by then."""
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
