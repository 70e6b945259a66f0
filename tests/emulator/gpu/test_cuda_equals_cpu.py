"""The CUDA kernel gives the CPU kernel's bits: 64 environments of each game, 200 random steps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.cpu_state_hashes import CHECKPOINTS, NUM_ENVS, STORED, load_stored, run_game, seed_of_game
from benchmarks.workload import GAMES, find_rom, random_buttons, seed_of, sha256
from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import Result, verify
from gbxcule_puffer.emulator import Emulator

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("shared")]
ENV_COUNTS = (1, 33, 4096)


def side_by_side(work: Callable[[str], Any], device: str) -> dict[str, Future[Any]]:
    """`work` of each game in a thread and on a CUDA stream of its own: few envs leave most of a GPU to others."""
    for num_envs in ENV_COUNTS:  # the kernels are compiled and loaded before
        Emulator(find_rom("libbet"), num_envs, device)

    def run(game: str) -> Any:
        with torch.cuda.stream(torch.cuda.Stream(device)):
            return work(game)

    with ThreadPoolExecutor(len(GAMES)) as executor:
        return {game: executor.submit(run, game) for game in GAMES}


@pytest.fixture(scope="module")
def hashes(cuda_device: str) -> dict[str, Future[dict[str, dict[str, str]]]]:
    return side_by_side(lambda game: run_game(game, cuda_device), cuda_device)


@pytest.fixture(scope="module")
def states_of_env_0(cuda_device: str) -> dict[str, Future[list[str]]]:
    step = CHECKPOINTS[1]

    def work(game: str) -> list[str]:
        found = [run_game(game, cuda_device, num_envs, step)[str(step)] for num_envs in ENV_COUNTS]
        return [hashes["states"].split()[0] for hashes in found]

    return side_by_side(work, cuda_device)


@pytest.fixture(scope="module")
def lockstep(cuda_device: str) -> dict[str, Future[Result]]:
    def work(game: str) -> Result:
        return verify(Verify(rom=str(find_rom(game)), steps=500, actions="random:1", device=cuda_device))

    return side_by_side(work, cuda_device)


@pytest.mark.parametrize("game", GAMES)
def test_cuda_gives_the_stored_cpu_hashes(hashes: dict[str, Future[dict[str, dict[str, str]]]], game: str) -> None:
    stored = load_stored()["games"][game]
    assert stored["rom_sha256"] == sha256(find_rom(game).read_bytes()), f"{STORED.name} is of another ROM"
    assert stored["action_seed"] == seed_of_game(game)
    found = hashes[game].result()
    for step in map(str, CHECKPOINTS):
        cpu, cuda = stored["hashes"][step], found[step]
        pairs = zip(cpu["states"].split(), cuda["states"].split(), strict=True)
        wrong = [env for env, (expected, got) in enumerate(pairs) if expected != got]
        pictures = "equal" if cuda["pictures"] == cpu["pictures"] else "different"
        assert not wrong, f"{game}: {len(wrong)} of {NUM_ENVS} envs differ at step {step}: {wrong}, pictures {pictures}"
        assert pictures == "equal", f"{game}: the pictures differ at step {step}"


@pytest.mark.parametrize("game", GAMES)
def test_env_0_does_not_depend_on_num_envs_on_cuda(states_of_env_0: dict[str, Future[list[str]]], game: str) -> None:
    """One environment, an odd number of them, and thousands, which take other lanes per warp: the CPU's state hash."""
    expected = load_stored()["games"][game]["hashes"][str(CHECKPOINTS[1])]["states"].split()[0]
    assert states_of_env_0[game].result() == [expected] * len(ENV_COUNTS)


@pytest.mark.parametrize("game", GAMES)
def test_500_steps_in_lockstep_with_pyboy(lockstep: dict[str, Future[Result]], game: str) -> None:
    result = lockstep[game].result()
    assert result.equal and len(result.trace) == 500, f"{game} differs at step {len(result.trace)}"


def test_screen_and_snapshot_stay_on_the_device(cuda_device: str) -> None:
    emulator = Emulator(find_rom("libbet"), 8, cuda_device)
    buttons = torch.from_numpy(random_buttons(seed_of("libbet"), 20, 8)).to(cuda_device)
    for step in range(10):
        emulator.step(buttons[step])
    snapshot = emulator.save()
    for step in range(10, 20):
        emulator.step(buttons[step])
    assert str(emulator.screen.device) == cuda_device and str(emulator.locked.device) == cuda_device
    played = np.asarray(emulator.state_hash()).copy()
    emulator.load(snapshot)
    for step in range(10, 20):
        emulator.step(buttons[step])
    assert np.array_equal(np.asarray(emulator.state_hash()), played)
