"""A Game Boy Color on a GPU: both kernels have the CPU's bits, and those of PyBoy."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu.schedule import launch_shape
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import LANES, LaunchShape
from tests.conformance.test_game_boy_color import games, picture_rom
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import compare_seed, random_buttons

pytestmark = pytest.mark.gpu

FIRST_SEED, SEEDS = 300_000, 24
GAME_STEPS = 60


def assert_cuda_equals_cpu(rom: Path | bytes, device: str, buttons: np.ndarray, autotune: bool = True) -> None:
    """The same state, memory, shades and colours after each step of each env."""
    num_envs = buttons.shape[1]
    options = {"model": "cgb", "screen": "full", "frames_per_step": 8, "release_after_frames": 4}
    cpu, cuda = Emulator(rom, num_envs, "cpu", **options), Emulator(rom, num_envs, device, autotune=autotune, **options)
    assert cpu.kernel == "interpreter" and cuda.kernel == "datapath"
    for step, row in enumerate(torch.from_numpy(buttons)):
        cpu.step(row)
        cuda.step(row.to(device))
        wrong = np.flatnonzero(cpu.state_hash() != cuda.state_hash())
        assert not len(wrong), f"step {step}: {len(wrong)} of {num_envs} envs differ: {wrong[:8].tolist()}"
    cpu.close()
    cuda.close()


@pytest.mark.usefixtures("shared", "cpu_kernels")
@pytest.mark.parametrize("path", games(), ids=lambda path: path.stem)
def test_games(cuda_device: str, path: Path) -> None:
    assert_cuda_equals_cpu(path, cuda_device, random_buttons(zlib.crc32(path.stem.encode()), GAME_STEPS, 40))


@pytest.mark.parametrize("flag", [0xC0, 0x00])
@pytest.mark.usefixtures("cpu_kernels")
def test_pictures(cuda_device: str, flag: int) -> None:
    for seed in range(6):
        assert_cuda_equals_cpu(picture_rom(seed, flag), cuda_device, random_buttons(seed, 4, 8))


@pytest.mark.usefixtures("cpu_kernels")
def test_random_programs(cuda_device: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        assert_cuda_equals_cpu(make_rom(seed, "color").data, cuda_device, random_buttons(seed, 5, 33))


@pytest.mark.parametrize("seed", [0, 7, 106])
def test_random_programs_beside_pyboy(cuda_device: str, seed: int) -> None:
    """Both kernels of the GPU."""
    result = compare_seed(make_rom(seed, "color").data, seed, 40, device=cuda_device)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.usefixtures("cpu_kernels")
def test_lanes(cuda_device: str, monkeypatch: pytest.MonkeyPatch, lanes: int) -> None:
    """Any number of a warp's lanes, which run envs in another order."""
    monkeypatch.setattr(launch_shape, "best", lambda *_: LaunchShape(lanes, 32, grouped=True))
    for seed in (FIRST_SEED, FIRST_SEED + 1):
        assert_cuda_equals_cpu(
            make_rom(seed, "color").data, cuda_device, random_buttons(seed, 8, 1_000), autotune=False
        )
