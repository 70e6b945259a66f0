"""Which lanes run which envs: a permutation, the longest steps first."""

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.lane_order import BINS, WIDTH, LaneOrder, memory_needed


@pytest.mark.parametrize("num_envs", [1, 33, 3_000])
def test_the_longest_steps_come_first(num_envs: int) -> None:
    start_warp()
    lanes = LaneOrder(num_envs, "cpu")
    assert lanes.order.tolist() == list(range(num_envs))
    generator = torch.Generator().manual_seed(num_envs)
    for _ in range(2):  # the counts begin anew
        instructions = torch.randint(-5, WIDTH * BINS * 2, (num_envs,), dtype=torch.int32, generator=generator)
        skipped = torch.randint(0, 5_000, (num_envs,), dtype=torch.int32, generator=generator)
        lanes.update(instructions, skipped, None)
        assert sorted(lanes.order.tolist()) == list(range(num_envs))
        bins = ((instructions - skipped).numpy() // WIDTH).clip(0, BINS - 1)[lanes.order.numpy()]
        assert (np.diff(bins) <= 0).all()


def test_the_estimate_is_what_is_allocated() -> None:
    lanes = LaneOrder(7, "cpu")
    tensors = [value for value in vars(lanes).values() if isinstance(value, torch.Tensor)]
    assert sum(wp.from_torch(tensor).capacity for tensor in tensors) == memory_needed(7)
