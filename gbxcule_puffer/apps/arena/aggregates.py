"""Statistics of scores over several games and seeds, as Agarwal et al. define them (Deep Reinforcement Learning at the
Edge of the Statistical Precipice, 2021) and rliable computes them.

Scores are normalised, and given as a list with the scores of all runs of a game for each game; games may have different
numbers of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Scores = Sequence[np.ndarray]  # of each game: the scores of its runs
SAMPLES = 2_000  # of a bootstrap
CONFIDENCE = 0.95


def iqm(scores: Scores) -> np.ndarray:
    """The interquartile mean: the mean of the middle half of all runs; of curves (runs, points) that of each point."""
    values = np.sort(np.concatenate(scores), axis=0)
    cut = int(0.25 * len(values))
    return values[cut : len(values) - cut].mean(0)


def profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """The performance profile: the share of all runs whose score is above each threshold."""
    values = np.concatenate(scores)
    return (values[None] > thresholds[:, None]).mean(1)


def probability_of_improvement(scores: Scores, others: Scores) -> float:
    """The probability that a run of one agent has a higher score than a run of another on a game that is chosen at
    random; equal scores count half. Both have the same games in the same order."""
    return float(np.mean([_higher(one, other) for one, other in zip(scores, others, strict=True)]))


def _higher(one: np.ndarray, other: np.ndarray) -> float:
    difference = one[:, None] - other[None]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def bootstrap(function: Callable[..., object], *scores: Scores, seed: int = 0) -> np.ndarray:
    """The 95 % interval of a function of one or several agents' scores, [low, high] in the first dimension: percentiles
    of its values for runs that are drawn with replacement, in each game and of each agent for itself."""
    random = np.random.default_rng(seed)

    def drawn(own: Scores) -> list[np.ndarray]:
        return [runs[random.integers(0, len(runs), len(runs))] for runs in own]

    values = np.array([function(*map(drawn, scores)) for _ in range(SAMPLES)])
    tail = 50 * (1 - CONFIDENCE)
    return np.percentile(values, [tail, 100 - tail], axis=0)
