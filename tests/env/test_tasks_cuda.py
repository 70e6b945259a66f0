"""Tasks on a GPU: the same bits as on the CPU and with PyBoy, also from a CUDA graph; NaN is told when the infos are
read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from tests.env.test_tasks import LIMIT, ROM, SYMBOLS, Walk, given
from tests.support.envs import make_test_task, random_actions, recorded


@pytest.mark.gpu
@pytest.mark.usefixtures("cpu_kernels")
def test_a_task_gives_the_same_on_a_gpu_and_in_a_graph(cuda_device: str, tmp_path: Path) -> None:
    start = make_test_task(tmp_path).kwargs["start_state"]
    keywords: dict[str, Any] = {
        "start_state": start,
        "symbols": str(SYMBOLS),
        "task": Walk,
        "max_steps": LIMIT,
        "info_mode": "none",
    }
    keywords |= {"ram_obs": "quest_flags,player_map:3", "visited_obs": 4, "action_obs": 2}
    cpu, eager, captured = (
        GBxCuLEEnv(str(ROM), 16, device, io="torch", **keywords) for device in ("cpu", cuda_device, cuda_device)
    )
    pyboy = PyBoyPufferSingle(str(ROM), 16, io="torch", **keywords)
    rows = torch.from_numpy(random_actions(40, 16, seed=5)).long()
    current = torch.zeros(16, dtype=torch.int64, device=cuda_device)
    for env in (cpu, eager, captured, pyboy):
        env.reset(seed=1)
        for _ in range(3):
            env.step(torch.zeros(16, dtype=torch.int64, device=env.device))
    graph = recorded(captured, current)
    ends = 0
    for row in rows:
        current.copy_(row)
        graph.replay()
        cpu.step(row)
        pyboy.step(row)
        eager.step(current)
        for name in ("rewards", "terminals", "truncations", "observations"):
            wanted = getattr(cpu, name)
            assert torch.equal(getattr(pyboy, name), wanted), name
            assert torch.equal(getattr(eager, name).cpu(), wanted), name
            assert torch.equal(getattr(captured, name).cpu(), wanted), name
        ends += int(cpu.truncations.sum() + cpu.terminals.sum())
    assert ends > 16
    pyboy.close()
    infos = [env.read_infos() for env in (cpu, eager, captured)]
    assert {name for name in infos[0] if name.startswith("task/")} == {"task/column", "task/length"}
    assert infos[0]["task/length"] == infos[1]["task/length"] == infos[2]["task/length"]


@pytest.mark.gpu
@pytest.mark.parametrize("obs", ["shades", "averaged"])
def test_vectors_and_averages_reach_numpy(cuda_device: str, obs: str) -> None:
    keywords: dict[str, Any] = {"obs": obs, "ram_obs": "C0A0:4", "visited_obs": 2, "action_obs": 3, "max_steps": LIMIT}
    keywords |= {"action_codec": "NOOP,UP,DOWN/NOOP,A,START"}
    cpu, gpu = (GBxCuLEEnv(str(ROM), 8, device, **keywords) for device in ("cpu", cuda_device))
    np.testing.assert_array_equal(cpu.reset(seed=1)[0], gpu.reset(seed=1)[0])
    for row in np.random.default_rng(2).integers(0, 3, (12, 8, 2)):
        for part, other in zip(cpu.step(row)[:4], gpu.step(row)[:4], strict=True):
            np.testing.assert_array_equal(part, other)
        np.testing.assert_array_equal(cpu.final_observation, gpu.final_observation)


@pytest.mark.gpu
def test_nan_is_told_when_the_infos_are_read(cuda_device: str) -> None:
    task = given(reward=torch.tensor([0.0, float("nan")], device=cuda_device))
    env = GBxCuLEEnv(str(ROM), 2, cuda_device, io="torch", task=task, log_interval=3)
    env.reset()
    with pytest.raises(ConfigError, match="task Given: reward is NaN or infinite"):
        for _ in range(3):
            env.step(torch.zeros(2, dtype=torch.int64, device=cuda_device))
