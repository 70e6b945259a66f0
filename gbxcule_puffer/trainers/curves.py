"""The score of a run over its steps and seconds, as the training's own episodes have it; also while it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from gbxcule_puffer.trainers.folder import METRICS

EPISODES = 100  # whose mean is the score
LARGEST = 1e18  # of a value that is drawn: sums, scales and margins of it are finite, too


def is_number(value: object) -> TypeGuard[float]:
    """True for a value of a record that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def curve_of(folder: Path, metric: str) -> list[list[float]]:
    """[steps, seconds, score, episodes] of each of a run's records that has ended episodes."""
    found = []
    for line in (folder / METRICS).read_text().splitlines() if (folder / METRICS).exists() else ():
        try:
            record = json.loads(line)
        except ValueError:  # being written
            break
        if is_number(record.get(metric)) and record.get("env/episodes"):
            seconds, score = round(record["charts/seconds"], 3), round(record[metric], 4)
            found.append([record["global_step"], seconds, score, record["env/episodes"]])
    return found


def reached(curve: Sequence[Sequence[float]], score: float) -> tuple[float, float] | None:
    """(steps, seconds) at which the mean of the last EPISODES is at least `score`, else None."""
    for end in range(1, len(curve) + 1):
        mean = last_score(curve[:end])
        if mean is not None and mean >= score:
            return curve[end - 1][0], curve[end - 1][1]
    return None


def last_score(curve: Sequence[Sequence[float]]) -> float | None:
    """The mean of the last EPISODES at the end of a curve; None where fewer have ended."""
    total = count = 0.0
    for _, _, value, episodes in reversed(curve):
        total, count = total + value * episodes, count + episodes
        if count >= EPISODES:
            return total / count
    return None
