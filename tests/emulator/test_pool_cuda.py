"""Stages, curriculum and the archive on a GPU: equal to the CPU, nothing allocated, inside a CUDA graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from tests.support.envs import assert_same_in_a_graph, host, make_test_stages, random_actions

OPTIONS = {
    "num_envs": 96, "curriculum": "progress", "chain": True, "archive_slots": 64, "archive_share": 0.5,
    "visit_bonus": 0.2, "sticky_actions": 0.2, "start_waits": 2, "reward_scale": 0.5,
}  # fmt: skip


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return make_test_stages(tmp_path_factory.mktemp("stages"), device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"stack_k": 2, "visit_key": "ram:C0A0,C0A1,C0A2"}], ids=["picture", "ram"])
@pytest.mark.usefixtures("cpu_kernels")
def test_cuda_equals_cpu(stages: dict[str, Any], cuda_device: str, options: dict[str, Any]) -> None:
    if "stack_k" in options:  # and without a goal
        stages = {"rom": stages["rom"]}
        options = {**options, "curriculum": "uniform", "max_steps": 11}
    kwargs = {**stages, **OPTIONS, **options, "log_interval": 20}
    cpu, cuda = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs, device=cuda_device, io="torch")
    cpu.reset(seed=3)
    cuda.reset(seed=3)
    for row in random_actions(300, 96):
        expected, step = cpu.step(row), cuda.step(torch.from_numpy(row).to(cuda_device))
        for part, other in zip(step[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(host(part), other)
        for info, other in zip(step[4], expected[4], strict=True):
            means = ("episode_return", "visits/bonus")  # sums of floats, in an order of the device's own
            assert {k: v for k, v in info.items() if k not in means} == {
                k: v for k, v in other.items() if k not in means
            }
    assert (cpu.emulator.state_hash() == cuda.emulator.state_hash()).all()
    assert cpu.slot_statistics() == cuda.slot_statistics()


@pytest.mark.gpu
def test_everything_fits_in_a_graph_and_allocates_nothing(stages: dict[str, Any], cuda_device: str) -> None:
    kwargs = {**stages, **OPTIONS, "device": cuda_device, "io": "torch", "info_mode": "none"}
    eager, captured = GBxCuLEEnv(**kwargs), GBxCuLEEnv(**kwargs)
    assert_same_in_a_graph(eager, captured, random_actions(300, 96))
    assert captured.slot_statistics() == eager.slot_statistics()
