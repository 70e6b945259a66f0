"""Which lanes run which envs: a permutation, those whose steps are expected to take longest first."""

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.gpu.schedule import lane_order
from gbxcule_puffer.emulator.gpu.schedule.lane_order import LaneOrder, memory_needed
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PACKED as PACKED_TWINS
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import TOGETHER, WARP_SIZE, LaunchShape
from gbxcule_puffer.emulator.gpu.schedule.twins import BINS, MANY, WIDTH
from gbxcule_puffer.emulator.state import INDEX, NUM_FIELDS

SORTED, BESIDE = LaunchShape(16, 32, True), LaunchShape(16, 32, True, twins=TOGETHER)
PACKED = LaunchShape(16, 32, True, twins=PACKED_TWINS)


class Lanes(LaneOrder):
    """A LaneOrder with what a Machine has of its envs' steps."""

    def __init__(self, num_envs: int) -> None:
        self.state = torch.zeros((NUM_FIELDS, num_envs), dtype=torch.int32)
        self.skipped = torch.zeros(num_envs, dtype=torch.int32)
        super().__init__(self.state, self.skipped)


def update(lanes: Lanes, lengths: torch.Tensor, buttons: torch.Tensor, shape: LaunchShape) -> torch.Tensor:
    """The envs of each warp, (warps, 32), -1 for none, after steps of so many instructions, which took as long, and of
    which those with as many took the same path."""
    lanes.state[INDEX["instructions"]] = lengths
    lanes.took.copy_(lengths)
    lanes.path.copy_(lengths)
    warps = lanes.update(buttons, shape, None)
    return lanes.order[: warps * WARP_SIZE].view(warps, WARP_SIZE)


def envs_in(order: torch.Tensor) -> torch.Tensor:
    return order[order >= 0].long()


@pytest.mark.parametrize("num_envs", [1, 33, 3_000])
def test_before_anything_is_learned_the_last_step_tells(num_envs: int) -> None:
    start_warp()
    generator = torch.Generator().manual_seed(num_envs)
    instructions = torch.randint(-5, WIDTH * BINS * 2, (num_envs,), dtype=torch.int32, generator=generator)
    skipped = torch.randint(0, 5_000, (num_envs,), dtype=torch.int32, generator=generator)
    lanes = Lanes(num_envs)
    assert lanes.order[:num_envs].tolist() == list(range(num_envs))
    lanes.state[INDEX["instructions"]] = instructions
    lanes.skipped.copy_(skipped)
    lanes.update(torch.zeros(num_envs, dtype=torch.uint8), SORTED, None)
    order = envs_in(lanes.order[: 32 * -(-num_envs // 16)])
    assert sorted(order.tolist()) == list(range(num_envs))
    bins = ((instructions - skipped).numpy() // WIDTH).clip(0, BINS - 1)[order.numpy()]
    assert np.sum(np.diff(bins) > 0) <= 0.05 * num_envs  # few sets have the same hash


@pytest.mark.parametrize("num_envs", [2_000, 40_000])  # all of them teach, every third does
def test_what_steps_with_the_same_buttons_took_is_learned(num_envs: int) -> None:
    start_warp()
    lanes = Lanes(num_envs)
    generator = torch.Generator().manual_seed(1)
    alike = torch.full((num_envs,), 20 * WIDTH, dtype=torch.int32)
    for _ in range(3):
        buttons = torch.randint(0, 8, (num_envs,), dtype=torch.uint8, generator=generator)
        update(lanes, alike, buttons, SORTED)
        update(lanes, (1 + 20 * (buttons.int() * 3 % 8)) * WIDTH, buttons, SORTED)
    assert int(lanes._means[1].max()) <= MANY + num_envs  # older samples count half, again and again
    buttons = torch.randint(0, 8, (num_envs,), dtype=torch.uint8, generator=generator)
    order = envs_in(update(lanes, alike, buttons, SORTED))
    assert sorted(order.tolist()) == list(range(num_envs))
    assert (torch.diff(buttons[order].int() * 3 % 8) <= 0).all()


@pytest.mark.parametrize(
    "shape", [SORTED, BESIDE, PACKED, LaunchShape(16, 32, True, 4, 2), LaunchShape(1, 32), LaunchShape(32, 32)]
)
@pytest.mark.parametrize("different", [1, 40, 9_000])
def test_each_env_has_one_lane(shape: LaunchShape, different: int) -> None:
    start_warp()
    num_envs = 9_000
    generator = torch.Generator().manual_seed(different)
    lanes, buttons = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8)
    lengths = 5_000 + 977 * torch.randint(different, (num_envs,), dtype=torch.int32, generator=generator)
    for _ in range(3):
        order = update(lanes, lengths, buttons, shape)
        assert sorted(envs_in(order).tolist()) == list(range(num_envs))


def test_where_the_warps_do_not_suffice_each_env_has_a_lane_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that rounding, which two kernels may do in two ways, leaves no env without a lane."""
    start_warp()
    num_envs, fewest = 9_000, -(-9_000 // WARP_SIZE)
    monkeypatch.setattr(lane_order, "most_warps", lambda *_: fewest)
    lanes, buttons = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8)
    lengths = 5_000 + 77 * torch.arange(num_envs, dtype=torch.int32)
    for _ in range(3):
        order = update(lanes, lengths, buttons, PACKED)
        assert len(order) == fewest
        assert sorted(envs_in(order).tolist()) == list(range(num_envs))


def test_twins_are_side_by_side() -> None:
    start_warp()
    num_envs = 9_000
    generator = torch.Generator().manual_seed(0)
    lengths = 5_000 + 7 * torch.randint(40, (num_envs,), dtype=torch.int32, generator=generator)  # one or two bins
    lanes, changes = Lanes(num_envs), {}
    for shape in (BESIDE, SORTED):
        order = envs_in(update(lanes, lengths, torch.zeros(num_envs, dtype=torch.uint8), shape))
        changes[shape] = int((torch.diff(lengths[order]) != 0).sum())
    assert changes[BESIDE] < 41 < changes[SORTED]


def test_twins_are_those_that_will_take_the_same_path_though_they_began_in_different_ways() -> None:
    """Of 60 ways to begin, two lead to each of 30 paths: once that is known, the 80 envs of a path are side by side."""
    start_warp()
    num_envs = 2_400
    begins = torch.arange(num_envs, dtype=torch.int32) % 60
    lanes, buttons, changes = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8), []
    before, after = 9_000 + 7 * begins, 9_000 + 1_001 * (begins // 2)
    for _ in range(2):
        order = envs_in(update(lanes, before, buttons, BESIDE))
        changes.append(int((torch.diff(after[order]) != 0).sum()))
        update(lanes, after, buttons, BESIDE)
    assert changes[0] > changes[1] == 29


def test_twins_have_warps_of_their_own_where_there_are_enough() -> None:
    """40 sets for 563 warps: no warp is of two, and those of the longest have the fewest lanes."""
    start_warp()
    num_envs = 9_000
    generator = torch.Generator().manual_seed(0)
    lanes, buttons = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8)
    lengths = 5_000 + 9_001 * torch.randint(40, (num_envs,), dtype=torch.int32, generator=generator)
    for _ in range(3):
        order = update(lanes, lengths, buttons, PACKED)
    warps = [lengths[envs_in(row)] for row in order if (row >= 0).any()]
    assert len(warps) <= -(-num_envs // PACKED.lanes)
    assert all(len(set(warp.tolist())) == 1 for warp in warps)


def test_those_without_twins_share_warps_that_end_together() -> None:
    start_warp()
    num_envs = 9_000
    lanes, buttons = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8)
    lengths = 300 + 50 * torch.randperm(num_envs, generator=torch.Generator().manual_seed(0)).int()
    for _ in range(2):
        order = update(lanes, lengths, buttons, PACKED)
    warps = [lengths[envs_in(row)] for row in order if (row >= 0).any()]
    longest = [len(warp) for warp in warps if warp.max() > 400_000]
    shortest = [len(warp) for warp in warps if warp.max() < 250_000]
    assert np.mean(longest) < 0.6 * np.mean(shortest)


def test_those_without_twins_share_warps_with_those_that_are_expected_to_execute_about_as_much() -> None:
    start_warp()
    num_envs = 9_000
    lanes, buttons = Lanes(num_envs), torch.zeros(num_envs, dtype=torch.uint8)
    lengths = 50_000 + torch.randperm(num_envs, generator=torch.Generator().manual_seed(0)).int()
    order = update(lanes, lengths, buttons, PACKED)
    warps = [lengths[envs_in(row)] for row in order if (row >= 0).any()]
    spans = [int(warp.max() - warp.min()) for warp in warps]
    assert np.mean([span > 2 * WIDTH for span in spans]) < 0.1


def test_envs_that_prove_no_twins_are_not_put_together() -> None:
    """What begins alike but goes different ways is spread over more warps."""
    start_warp()
    num_envs = 9_000
    generator = torch.Generator().manual_seed(0)
    lanes, buttons = Lanes(num_envs), (torch.arange(num_envs) % 2).to(torch.uint8)
    alike = torch.full((num_envs,), 10_000, dtype=torch.int32)
    for _ in range(4):
        noise = torch.randint(250, (num_envs,), dtype=torch.int32, generator=generator)  # one bin
        update(lanes, alike + noise * buttons.int(), torch.zeros_like(buttons), PACKED)
        order = update(lanes, alike, buttons, PACKED)
    warps = [buttons[envs_in(row)] for row in order if (row >= 0).any()]
    pure, others = ([len(warp) for warp in warps if int(warp[0]) == button] for button in (0, 1))
    assert np.mean(others) < 0.8 * np.mean(pure)


def test_the_estimate_is_what_is_allocated() -> None:
    lanes = LaneOrder(torch.zeros((NUM_FIELDS, 7), dtype=torch.int32), torch.zeros(7, dtype=torch.int32))
    tensors = [value for value in vars(lanes).values() if isinstance(value, torch.Tensor)]
    assert sum(wp.from_torch(tensor).capacity for tensor in tensors) == memory_needed(7)
