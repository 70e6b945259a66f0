"""When episodes end, and what is counted of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task
from tests.support.envs import STAGE

ROM = STAGE.parent.parent / "homeward.gb"


class WonOrLost(Task):
    """Ends each episode after three steps, with an even action as a success, else for good."""

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        won, ends = info.actions % 2 == 0, info.length == 3
        return StepResult(won.float(), terminal=ends & won, failure=ends & ~won)


def test_a_lost_game_is_no_success_of_the_start_it_began_at() -> None:
    env = GBxCuLEEnv(ROM, num_envs=4, task=WonOrLost, log_interval=3)
    env.reset()
    for _ in range(3):
        _, _, terminals, _, infos = env.step(np.array([1, 2, 3, 5]))
    assert terminals.all() and env.failures.tolist() == [True, False, True, True]
    assert env.slot_statistics() == [{"stage": "task", "episodes": 4, "successes": 1, "steps": 12}]
    assert infos[0]["success"] == 0.25


def test_staggered_episodes_end_one_after_another() -> None:
    limit, num_envs = 8, 64
    kwargs: dict[str, Any] = {"rom": str(ROM), "num_envs": num_envs, "max_steps": limit, "stagger": True}
    kwargs |= {"frames_per_step": 1, "release_after_frames": 1}
    env, idle = GBxCuLEEnv(**kwargs), np.zeros(num_envs, int)
    found = []
    for seed in (3, 3, 4):
        env.reset(seed=seed)
        found.append(np.stack([env.step(idle)[3].copy() for _ in range(3 * limit)]))
    ends = found[0]
    assert (ends[:limit].sum(0) == 1).all() and ends[:limit].any(1).all(), "the first end at all of the steps"
    for before, after in ((0, limit), (limit, 2 * limit)):
        np.testing.assert_array_equal(ends[before : before + limit], ends[after : after + limit])
    np.testing.assert_array_equal(ends, found[1])
    assert (ends != found[2]).any(), "another seed, other steps"
    few = {**kwargs, "num_envs": 4}
    pyboy = PyBoyPufferVec(**few, backend="serial")
    pyboy.reset(seed=3)
    np.testing.assert_array_equal(np.stack([pyboy.step(idle[:4])[3].copy() for _ in range(limit)]), ends[:limit, :4])
    pyboy.close()
