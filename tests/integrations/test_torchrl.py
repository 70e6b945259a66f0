"""TorchRL: its own spec check, and the same numbers as the env's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("torchrl", reason="needs TorchRL: pip install torchrl")

from torchrl.envs.utils import check_env_specs  # pyright: ignore[reportMissingImports]

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.integrations.torchrl import GameBoyTorchRL
from gbxcule_puffer.layout import ROMS
from tests.support.envs import Task, make_test_task


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"obs": "packed", "stack_k": 2},
        {"action_codec": "multi_discrete"},
        {"ram_obs": "C0A1,C0A2", "action_obs": 2},
    ],
    ids=["pictures", "packed", "choices", "vectors"],
)
def test_its_checker_is_content(options: dict[str, Any]) -> None:
    env = GameBoyTorchRL(rom=ROMS / "homeward.gb", num_envs=3, max_steps=2, **options)
    check_env_specs(env, seed=1)
    env.close()


def test_a_rollout_is_the_env_s(task: Task) -> None:
    """Last observations where episodes end, first ones after them; no episode is begun twice."""
    options = {**task.kwargs, "num_envs": 3, "max_steps": 4, "start_waits": 9}
    env = GameBoyTorchRL(**options)
    env.set_seed(5)
    seed = int(torch.randint(2**31 - 1, (), generator=torch.Generator().manual_seed(5)))
    torch.manual_seed(0)
    played = env.rollout(10, break_when_any_done=False)
    plain = GBxCuLEEnv(**options, io="torch")
    observations, _ = plain.reset(seed=seed)
    for step in range(10):
        assert torch.equal(played["pixels"][:, step], observations)
        observations, rewards, terminals, truncations, _ = plain.step(played["action"][:, step])
        after = played["next"][:, step]
        assert torch.equal(after["pixels"], plain.final_observation)
        assert torch.equal(after["reward"][:, 0], rewards)
        assert torch.equal(after["terminated"][:, 0], terminals)
        assert torch.equal(after["truncated"][:, 0], truncations)
    assert played["next", "done"].any()


def test_one_env_is_reset_alone(task: Task, tmp_path: Path) -> None:
    env = GameBoyTorchRL(**task.kwargs, num_envs=2, max_steps=50)
    first = env.reset()
    state = first
    for _ in range(8):
        state = env.rand_step(state)["next"]
    mask = torch.tensor([[True], [False]])
    state.set("_reset", mask)
    again = env.reset(state)
    assert torch.equal(again["pixels"][0], first["pixels"][0])
    assert torch.equal(env.env.observations, again["pixels"])
