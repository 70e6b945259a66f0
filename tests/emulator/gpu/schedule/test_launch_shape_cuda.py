"""Lanes per warp, block size and which envs share a warp never change a result; autotuning ends with a table."""

import itertools

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT, find_rom, random_buttons
from gbxcule_puffer.apps.bench.autotune import measure
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.schedule.autotuner import FIRST, OTHERS, Trial, candidates
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import BLOCK_DIMS, LANES, LaunchShape
from gbxcule_puffer.emulator.gpu.schedule.steps import GpuSteps

pytestmark = pytest.mark.gpu
ROM = ROOT / "roms" / "homeward.gb"


def launches(emulator: Emulator) -> GpuSteps:
    """The launches of an emulator on a GPU."""
    assert emulator.launches is not None
    return emulator.launches


def test_all_shapes_give_the_same_state(cuda_device: str) -> None:
    buttons = torch.from_numpy(random_buttons(5, 12, 100)).to(cuda_device)
    hashes = []
    shapes = [LaunchShape(*shape) for shape in itertools.product(LANES, BLOCK_DIMS, (False, True))]
    shapes += [shape for lanes in OTHERS for shape in candidates(LaunchShape(lanes, 128, True))]
    for shape in shapes:
        emulator = Emulator(ROM, 100, cuda_device, autotune=False)
        launches(emulator).shape = shape
        for row in buttons:
            emulator.step(row)
        hashes.append(emulator.state_hash())
    assert all(np.array_equal(found, hashes[0]) for found in hashes)
    assert len(set(hashes[0].tolist())) > 10


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("game", ["corrib75", "shocklobster"])
def test_envs_that_part_ways_are_as_when_alone(cuda_device: str, game: str) -> None:
    """Where lanes that do different things lose each other, instructions are counted twice."""
    buttons = torch.from_numpy(random_buttons(5, 14, 256)).to(cuda_device)
    states = []
    for lanes in (1, 16, 32):
        emulator = Emulator(find_rom(game), 256, cuda_device, autotune=False)
        launches(emulator).shape = LaunchShape(lanes, 32, True)
        for row in buttons:
            emulator.step(row)
        states.append(emulator.state_hash())
    assert len(set(states[0].tolist())) > 100
    assert all(np.array_equal(found, states[0]) for found in states)


def test_each_shape_is_measured(cuda_device: str) -> None:
    shapes = [LaunchShape(8, 32), LaunchShape(32, 128, True)]
    rates = measure(Workload(ROM), 256, cuda_device, shapes)
    assert set(rates) == set(shapes) and min(rates.values()) > 0


def test_the_shape_for_a_game_is_found_on_its_own_steps(cuda_device: str) -> None:
    """It changes no result and waits for nothing."""
    usual, tuned = (Emulator(ROM, 100, cuda_device, autotune=autotune) for autotune in (False, True))
    expected = Trial(launches(usual).shape).measured
    used, unsettled = [], []
    for row in torch.from_numpy(random_buttons(5, FIRST + len(expected) + 8, 100)).to(cuda_device):
        for emulator in (usual, tuned):
            emulator.step(row)
        used.append(launches(tuned).shape)
        unsettled.append(launches(tuned).unsettled)
        torch.cuda.synchronize(cuda_device)
    assert np.array_equal(usual.state_hash(), tuned.state_hash())
    begin, end = FIRST - 1, FIRST - 1 + len(expected)  # the reset was the first step
    assert used[:begin] == [launches(usual).shape] * begin
    assert used[begin:end] == expected
    assert len(set(used[end:])) == 1, "the choice stays"
    assert all(unsettled[:end]) and not any(unsettled[end:]) and not launches(usual).unsettled


def test_what_a_graph_records_is_not_measured(cuda_device: str) -> None:
    emulator = Emulator(ROM, 100, cuda_device)
    before = launches(emulator).shape
    buttons = torch.zeros(100, dtype=torch.uint8, device=cuda_device)
    stream, graph = torch.cuda.Stream(cuda_device), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(FIRST + 1):
            emulator.step(buttons)
        torch.cuda.synchronize(cuda_device)
        with torch.cuda.graph(graph, stream=stream):
            emulator.step(buttons)
        assert launches(emulator).shape == before
        graph.replay()
        for _ in range(len(Trial(before).measured) + 4):
            emulator.step(buttons)
            torch.cuda.synchronize(cuda_device)
    assert launches(emulator).shape in candidates(before)
