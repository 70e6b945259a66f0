"""GBxCuLEEnv on a GPU: equal to the CPU, no allocation, CUDA graphs, late errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ActionError
from tests.support.envs import NUM_ACTIONS, Task, assert_same_in_a_graph, host, make_test_task, play, random_actions


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"), device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"stack_k": 2, "start_waits": 3, "sticky_actions": 0.2}, {"obs": "packed"}])
@pytest.mark.parametrize("io", ["numpy", "torch"])
@pytest.mark.usefixtures("cpu_kernels")
def test_cuda_equals_cpu(task: Task, cuda_device: str, io: str, options: dict[str, Any]) -> None:
    kwargs = {**task.kwargs, "num_envs": 64, "max_steps": 9, **options}
    if options:
        kwargs.pop("goal_dir")
    actions = random_actions(30, 64)
    expected = play(GBxCuLEEnv(**kwargs), actions)
    env = GBxCuLEEnv(**kwargs, device=cuda_device, io=io)
    env.reset(seed=3)
    for row, (observations, *parts) in zip(actions, expected[1:], strict=True):
        step = env.step(torch.from_numpy(row).to(cuda_device) if io == "torch" else row)
        np.testing.assert_array_equal(host(step[0]), observations)
        for part, other in zip(step[1:4], parts, strict=True):
            np.testing.assert_array_equal(host(part), other)


@pytest.mark.gpu
def test_cuda_steps_allocate_nothing_and_fit_in_a_graph(task: Task, cuda_device: str) -> None:
    kwargs = {**task.kwargs, "num_envs": 64, "max_steps": 9, "device": cuda_device, "io": "torch", "info_mode": "none"}
    assert_same_in_a_graph(GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs), random_actions(25, 64))


@pytest.mark.gpu
def test_cuda_finds_wrong_actions_with_the_infos(task: Task, cuda_device: str) -> None:
    env = GBxCuLEEnv(**task.kwargs, num_envs=2, device=cuda_device, io="torch", log_interval=2)
    env.reset()
    env.step(torch.full((2,), NUM_ACTIONS, device=cuda_device))
    with pytest.raises(ActionError, match=r"takes 0\.\.7"):
        env.step(torch.zeros(2, dtype=torch.int64, device=cuda_device))
