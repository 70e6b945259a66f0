"""The same actions give the same bits for every num_envs, neighbour and thread count."""

import threading

import numpy as np
import pytest
import torch

from benchmarks.workload import find_rom, random_buttons, seed_of
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv

STEPS = 30


def hashes_of_env_0(game: str, num_envs: int, num_threads: int | None = None) -> list[int]:
    """State hash of environment 0 after each step; the neighbours get other buttons."""
    emulator = Emulator(find_rom(game), num_envs, "cpu", num_threads=num_threads)
    buttons = random_buttons(seed_of(game), STEPS, num_envs)
    hashes = []
    for step in range(STEPS):
        emulator.step(torch.from_numpy(buttons[step]))
        hashes.append(int(np.asarray(emulator.state_hash())[0]))
    return hashes


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("game", ["shocklobster", "libbet"])
def test_env_0_does_not_depend_on_num_envs(game: str) -> None:
    alone = hashes_of_env_0(game, 1)
    assert len(set(alone)) == STEPS, "the hash must change with the state"
    assert hashes_of_env_0(game, 33) == alone
    assert hashes_of_env_0(game, 33, num_threads=1) == alone


@pytest.mark.usefixtures("shared")
def test_the_hash_tells_environments_apart() -> None:
    """Equal buttons give equal hashes in every environment; an environment that plays otherwise has another one."""
    emulator = Emulator(find_rom("shocklobster"), 4, "cpu")
    streams = random_buttons(seed_of("shocklobster"), STEPS, 2)
    for step in range(STEPS):
        emulator.step(torch.from_numpy(streams[step, [0, 0, 0, 1]]))
    first, second, third, other = (int(value) for value in np.asarray(emulator.state_hash()))
    assert first == second == third
    assert other != first


def test_what_fails_in_a_thread_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def launch(self) -> None:
            raise RuntimeError("no launch")

    emulator = Emulator("homeward", 2, num_threads=2)
    key = (emulator.frames_per_step, emulator.release_after_frames)
    monkeypatch.setitem(emulator._cpu_steps._commands, key, [Failing(), Failing()])
    with pytest.raises(RuntimeError, match="no launch"):
        emulator.step(torch.zeros(2, dtype=torch.uint8))
    emulator.close()


def test_the_threads_of_an_env_end_with_it() -> None:
    """Though somebody still holds its memory."""
    before = threading.active_count()
    env = GBxCuLEEnv("homeward", 4, io="torch", num_threads=4)
    env.reset()
    ram = env.ram
    env.step(torch.zeros(4, dtype=torch.int64))
    assert threading.active_count() > before
    env.close()
    assert threading.active_count() == before and ram.num_envs == 4
