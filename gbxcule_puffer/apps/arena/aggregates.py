"""Statistics of scores over several games and seeds, as Agarwal et al. define them (Deep Reinforcement Learning at the
Edge of the Statistical Precipice, 2021) and rliable computes them.

Scores are normalised, and given as a list with the scores of all runs of a game for each game; games may have different
numbers of runs. Behind the runs there may be further dimensions, such as the samples of a bootstrap and the points of a
curve, which the statistics keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Scores = Sequence[np.ndarray]  # of each game: the scores of its runs
SAMPLES, BATCH = 2_000, 250  # of a bootstrap: in all, and at a time
CONFIDENCE = 0.95


def iqm(scores: Scores) -> np.ndarray:
    """The interquartile mean: the mean of the middle half of all runs."""
    values = np.sort(np.concatenate(scores), axis=0)
    cut = int(0.25 * len(values))
    return values[cut : len(values) - cut].mean(0)


def profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """The performance profile (..., thresholds): the share of all runs whose score is above each threshold."""
    return (np.concatenate(scores)[..., None] > thresholds).mean(0)


def probability_of_improvement(scores: Scores, others: Scores) -> np.ndarray:
    """The probability that a run of one agent has a higher score than a run of another on a game that is chosen at
    random; equal scores count half. Both have the same games in the same order."""
    return np.mean([_higher(one, other) for one, other in zip(scores, others, strict=True)], axis=0)


def _higher(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    difference = one[:, None] - other[None]
    return (difference > 0).mean((0, 1)) + 0.5 * (difference == 0).mean((0, 1))


def bootstrap(function: Callable[..., np.ndarray], *scores: Scores, seed: int = 0) -> np.ndarray:
    """The 95 % interval of a function of one or several agents' scores, [low, high] in the first dimension: percentiles
    of its values for runs that are drawn with replacement, in each game and of each agent for itself."""
    random = np.random.default_rng(seed)

    def drawn(own: Scores) -> list[np.ndarray]:
        return [runs[random.integers(0, len(runs), (len(runs), BATCH))] for runs in own]

    values = np.concatenate([function(*map(drawn, scores)) for _ in range(SAMPLES // BATCH)])
    tail = 50 * (1 - CONFIDENCE)
    return np.percentile(values, [tail, 100 - tail], axis=0)
