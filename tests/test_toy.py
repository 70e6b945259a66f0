"""The toy environment keeps GBxCuLEEnv's promises: rewards, ends, autoreset, stacks, seeds, saved states, errors."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from gymnasium.spaces import Discrete

from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.errors import ActionError, ConfigError, StateError
from gbxcule_puffer.toy import CELL, OPTIONS, ToyEnv

WALKER, GOAL = 3, 1


def find(pictures: torch.Tensor, shade: int) -> torch.Tensor:
    """(row, column) of the cell of that shade in each newest picture, (num_envs, 2), -1 where there is none."""
    corners = pictures[:, -1, ::CELL, ::CELL] == shade
    flat = corners.flatten(1)
    place = flat.int().argmax(1)
    cells = torch.stack([place // corners.shape[2], place % corners.shape[2]], 1)
    return torch.where(flat.any(1, keepdim=True), cells, -1)


def actions_to_goal(env: ToyEnv) -> torch.Tensor:
    """One step towards the goal in every env, read off the picture."""
    rows, columns = (find(env.observations, GOAL) - find(env.observations, WALKER)).unbind(1)
    number = {name: env.codec.actions.index(name) for name in ("UP", "DOWN", "LEFT", "RIGHT")}
    vertical = torch.where(rows > 0, number["DOWN"], number["UP"])
    horizontal = torch.where(columns > 0, number["RIGHT"], number["LEFT"])
    return torch.where(rows != 0, vertical, horizontal)


@pytest.mark.parametrize("codec", ["pokemonred_puffer_v0", "pokemonred_puffer_v1"])
def test_walking_to_the_goal_ends_each_episode(codec: str) -> None:
    env = ToyEnv(num_envs=16, action_codec=codec, max_steps=20, log_interval=200, step_cost=0.0)
    env.reset(seed=1)
    assert env.single_action_space == Discrete(7 if codec.endswith("v0") else 8)
    distance = (find(env.observations, GOAL) - find(env.observations, WALKER)).abs().sum(1)
    assert distance.min() > 0, "walker and goal begin apart"
    expected = distance / 4  # the farthest corner
    returns, first = torch.zeros(16), torch.ones(16, dtype=torch.bool)
    for step in range(1, 201):
        _, rewards, terminals, truncations, infos = env.step(actions_to_goal(env))
        returns += rewards * first
        assert torch.equal(terminals & first, (distance == step) & first), "as many steps as cells"
        first &= ~terminals
        assert not truncations.any()
    assert returns.tolist() == pytest.approx((10 * expected + 5).tolist(), abs=1e-5)
    (info,) = infos
    assert info["success"] == 1.0
    assert 2 < info["episode_length"] < 6


def test_the_time_limit_truncates_and_shows_the_last_picture() -> None:
    env = ToyEnv(num_envs=8, max_steps=3)
    env.reset(seed=2)
    noop = torch.zeros(8, dtype=torch.int64)
    before = env.observations.clone()
    for _ in range(2):
        _, _, terminals, truncations, _ = env.step(noop)
        assert not (terminals | truncations | env.final_mask).any()
        assert torch.equal(env.final_observation, env.observations)
    observations, rewards, terminals, truncations, _ = env.step(noop)
    assert truncations.all() and env.final_mask.all() and not terminals.any()
    assert torch.equal(env.final_observation, before), "where the episode was cut"
    assert not torch.equal(observations, before), "a new episode"
    assert rewards.tolist() == pytest.approx([-0.01] * 8), "no reward for the new episode's distance"


def test_the_goal_at_the_time_limit_is_terminal_alone() -> None:
    env = ToyEnv(num_envs=64, max_steps=1)
    env.reset(seed=3)
    distance = (find(env.observations, GOAL) - find(env.observations, WALKER)).abs().sum(1)
    _, _, terminals, truncations, _ = env.step(actions_to_goal(env))
    assert 0 < terminals.sum() < 64
    assert torch.equal(terminals, distance == 1)
    assert torch.equal(truncations, ~terminals)


def test_a_stack_is_the_last_pictures_and_begins_with_the_first() -> None:
    single, stacked = ToyEnv(num_envs=4, max_steps=5), ToyEnv(num_envs=4, max_steps=5, stack_k=3)
    single.reset(seed=4)
    stacked.reset(seed=4)
    generator = torch.Generator().manual_seed(0)
    planes = [single.observations.clone()] * 3
    for _ in range(30):
        actions = torch.randint(8, (4,), generator=generator)
        single.step(actions)
        stacked.step(actions)
        fresh = single.final_mask[:, None, None, None]
        newest = single.observations.clone()
        planes = [torch.where(fresh, newest, plane) for plane in (*planes[1:], newest)]
        assert torch.equal(stacked.observations, torch.cat(planes, 1))


def play(env: ToyEnv, steps: int, generator: torch.Generator) -> list[tuple[torch.Tensor, ...]]:
    history = []
    for _ in range(steps):
        step = env.step(torch.randint(8, (env.num_envs,), generator=generator))
        history.append(tuple(part.clone() for part in (*step[:4], env.final_observation)))
    return history


def same(first: list[tuple[torch.Tensor, ...]], second: list[tuple[torch.Tensor, ...]]) -> bool:
    return all(torch.equal(a, b) for one, two in zip(first, second, strict=True) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("stack_k", [1, 2])
def test_seeds_and_saved_states_repeat_episodes(stack_k: int) -> None:
    env, other = (ToyEnv(num_envs=8, max_steps=7, stack_k=stack_k) for _ in range(2))
    draws = torch.Generator()
    env.reset(seed=5)
    begun = play(env, 20, draws.manual_seed(1))
    state = env.state_dict()
    wanted = play(env, 20, draws)
    env.reset(seed=6)
    assert not same(play(env, 20, draws.manual_seed(1)), begun)
    other.reset(seed=5)
    assert same(play(other, 20, draws.manual_seed(1)), begun)
    env.load_state_dict(state)
    assert same(play(env, 20, draws), wanted)


def test_its_options_are_those_of_the_environment_by_name() -> None:
    defaults = {name: getattr(EnvOptions(), name) for name in OPTIONS}
    parameters = inspect.signature(ToyEnv).parameters
    assert {name: parameters[name].default for name in OPTIONS} == defaults
    assert set(parameters) == {"num_envs", "device", "side", *OPTIONS}


def test_bad_input_is_named() -> None:
    for options, message in (
        ({"num_envs": 0}, "num_envs 0 must be at least 1"),
        ({"side": 1}, "side 1 must be at least 2"),
        ({"info_mode": "all"}, "info_mode 'all' is unknown"),
        ({"action_codec": "no"}, "no"),
        ({"max_steps": 0}, "max_steps 0 must be from 1"),
        ({"alpha": float("nan")}, "alpha nan must be from -1,000,000,000"),
        ({"tau": 0.5}, "option 'tau' is unknown: give one of obs, stack_k"),
        ({"stack": 2}, "option 'stack' is unknown: did you mean stack_k"),
    ):
        bad: dict[str, Any] = options
        with pytest.raises(ConfigError, match=message):
            ToyEnv(**bad)
    env = ToyEnv(num_envs=2, log_interval=1)
    with pytest.raises(ConfigError, match="call reset first"):
        env.step(torch.zeros(2, dtype=torch.int64))
    env.reset()
    with pytest.raises(ActionError, match=r"give \(2,\)"):
        env.step(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ActionError, match=r"takes 0\.\.7"):
        env.step(torch.tensor([0, 8]))
    with pytest.raises(StateError, match="walker"):
        env.load_state_dict(ToyEnv(num_envs=3).state_dict())


def test_it_needs_no_warp() -> None:
    code = "import sys, gbxcule_puffer.toy as toy; toy.ToyEnv(2).reset(); print('warp' in sys.modules)"
    root = Path(__file__).parents[1]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
