"""Micro-ROMs and random ROMs: the CUDA kernel gives the CPU kernel's bits, which are compared with PyBoy elsewhere."""

from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import random_buttons

pytestmark = pytest.mark.gpu

MICRO = sorted((Path(__file__).resolve().parents[2] / "roms" / "micro").glob("*.gb"))
NUM_ENVS = 33
FIRST_SEED, SEEDS, FRAMES = 200_000, 60, 24


def assert_cuda_equals_cpu(rom: bytes, device: str, seed: int, steps: int, frames_per_step: int) -> None:
    """Each env's whole state after every eighth step."""
    release = min(8, frames_per_step)
    options = {"screen": "full", "frames_per_step": frames_per_step, "release_after_frames": release}
    cpu, cuda = (Emulator(rom, NUM_ENVS, name, **options) for name in ("cpu", device))
    buttons = torch.from_numpy(random_buttons(seed, steps, NUM_ENVS))
    for step in range(steps):
        cpu.step(buttons[step])
        cuda.step(buttons[step].to(device))
        if step % 8 == 7 or step == steps - 1:
            wrong = np.flatnonzero(cpu.state_hash() != cuda.state_hash())
            assert not len(wrong), f"seed {seed}: envs {wrong} differ after step {step}"


@pytest.mark.parametrize("path", MICRO, ids=lambda path: path.stem)
@pytest.mark.parametrize(("frames_per_step", "steps"), [(1, 40), (24, 10)])
def test_micro_roms(cuda_device: str, path: Path, frames_per_step: int, steps: int) -> None:
    assert_cuda_equals_cpu(path.read_bytes(), cuda_device, len(path.stem), steps, frames_per_step)


@pytest.mark.parametrize("frames_per_step", [1, 6])
def test_random_roms(cuda_device: str, frames_per_step: int) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        assert_cuda_equals_cpu(make_rom(seed).data, cuda_device, seed, FRAMES // frames_per_step, frames_per_step)
