"""Curves of a run since its start, from its records on the disk, in a few points."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, parse_json
from gbxcule_puffer.files.reading import opened
from gbxcule_puffer.trainers.curves import is_number

RECORDS = Kind("records", StateError, "give the folder of a run")
LIMIT = 2**28  # bytes of a run's records
SHOWN = ("charts/success_rate", "eval/success_rate", "charts/episodic_return", "charts/episodic_length", "env/dist_p50")
# What Tasks and stages count, in training and in evaluations.
OF_TASKS = re.compile(r"env/(?!action_hist/|stage/)[^/]+/.+|env/stage/.+/success|eval/(?!greedy_|random_)[^/]+/.+")
MOST_CURVES, MOST_POINTS = 40, 400


class Curve:
    """Steps and values, each the mean over `width` records; where there are too many points, pairs become one."""

    def __init__(self) -> None:
        self.steps, self.values = list[float](), list[float]()
        self.width = 1
        self._sums, self._count = [0.0, 0.0], 0

    def add(self, step: float, value: float) -> None:
        """Takes the value of the next record."""
        self._sums = [self._sums[0] + step, self._sums[1] + value]
        self._count += 1
        if self._count < self.width:
            return
        self.steps.append(self._sums[0] / self.width)
        self.values.append(self._sums[1] / self.width)
        self._sums, self._count = [0.0, 0.0], 0
        if len(self.steps) == MOST_POINTS:
            self.steps, self.values, self.width = _halved(self.steps), _halved(self.values), 2 * self.width

    def points(self) -> dict[str, list[float]]:
        """Its points, the newest with fewer records than the others."""
        rest = [[total / self._count] if self._count else [] for total in self._sums]
        return {"steps": self.steps + rest[0], "values": self.values + rest[1]}


class Curves:
    """The curves of the records at `path`, by their tags, as far as they have been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def read(self) -> bool:
        """Takes the records that were written since the last call, all of a file that is another one; True where there
        are any. A damaged line is left out."""
        with contextlib.suppress(StateError), opened(self._path, RECORDS, LIMIT) as (file, size):
            if (number := os.fstat(file.fileno()).st_ino) != self._file or size < self._read:
                self._forget()
                self._file = number
            file.seek(self._read)
            *lines, rest = file.read(size - self._read).split(b"\n")
            self._read = size - len(rest)  # the last one is perhaps being written
            for line in lines:
                with contextlib.suppress(StateError):
                    self._take(parse_json(line, self._path, RECORDS))
            return bool(lines)
        return False

    def points(self) -> dict[str, dict[str, list[float]]]:
        """`steps` and `values` of each curve, the usual ones first."""
        tags = [tag for tag in SHOWN if tag in self._curves]
        return {tag: self._curves[tag].points() for tag in dict.fromkeys([*tags, *sorted(self._curves)])}

    def _forget(self) -> None:
        self._curves, self._read, self._file = dict[str, Curve](), 0, 0

    def _take(self, record: object) -> None:
        if not isinstance(record, dict) or not is_number(step := record.get("global_step")):
            return
        for tag, value in record.items():
            if not is_number(value) or not (tag in SHOWN or OF_TASKS.fullmatch(tag)):
                continue
            if tag in self._curves or len(self._curves) < MOST_CURVES:
                self._curves.setdefault(tag, Curve()).add(step, value)


def _halved(values: Sequence[float]) -> list[float]:
    """The means of each two."""
    return [(a + b) / 2 for a, b in zip(values[::2], values[1::2], strict=True)]
