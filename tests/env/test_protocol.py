"""Every environment behind one interface: EnvLike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.toy import ToyEnv

ROM = Path(__file__).parents[2] / "roms" / "homeward.gb"


def gbxcule() -> EnvLike:
    return GBxCuLEEnv(ROM, 2, io="torch")


def pyboy() -> EnvLike:
    return PyBoyPufferVec(ROM, 2, backend="serial", io="torch")


def toy() -> EnvLike:
    return ToyEnv(2)


@pytest.mark.parametrize("make", [gbxcule, pyboy, toy])
def test_every_name_of_the_protocol_is_there(make: Callable[[], EnvLike]) -> None:
    env = make()
    found, infos = env.reset(seed=1)
    assert found is env.observations and infos == []
    observations, rewards, terminals, truncations, _ = env.step(torch.zeros(2, dtype=torch.int64))
    assert [rewards is env.rewards, terminals is env.terminals, truncations is env.truncations] == [True] * 3
    assert observations.shape == env.final_observation.shape == (2, *env.layout.shape)
    masks = (env.final_mask, terminals, truncations, env.failures)
    assert all(mask.shape == (2,) and mask.dtype == torch.bool for mask in masks)
    assert rewards.dtype == torch.float32 and env.stage.dtype == torch.int64 and env.stage.shape == (2,)
    assert env.taken_actions.tolist() == [0, 0]
    assert (env.symbols is None) == (make is toy), "those beside the ROM"
    assert (env.cartridge is None) == (make is toy)
    assert torch.equal(env.episode_returns, torch.where(env.final_mask, 0, rewards))
    assert env.pictures().shape == env.final_pictures(slice(0, 2)).shape
    assert (env.emulator is None) == (make is not gbxcule) and env.launches is None
    assert env.has_goal == env.has_success == (make is toy) and not env.statistics() and not env.reward_ranges()
    assert len(env.stages) == (make is not toy)
    assert env.read_infos()["episodes"] == 0
    saved = env.state_dict()
    env.step(torch.ones(2, dtype=torch.int64))
    after = env.observations.clone()
    env.load_state_dict(saved)
    env.step(torch.ones(2, dtype=torch.int64))
    assert torch.equal(after, env.observations)
    env.close()


def test_tasks_of_workers_know_the_symbols_beside_the_rom() -> None:
    errand = f"{ROM.parent / 'homeward/errand.py'}:Errand"
    for env in (GBxCuLEEnv(ROM, 2, task=errand), PyBoyPufferVec(ROM, 2, backend="serial", task=errand)):
        env.reset()
        assert env.step(np.zeros(2, int))[1].shape == (2,)
        env.close()
