"""What GBxCuLEEnv refuses: actions, options, goals and states that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pufferlib.vector
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ActionError, ConfigError, DeviceError, GoalError, StateError
from tests.support.envs import NUM_ACTIONS, Task, make_test_task


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.zeros(2, np.float32), "dtype float32"),
        (np.zeros(2, bool), "dtype bool"),
        (np.zeros(3, np.int32), r"shape \(3,\): give \(2,\)"),
        (np.zeros((2, 1), np.int32), r"shape \(2, 1\)"),
        (np.array([0, NUM_ACTIONS]), r"takes 0\.\.7"),
        (np.array([0, -1]), r"takes 0\.\.7"),
        (np.array([0, 2**64 - 1], np.uint64), r"takes 0\.\.7"),
        (torch.zeros(2, dtype=torch.int32), "io='numpy'"),
        ([0, 0], "io='numpy'"),
    ],
)
def test_wrong_actions(task: Task, actions: Any, message: str) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2)
    env.reset()
    hashes = env.emulator.state_hash()
    with pytest.raises(ActionError, match=message):
        env.step(actions)
    assert (env.emulator.state_hash() == hashes).all(), "nothing has moved"


def test_wrong_torch_actions(task: Task) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, io="torch")
    env.reset()
    for actions, message in (
        (np.zeros(2, np.int32), "io='torch'"),
        (torch.zeros(2), "dtype torch.float32"),
        (torch.zeros(2, dtype=torch.int64, device="meta"), "on meta, the env on cpu"),
        (torch.full((2,), NUM_ACTIONS), r"takes 0\.\.7"),
        (torch.full((2,), 2**64 - 1, dtype=torch.uint64), r"takes 0\.\.7"),
    ):
        with pytest.raises(ActionError, match=message):
            env.step(actions)


def test_every_type_of_integers_is_taken(task: Task) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, io="torch")
    env.reset()
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        env.step(torch.tensor([3, 5], dtype=getattr(torch, name)))
        assert env.taken_actions.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames_per_step": 20}, "made for frames_per_step 24, the environment has 20"),
        ({"action_codec": "pokemonred_puffer_v0"}, "made for action_codec"),
        ({"obs": "packed"}, "made for obs 'shades'"),
    ],
)
def test_a_goal_of_another_configuration(task: Task, options: dict[str, Any], message: str) -> None:
    with pytest.raises(GoalError, match=message):
        GBxCuLEEnv(**task.kwargs, **options)


def test_a_goal_fits_any_number_of_pictures(task: Task) -> None:
    rewards = []
    for stack_k in (1, 3):
        env = GBxCuLEEnv(**task.kwargs, num_envs=2, stack_k=stack_k)
        env.reset(seed=1)
        rewards.append([env.step(np.array([i % NUM_ACTIONS, 4]))[1].copy() for i in range(12)])
    np.testing.assert_array_equal(rewards[0], rewards[1])
    assert len(set(map(float, np.ravel(rewards[0])))) > 2


def test_step_needs_a_reset(task: Task) -> None:
    for io, actions in (("numpy", np.zeros(1, int)), ("torch", torch.zeros(1, dtype=torch.int64))):
        with pytest.raises(ConfigError, match="call reset first"):
            GBxCuLEEnv(task.kwargs["rom"], io=io).step(actions)


@pytest.mark.parametrize("seed", ["x", 1.5, -(2**70)])
def test_a_seed_that_is_none(task: Task, seed: Any) -> None:
    env = GBxCuLEEnv(task.kwargs["rom"])
    with pytest.raises(ConfigError, match=r"seed .* must be"):
        env.reset(seed=seed)
    assert env.reset(seed=-3)[1] == []


def test_a_start_state_of_another_rom(task: Task) -> None:
    rom = bytearray(Path(task.kwargs["rom"]).read_bytes())
    rom[0x7FFF] ^= 1
    with pytest.raises(StateError, match="another ROM"):
        GBxCuLEEnv(bytes(rom), start_state=task.kwargs["start_state"])


def test_unknown_environments_are_named() -> None:
    with pytest.raises(ConfigError, match=r"'my.gb' is unknown: .*; a ROM is the option rom$"):
        env_creator("my.gb")
    with pytest.raises(ConfigError, match="'pong' is unknown: give one of gbxcule"):
        env_creator("pong")


def test_vector_make_tells_how_to_have_several_envs() -> None:
    """pufferlib-core raises an exception that only all of PufferLib defines."""
    with pytest.raises(RuntimeError, match="use Serial or Multiprocessing instead"):
        pufferlib.vector.make(env_creator("gbxcule"), num_envs=2, env_kwargs={"rom": "homeward"})


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_an_env_that_was_closed_says_so(task: Task, io: str) -> None:
    env = GBxCuLEEnv(task.kwargs["rom"], 2, io=io)
    env.reset()
    env.close()
    env.close()
    for use in (env.read_infos, env.state_dict, env.reset, lambda: env.distance, lambda: env.final_mask):
        with pytest.raises(ConfigError, match="this GBxCuLEEnv is closed: make another one"):
            use()


@pytest.mark.parametrize("io", ["numpy", "torch"])
def test_more_envs_than_fit_into_memory(task: Task, io: str) -> None:
    with pytest.raises(
        DeviceError, match=r"^num_envs 1,000,000,000 needs .* GiB .*cpu, of which .* is free: use fewer"
    ):
        GBxCuLEEnv(**task.kwargs, num_envs=1_000_000_000, io=io)


def test_more_slots_of_an_archive_than_fit_into_memory(task: Task) -> None:
    """The system would end the process as soon as they are filled."""
    with pytest.raises(DeviceError, match=r"archive_slots 16,777,216 needs [\d.]+ GiB of memory on cpu, of which"):
        GBxCuLEEnv(task.kwargs["rom"], 2, io="torch", archive_slots=2**24)


def test_larger_observations_than_fit_into_memory(task: Task) -> None:
    with pytest.raises(DeviceError, match=r"num_envs 20,000 needs [\d.]+ GiB of memory .* smaller observations"):
        GBxCuLEEnv(task.kwargs["rom"], 20_000, io="torch", stack_k=256, obs="rgb_full")
