"""Games of folders on a GPU: the same numbers as on a CPU, also from a CUDA graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer import env_creator
from tests.games.folders import game_text, write
from tests.games.test_games import TERMS
from tests.support.envs import random_actions, recorded


@pytest.mark.gpu
@pytest.mark.usefixtures("cpu_kernels")
def test_terms_give_the_same_on_a_gpu_and_in_a_graph(cuda_device: str, tmp_path: Path) -> None:
    folder, n, steps = write(tmp_path, game_text(*TERMS), rom=True), 64, 80
    creator: Any = env_creator("gbxcule", game=folder, variant="many,original")
    devices = ("cpu", cuda_device, cuda_device)
    cpu, eager, captured = (creator(n, device, io="torch", info_mode="none") for device in devices)
    rows = torch.from_numpy(random_actions(steps, n, seed=2)).long()
    current = torch.zeros(n, dtype=torch.int64, device=cuda_device)
    for env in (cpu, eager, captured):
        env.reset(seed=4)
        for _ in range(3):
            env.step(torch.zeros(n, dtype=torch.int64, device=env.device))
    graph = recorded(captured, current)
    ends = 0
    for row in rows:
        current.copy_(row)
        graph.replay()
        cpu.step(row)
        eager.step(current)
        for name in ("rewards", "terminals", "truncations", "observations"):
            wanted = getattr(cpu, name)
            assert torch.equal(getattr(eager, name).cpu(), wanted), name
            assert torch.equal(getattr(captured, name).cpu(), wanted), name
        ends += int(cpu.truncations.sum() + cpu.terminals.sum())
    assert ends > n
    for name in ("variant", "level", "reached"):
        assert torch.equal(getattr(cpu.task, name), getattr(captured.task, name).cpu())
    infos = [env.read_infos() for env in (cpu, eager, captured)]
    assert infos[1] == pytest.approx(infos[0]) and infos[2] == pytest.approx(infos[0])
