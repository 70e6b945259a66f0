"""Which lanes run which envs: a permutation, those whose steps are expected to take longest first."""

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.gpu.lane_order import BINS, MANY, WIDTH, LaneOrder, memory_needed
from gbxcule_puffer.emulator.state import INDEX, NUM_FIELDS


def ended_steps(lengths: torch.Tensor) -> torch.Tensor:
    """The state (fields, num_envs) after steps of so many instructions."""
    state = torch.zeros((NUM_FIELDS, len(lengths)), dtype=torch.int32)
    state[INDEX["instructions"]] = lengths
    return state


@pytest.mark.parametrize("num_envs", [1, 33, 3_000])
def test_before_anything_is_learned_the_last_step_tells(num_envs: int) -> None:
    start_warp()
    generator = torch.Generator().manual_seed(num_envs)
    instructions = torch.randint(-5, WIDTH * BINS * 2, (num_envs,), dtype=torch.int32, generator=generator)
    skipped = torch.randint(0, 5_000, (num_envs,), dtype=torch.int32, generator=generator)
    lanes = LaneOrder(num_envs, "cpu")
    assert lanes.order.tolist() == list(range(num_envs))
    lanes.update(ended_steps(instructions), skipped, torch.zeros(num_envs, dtype=torch.uint8), None)
    assert sorted(lanes.order.tolist()) == list(range(num_envs))
    bins = ((instructions - skipped).numpy() // WIDTH).clip(0, BINS - 1)[lanes.order.numpy()]
    assert (np.diff(bins) <= 0).all()


@pytest.mark.parametrize("num_envs", [2_000, 40_000])  # all of them teach, every third does
def test_what_steps_with_the_same_buttons_took_is_learned(num_envs: int) -> None:
    start_warp()
    lanes, skipped = LaneOrder(num_envs, "cpu"), torch.zeros(num_envs, dtype=torch.int32)
    generator = torch.Generator().manual_seed(1)
    alike = torch.full((num_envs,), 20 * WIDTH, dtype=torch.int32)
    for _ in range(3):
        buttons = torch.randint(0, 8, (num_envs,), dtype=torch.uint8, generator=generator)
        lanes.update(ended_steps(alike), skipped, buttons, None)
        took = (1 + 20 * (buttons.int() * 3 % 8)) * WIDTH
        lanes.update(ended_steps(took), skipped, buttons, None)
    assert int(lanes._means[1].max()) <= MANY + num_envs  # older samples count half, again and again
    buttons = torch.randint(0, 8, (num_envs,), dtype=torch.uint8, generator=generator)
    lanes.update(ended_steps(alike), skipped, buttons, None)
    order = lanes.order.long()
    assert sorted(order.tolist()) == list(range(num_envs))
    assert (torch.diff(buttons[order].int() * 3 % 8) <= 0).all()


def test_the_estimate_is_what_is_allocated() -> None:
    lanes = LaneOrder(7, "cpu")
    tensors = [value for value in vars(lanes).values() if isinstance(value, torch.Tensor)]
    assert sum(wp.from_torch(tensor).capacity for tensor in tensors) == memory_needed(7)
