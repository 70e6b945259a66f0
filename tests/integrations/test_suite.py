"""The suite's games: each is solved by its player, draws its levels from seeds, and plays as on PyBoy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.suite import GAMES, find_game
from gbxcule_puffer.layout import SUITE
from gbxcule_puffer.trainers.evaluation import evaluate, random_policy
from tests.support.envs import random_actions

NAMES = [f"gbxcule_{name}" for name in GAMES]


def make(name: str, num_envs: int, **options: Any) -> Any:
    return env_creator(name)(num_envs, **{"io": "torch", "info_mode": "none", **options})


def test_the_suite_is_what_env_creator_knows() -> None:
    assert sorted(NAMES) == sorted(SUITE)


@pytest.mark.parametrize("name", NAMES)
def test_the_player_solves_levels_that_nobody_trains_on(name: str) -> None:
    game, _ = find_game(name)
    env = make(f"{name}-test", 8)
    found = evaluate(game.player(env), env, 8, seed=1)
    assert found["success_rate"] == 1.0
    assert game.normalised(found["return"]) == pytest.approx(1, abs=0.15)
    random = evaluate(random_policy(env, 1), env, 8, seed=1)
    assert random["success_rate"] < 0.5
    assert game.normalised(random["return"]) == pytest.approx(0, abs=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_levels_follow_from_the_seed_and_are_as_many_as_asked_for(name: str) -> None:
    env, other = make(f"{name}-4", 64, max_steps=4), make(f"{name}-test", 64, max_steps=4)
    noop = torch.zeros(64, dtype=torch.int64)
    pictures = {}
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        levels = env.task.level.clone()
        assert sorted(set(levels.tolist())) == [0, 1, 2, 3]
        if seed in pictures:
            assert torch.equal(pictures[seed], levels)
        pictures[seed] = levels
    assert not torch.equal(pictures[1], pictures[2])
    for _ in range(3):
        env.step(noop)
    for level in range(4):  # the same level, the same picture
        same = env.observations[levels == level]
        assert (same == same[0]).all()
    env.step(noop)
    assert not torch.equal(env.task.level, levels), "another episode, another level"
    other.reset(seed=1)
    assert (other.task.level >= 0x8000).all() and len(set(other.task.level.tolist())) > 32


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("on", ["pyboy_puffer_single", "pyboy_puffer_vec"])
def test_pyboy_plays_the_same(name: str, on: str) -> None:
    """Whole pictures, rewards and ends of random play, for episodes enough that levels change."""
    n, steps = (1, 120) if on.endswith("single") else (4, 60)
    options: dict[str, Any] = {"io": "numpy", "obs": "full", "info_mode": "stats", "log_interval": steps}
    options |= {"max_steps": 40}
    own, other = make(name, n, **options), make(name, n, on=on, **options)
    for env in (own, other):
        env.reset(seed=5)
    failures = 0
    for row in random_actions(steps, n, seed=3):
        results = [env.step(row) for env in (own, other)]
        for part, wanted in zip(results[0][:4], results[1][:4], strict=True):
            np.testing.assert_array_equal(part, wanted)
        np.testing.assert_array_equal(own.failures, other.failures)
        failures += int(own.failures.sum())
    assert results[0][4] == results[1][4]
    assert failures or name != "gbxcule_orchard", "games are lost in it"
    other.close()


def test_a_lost_game_is_a_terminal_and_no_success() -> None:
    env = make("gbxcule_orchard", 4, info_mode="stats", log_interval=10**6)
    env.reset(seed=1)
    ends = 0
    for _ in range(100):
        _, _, terminals, truncations, _ = env.step(torch.zeros(4, dtype=torch.int64))
        assert torch.equal(terminals, env.failures) and not truncations.any()
        ends += int(terminals.sum())
    infos = env.read_infos()
    assert infos["episodes"] == ends > 0 and infos["success"] == 0 and infos["trunc_rate"] == 0
    assert evaluate(lambda obs, starts=None: torch.zeros(4, dtype=torch.int64), env, 4, 1)["success_rate"] == 0


@pytest.mark.parametrize("name", ["gbxcule_chess", "gbxcule_orchard-0", "gbxcule_orchard-16385", "gbxcule_orchard-x"])
def test_unknown_games_and_levels_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        env_creator(name)
