"""Lanes of a warp for the game at hand, chosen by measuring a run's own steps: no shape changes a result, so these are
steps as all others. Nothing waits for the GPU meanwhile, and nothing is left of it afterwards."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from gbxcule_puffer.emulator.gpu.launch_shape import LANES, LaunchShape
from gbxcule_puffer.errors import ConfigError

WARMUP = 40  # steps, until the games have gone different ways
ROUNDS = 4


class Trial:
    """Shapes that differ in their lanes. measured: that of each step that is measured, all of them ROUNDS times forward
    and backward, so that steps that become longer favour none."""

    def __init__(self, usual: LaunchShape) -> None:
        self.usual = usual
        self._shapes = [replace(usual, lanes=lanes) for lanes in LANES]
        self.measured = [*self._shapes, *reversed(self._shapes)] * ROUNDS

    def best(self, times: Sequence[float]) -> LaunchShape:
        """The shape that took the smallest share of its rounds, in the median; the usual one where it is as good.

        Args: times: of each step of `measured`, in any unit.
        """
        size = 2 * len(self._shapes)
        shares: dict[LaunchShape, list[float]] = {shape: [] for shape in (self.usual, *self._shapes)}
        for begin in range(0, len(times), size):
            round_times = times[begin : begin + size]
            for place in range(len(self._shapes)):
                of_shape = round_times[place] + round_times[size - 1 - place]
                shares[self._shapes[place]].append(of_shape / sum(round_times))
        return min(shares, key=lambda shape: statistics.median(shares[shape]))


class Autotuner:
    """A trial on a run's steps, after WARMUP with the usual shape; CUDA events time them.

    Raises: ConfigError on a CPU, and for the interpreter, whose launches have no such choice.
    """

    def __init__(self, usual: LaunchShape, device: str, kernel: str) -> None:
        if device == "cpu" or kernel != "datapath":
            raise ConfigError("autotune chooses how a GPU's kernel is launched: give device 'cuda', or leave it out")
        self._trial = Trial(usual)
        self._steps = 0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.done = False

    @contextlib.contextmanager
    def step(self, stream: torch.cuda.Stream) -> Iterator[LaunchShape]:
        """The shape of the step that is launched inside; `done` where it is the one to keep. While a CUDA graph is
        recorded nothing can be measured: the trial ends without a choice."""
        number = self._steps - WARMUP
        self._steps += 1
        if torch.cuda.is_current_stream_capturing():
            self.done = True
            yield self._trial.usual
        elif 0 <= number < len(self._trial.measured):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self._events.append((begin, end))
            begin.record(stream)
            yield self._trial.measured[number]
            end.record(stream)
        elif number >= 0 and self._events[-1][1].query():
            self.done = True
            yield self._trial.best([begin.elapsed_time(end) for begin, end in self._events])
        else:
            yield self._trial.usual
