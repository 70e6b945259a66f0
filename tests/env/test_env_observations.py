"""GBxCuLEEnv's observations: stack, packing, resolution, NumPy and torch io."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from tests.support.envs import Task, assert_same, make_test_task, play, random_actions


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


def test_stack_is_newest_last_and_refilled_at_reset(task: Task) -> None:
    rom, actions = task.kwargs["rom"], random_actions(7, 2)
    single = play(GBxCuLEEnv(rom, num_envs=2, max_steps=4), actions)
    stacked_env = GBxCuLEEnv(rom, num_envs=2, max_steps=4, stack_k=3)
    stacked = play(stacked_env, actions)
    frames: list[np.ndarray] = []
    for step in range(8):
        picture = single[step][0][:, 0]
        frames = [picture] * 3 if step in (0, 4) else [*frames[1:], picture]
        np.testing.assert_array_equal(stacked[step][0], np.stack(frames, 1))


def test_final_observation_is_the_stack_before_the_reset(task: Task) -> None:
    rom, actions = task.kwargs["rom"], random_actions(4, 2)
    ended = GBxCuLEEnv(rom, num_envs=2, max_steps=4, stack_k=2)
    play(ended, actions)
    goes_on = play(GBxCuLEEnv(rom, num_envs=2, max_steps=99, stack_k=2), actions)
    assert ended.final_mask.all()
    np.testing.assert_array_equal(ended.final_observation, goes_on[-1][0])


@pytest.mark.parametrize("stack_k", [1, 2])
def test_packed_and_full_show_the_same_pictures(task: Task, stack_k: int) -> None:
    rom, actions = task.kwargs["rom"], random_actions(6, 2)
    shades, packed, full = (
        play(GBxCuLEEnv(rom, num_envs=2, max_steps=4, obs=obs, stack_k=stack_k), actions)
        for obs in ("shades", "packed", "full")
    )
    assert packed[0][0].shape == (2, stack_k, 72, 20)
    for step in range(7):
        pixels = packed[step][0][..., None] >> np.array([6, 4, 2, 0]) & 3
        np.testing.assert_array_equal(pixels.reshape(2, stack_k, 72, 80), shades[step][0])
        np.testing.assert_array_equal(full[step][0][..., ::2, ::2], shades[step][0])


@pytest.mark.parametrize("options", [{}, {"stack_k": 2}, {"obs": "packed"}, {"obs": "full"}])
def test_torch_io_equals_numpy_io(task: Task, options: dict[str, Any]) -> None:
    actions = random_actions(9, 3)
    rom = task.kwargs["rom"]
    numpy_env = GBxCuLEEnv(rom, num_envs=3, max_steps=4, **options)
    torch_env = GBxCuLEEnv(rom, num_envs=3, max_steps=4, io="torch", **options)
    assert_same(play(torch_env, actions), play(numpy_env, actions))
    assert isinstance(torch_env.final_observation, torch.Tensor)
    np.testing.assert_array_equal(torch_env.final_observation.numpy(), numpy_env.final_observation)


def test_torch_io_is_a_view_of_the_screen(task: Task) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, io="torch")
    observations, _ = env.reset()
    assert observations.data_ptr() == env.emulator.screen.data_ptr()
    stepped = env.step(torch.zeros(2, dtype=torch.int64))
    assert stepped[0] is observations
    assert env.rewards is stepped[1]
