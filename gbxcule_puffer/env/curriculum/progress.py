"""The progress at each stage: a Beta posterior of its success rate, which determines how often episodes begin there."""

# Kernels: Warp's integers are types of their own.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher

UNIT = 1 << 16  # weights are integers in this unit: their sums are the same in any order, on any device
FLOOR = 0.1  # weight of a stage that always succeeds: it is still played, so that it is not forgotten
MIN_WINDOW = 512


@wp.kernel(enable_backward=False)
def kernel_posterior(
    recent: wp.array2d(dtype=wp.int64),
    interval: wp.array2d(dtype=wp.int64),
    counts: wp.array2d(dtype=wp.float64),
    window: wp.float64,
    floor: wp.float64,
    weights: wp.array(dtype=wp.int64),
):
    """Adds the new successes and failures of each stage, reduces old ones, and computes the stage's weight."""
    stage = wp.tid()
    won = counts[0, stage] + wp.float64(recent[0, stage])
    lost = counts[1, stage] + wp.float64(recent[1, stage])
    if won + lost > window:
        won = won * wp.float64(0.5)  # exact, and the same on every device
        lost = lost * wp.float64(0.5)
    counts[0, stage] = won
    counts[1, stage] = lost
    for row in range(2):
        interval[row, stage] = interval[row, stage] + recent[row, stage]
        recent[row, stage] = wp.int64(0)
    mean = (won + wp.float64(1.0)) / (won + lost + wp.float64(2.0))
    weights[stage] = wp.int64((wp.float64(1.0) - mean + floor) * wp.float64(65536.0))


class BayesProgressTracker:
    """Beta(1 + successes, 1 + failures) of each stage; `weights` (stages,) int64 in units of 1 / UNIT.

    A stage's weight is its expected failure rate plus FLOOR, so that stages that still fail are played more often.
    Successes and failures of a stage are halved once their sum exceeds `window`, so that the posterior follows a
    learning policy. Allocates only here.
    """

    def __init__(self, names: Sequence[str], num_envs: int, device: torch.device) -> None:
        self.names = tuple(names)
        self.window = float(max(MIN_WINDOW, 2 * num_envs))
        size = len(self.names)
        self.counts = torch.zeros((2, size), dtype=torch.float64, device=device)
        self.weights = torch.zeros(size, dtype=torch.int64, device=device)
        self._new, self.interval = (torch.zeros((2, size), dtype=torch.int64, device=device) for _ in range(2))
        self._ones = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._launch = Launcher(device)

    def count(self, stage: torch.Tensor, won: torch.Tensor, lost: torch.Tensor, counted: torch.Tensor) -> None:
        """Adds the attempts that ended in this step: each env's `stage` int64, `won`, `lost` and `counted` bool, all
        (num_envs,); envs that are not counted add nothing."""
        for row, ended in zip(self._new, (won, lost), strict=True):
            self._ones.copy_(ended).mul_(counted)
            row.scatter_add_(0, stage, self._ones)
        self.update()

    def update(self) -> None:
        """Computes the weights from the counts."""
        size = len(self.names)
        self._launch(kernel_posterior, size, self._new, self.interval, self.counts, self.window, FLOOR, self.weights)

    def read(self) -> dict[str, float]:
        """For each stage, by name: attempts and success rate since the last read, the posterior's mean, and its share
        of the weights."""
        numbers = torch.cat([self.counts, self.interval, self.weights[None]]).tolist()
        self.interval.zero_()
        info, total = {}, sum(numbers[-1])
        for name, won, lost, new_won, new_lost, weight in zip(self.names, *numbers, strict=True):
            attempts = new_won + new_lost
            info[f"stage/{name}/weight"] = weight / total
            info[f"stage/{name}/posterior"] = (won + 1) / (won + lost + 2)
            info[f"stage/{name}/attempts"] = attempts
            if attempts:
                info[f"stage/{name}/success"] = new_won / attempts
        return info

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a saved state holds."""
        return {
            "progress_counts": self.counts,
            "progress_interval": self.interval,
            "progress_weights": self.weights,
        }
