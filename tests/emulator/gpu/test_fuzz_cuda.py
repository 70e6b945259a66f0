"""Micro-ROMs, random ROMs and single instructions on a GPU: both kernels beside PyBoy, thousands of envs at once."""

from pathlib import Path

import numpy as np
import pytest

from gbxcule_puffer.emulator.probes.single_step import run_cases
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import SCHEDULES, compare, random_buttons

pytestmark = pytest.mark.gpu

MICRO = sorted((Path(__file__).resolve().parents[3] / "roms" / "micro").glob("*.gb"))
FIRST_SEED, SEEDS, FRAMES = 200_000, 40, 40
HALT, STOP = 0x76, 0x10  # their PC and M-cycles are a convention of the emulator that made the cases


@pytest.mark.parametrize("path", MICRO, ids=lambda path: path.stem)
@pytest.mark.parametrize(("frames_per_step", "steps"), [(1, 60), (24, 12)])
def test_micro_rom_stays_in_lockstep_with_pyboy(cuda_device: str, path: Path, frames_per_step: int, steps: int) -> None:
    buttons = random_buttons(len(path.stem), steps, 2)
    result = compare(path.read_bytes(), buttons, 1, frames_per_step, device=cuda_device)
    assert not result.difference, f"{path.stem}, step {result.frames}:\n" + "\n".join(result.difference)
    assert not result.locked and result.frames == steps


def test_random_roms_run_as_on_pyboy(cuda_device: str) -> None:
    instructions = 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        frames_per_step = SCHEDULES[seed % len(SCHEDULES)]
        buttons = random_buttons(seed, -(-FRAMES // frames_per_step), 3)
        result = compare(
            make_rom(seed).data, buttons, max(1, 8 // frames_per_step), frames_per_step, device=cuda_device
        )
        assert not result.difference, f"seed {seed}:\n" + "\n".join(result.difference)
        instructions += result.instructions
    assert instructions > 1_000_000


@pytest.mark.parametrize("seed", range(FIRST_SEED + SEEDS, FIRST_SEED + SEEDS + 4))
def test_thousands_of_envs_have_one_state_in_both_kernels(cuda_device: str, seed: int) -> None:
    """Each env's whole state: what another env wrote into it would show. Two of them have a PyBoy."""
    result = compare(make_rom(seed).data, random_buttons(seed, 12, 4096), 6, device=cuda_device, num_oracles=2)
    assert not result.difference, "\n".join(result.difference)


def test_single_instructions(cuda_device: str, shared: Path) -> None:
    with np.load(shared / "conformance" / "sm83" / "cases.npz") as file:
        cases = {name: file[name] for name in file.files}
    names = ("r0", "sp0", "pc0", "ime0", "addr", "v0", "nram")
    found = run_cases(*(cases[name] for name in names), device=cuda_device)
    used = np.arange(5) < cases["nram"][:, None]
    right = (found["r1"] == cases["r1"]).all(axis=1) & (found["sp1"] == cases["sp1"])
    right &= ((found["v1"] == cases["v1"]) | ~used).all(axis=1)
    timing = (found["pc1"] == cases["pc1"]) & (found["ime1"] == cases["ime1"]) & (found["m_cycles"] == cases["mcycles"])
    right &= timing | np.isin(cases["opcode"], (HALT, STOP))
    assert right.all() and len(right) == 12_000
