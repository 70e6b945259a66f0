"""The CUDA kernel gives the CPU kernel's bits: 64 environments of each game, 200 random steps."""

import numpy as np
import pytest
import torch

from benchmarks.cpu_state_hashes import CHECKPOINTS, NUM_ENVS, STORED, load_stored, run_game, seed_of_game
from benchmarks.workload import GAMES, find_rom, random_buttons, seed_of, sha256
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.verify import Options, verify

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("shared")]


@pytest.mark.parametrize("game", GAMES)
def test_cuda_gives_the_stored_cpu_hashes(cuda_device: str, game: str) -> None:
    stored = load_stored()["games"][game]
    assert stored["rom_sha256"] == sha256(find_rom(game).read_bytes()), f"{STORED.name} is of another ROM"
    assert stored["action_seed"] == seed_of_game(game)
    found = run_game(game, cuda_device)
    for step in map(str, CHECKPOINTS):
        cpu, cuda = stored["hashes"][step], found[step]
        pairs = zip(cpu["states"].split(), cuda["states"].split(), strict=True)
        wrong = [env for env, (expected, got) in enumerate(pairs) if expected != got]
        pictures = "equal" if cuda["pictures"] == cpu["pictures"] else "different"
        assert not wrong, f"{game}: {len(wrong)} of {NUM_ENVS} envs differ at step {step}: {wrong}, pictures {pictures}"
        assert pictures == "equal", f"{game}: the pictures differ at step {step}"


@pytest.mark.parametrize("game", GAMES)
def test_env_0_does_not_depend_on_num_envs_on_cuda(cuda_device: str, game: str) -> None:
    """One environment, an odd number of them, and thousands, which take other lanes per warp: the CPU's state hash."""
    step = CHECKPOINTS[1]
    expected = load_stored()["games"][game]["hashes"][str(step)]["states"].split()[0]
    for num_envs in (1, 33, 4096):
        found = run_game(game, cuda_device, num_envs, step)[str(step)]["states"].split()
        assert found[0] == expected, f"{num_envs} envs"


@pytest.mark.parametrize("game", GAMES)
def test_500_steps_in_lockstep_with_pyboy(cuda_device: str, game: str) -> None:
    result = verify(Options(rom=str(find_rom(game)), steps=500, actions="random:1", device=cuda_device))
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
