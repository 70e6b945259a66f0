"""Which env a lane of the GPU runs: those whose steps take alike long share a warp, the longest first.

A warp runs until its slowest env has finished the step. Games that differ (a menu here, a full screen of enemies there)
differ for many steps, so the last step tells. No result depends on it.
"""

from __future__ import annotations

import torch


class LaneOrder:
    """order (num_envs,) int64: the env of each lane; at first lane i has env i."""

    def __init__(self, num_envs: int, device: str) -> None:
        self.order = torch.arange(num_envs, device=device)
        self._work = torch.zeros(num_envs, dtype=torch.int32, device=device)
        self._sorted = torch.zeros_like(self._work)

    def update(self, instructions: torch.Tensor, skipped: torch.Tensor) -> None:
        """Sort by what each env executed in the last step, both (num_envs,) int32. No host synchronisation."""
        torch.sub(instructions, skipped, out=self._work)
        torch.sort(self._work, descending=True, out=(self._sorted, self.order))


def bytes_per_env() -> int:
    """What a LaneOrder allocates for each env."""
    return 8 + 4 + 4
