"""pyboy_puffer_single: PyBoy gives the same observations, rewards and ends as the Warp emulator, element by element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.workload import find_rom
from gbxcule_puffer import env_creator
from gbxcule_puffer.errors import ConfigError, DeviceError
from tests.support.envs import Task, assert_same, make_test_task, play, random_actions

STEPS = 300
NUM_ENVS = 2


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


def both(actions: np.ndarray, **kwargs: Any) -> list[list[list[np.ndarray]]]:
    """What `gbxcule` and `pyboy_puffer_single` give for the same actions."""
    histories = []
    for name in ("gbxcule", "pyboy_puffer_single"):
        env = env_creator(name)(num_envs=actions.shape[1], **kwargs)
        histories.append(play(env, actions))
        env.close()
    return histories


def test_homeward_with_its_goal(task: Task) -> None:
    """Random play with time limits, then the solution: all three kinds of steps are there."""
    actions = random_actions(STEPS, NUM_ENVS)
    # From a multiple of max_steps on env 0 plays the solution.
    actions[48 : 48 + len(task.solution), 0] = task.solution
    first, second = both(actions, **task.kwargs, max_steps=48, stack_k=1)
    assert_same(first, second)
    terminals = np.stack([step[2] for step in first[1:]])
    truncations = np.stack([step[3] for step in first[1:]])
    assert terminals.any() and truncations.any() and not (terminals & truncations).any()


@pytest.mark.parametrize("obs", ["packed", "full"])
def test_another_game_with_stack_waits_and_sticky_actions(obs: str, shared: Path) -> None:
    del shared
    options = {"obs": obs, "stack_k": 3, "start_waits": 3, "sticky_actions": 0.25, "max_steps": 40, "seed": 5}
    first, second = both(random_actions(STEPS // 3, NUM_ENVS), rom=find_rom("tobu"), **options)
    assert_same(first, second)
    assert len({step[0].tobytes() for step in first}) > 20


def test_infos_and_spaces_are_those_of_gbxcule(task: Task) -> None:
    envs = [env_creator(name)(**task.kwargs, num_envs=2, log_interval=5) for name in ("gbxcule", "pyboy_puffer_single")]
    assert envs[0].single_observation_space == envs[1].single_observation_space
    assert envs[0].single_action_space == envs[1].single_action_space
    for env in envs:
        env.reset()
    for row in random_actions(10, 2):
        first, second = (env.step(row)[4] for env in envs)
        assert first == second
    for env in envs:
        env.close()


def test_introspection(task: Task) -> None:
    envs = [env_creator(name)(**task.kwargs, num_envs=2) for name in ("gbxcule", "pyboy_puffer_single")]
    for env in envs:
        env.reset()
        for row in random_actions(4, 2):
            env.step(row)
    emulator, oracle = envs[0].emulator, envs[1]
    expected, found = emulator.registers(1), oracle.registers(1)
    names = ("a", "f", "b", "c", "d", "e", "h", "l", "sp", "pc", "ime", "ly", "stat", "rom_high", "cycles_low")
    assert [found[name] for name in names] == [expected[name] for name in names]
    assert np.array_equal(oracle.read_memory(1, 0xC000, 0x2000), emulator.read_memory(1, 0xC000, 0x2000))
    assert len(oracle.cartridge_state(1)["ram"]) == 0x2000 * emulator.cartridge.ram_banks
    for env in envs:
        env.close()


def test_what_pyboy_cannot_do_is_said(task: Task) -> None:
    make = env_creator("pyboy_puffer_single")
    with pytest.raises(DeviceError, match="CPU only"):
        make(**task.kwargs, device="cuda")
    with pytest.raises(ConfigError, match="io 'jax' is unknown"):
        make(**task.kwargs, io="jax")
