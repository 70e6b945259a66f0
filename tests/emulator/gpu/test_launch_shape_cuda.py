"""Lanes per warp, block size and which envs share a warp never change a result; autotuning ends with a table."""

import itertools

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT, random_buttons
from gbxcule_puffer.apps.bench.autotune import measure
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.launch_shape import BLOCK_DIMS, LANES, LaunchShape

pytestmark = pytest.mark.gpu
ROM = ROOT / "roms" / "homeward.gb"


def test_all_shapes_give_the_same_state(cuda_device: str) -> None:
    buttons = torch.from_numpy(random_buttons(5, 12, 100)).to(cuda_device)
    hashes = []
    shapes = itertools.product(LANES, BLOCK_DIMS, (False, True))
    for shape in shapes:
        emulator = Emulator(ROM, 100, cuda_device)
        emulator.launch_shape = LaunchShape(*shape)
        for row in buttons:
            emulator.step(row)
        hashes.append(emulator.state_hash())
    assert all(np.array_equal(found, hashes[0]) for found in hashes)
    assert len(set(hashes[0].tolist())) > 10


def test_each_shape_is_measured(cuda_device: str) -> None:
    shapes = [LaunchShape(8, 32), LaunchShape(32, 128, True)]
    rates = measure(Workload(ROM), 256, cuda_device, shapes)
    assert set(rates) == set(shapes) and min(rates.values()) > 0
