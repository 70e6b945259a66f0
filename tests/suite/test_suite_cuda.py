"""The suite on a GPU: the same numbers as on a CPU, and learning with acting and stepping in a CUDA graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.training import suite
from cleanrl_style import pqn
from gbxcule_puffer import env_creator
from gbxcule_puffer.suite import GAMES
from tests.support.envs import random_actions

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", GAMES)
def test_the_same_as_on_a_cpu(name: str, cuda_device: str) -> None:
    n, steps = 32, 60
    envs = [
        env_creator(f"gbxcule_{name}-64")(n, device, io="torch", info_mode="stats", max_steps=40, log_interval=steps)
        for device in ("cpu", cuda_device)
    ]
    for env in envs:
        env.reset(seed=4)
    for row in torch.from_numpy(random_actions(steps, n, seed=2)).long():
        mine, theirs = (env.step(row.to(env.device)) for env in envs)
        for part, other in zip(mine[:4], theirs[:4], strict=True):
            assert torch.equal(part, other.cpu())
        assert torch.equal(envs[0].failures, envs[1].failures.cpu())
        assert torch.equal(envs[0].task.level, envs[1].task.level.cpu())
    assert mine[4][0] == pytest.approx(theirs[4][0])


@pytest.mark.parametrize("name", GAMES)
def test_a_game_is_learned_in_a_graph(name: str, cuda_device: str, tmp_path: Path) -> None:
    words = (
        f"--env gbxcule_{name}-64 --device {cuda_device} --num-envs 64 --num-steps 8 --num-minibatches 4 --cuda-graph"
    )
    words += " --max-seconds 5 --max-steps 32 --eval-envs 1 --eval-episodes 1 --eval-every-steps 1000000000"
    assert pqn.main([*words.split(), "--run-dir", str(tmp_path / "run")]) == 0
    found = suite.read_run(tmp_path / "run")
    assert found["steps"] >= 5 * 64 * 8 and found["curve"]
