"""A seed for each env of a vector env: env i plays what one env alone plays with the i-th seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.gym import make, make_vec

ROM = str(Path(__file__).parents[2] / "roms/homeward.gb")
OPTIONS: dict[str, Any] = {"rom": ROM, "max_steps": 4, "start_waits": 30, "sticky_actions": 0.5, "stagger": True}
SEEDS = [3, 5, 2**40]
ACTIONS = np.random.default_rng(0).integers(1, 8, (9, 3))


def played(envs: Any, seed: Any, columns: Any = slice(None)) -> np.ndarray:
    """Observations and rewards of a vector env over some steps."""
    observations, _ = envs.reset(seed=seed)
    parts = [np.concatenate([observations.reshape(envs.num_envs, -1), np.zeros((envs.num_envs, 3))], 1)]
    for actions in ACTIONS:
        observations, *ends, _ = envs.step(actions[columns])
        parts.append(np.concatenate([observations.reshape(envs.num_envs, -1), np.stack(ends, 1)], 1))
    return np.stack(parts, 1)


@pytest.mark.parametrize("given", [SEEDS, tuple(SEEDS), np.array(SEEDS)])
def test_each_env_has_its_seed(given: Any) -> None:
    envs = make_vec(num_envs=3, **OPTIONS)
    together = played(envs, given)
    assert len({row.tobytes() for row in together}) > 1
    for index, seed in enumerate(SEEDS):
        alone = make_vec(num_envs=1, **OPTIONS)
        np.testing.assert_array_equal(played(alone, seed, slice(index, index + 1))[0], together[index])
        np.testing.assert_array_equal(played(alone, [seed], slice(index, index + 1))[0], together[index])
        np.testing.assert_array_equal(make(**OPTIONS).reset(seed=seed)[0], envs.reset(seed=given)[0][index])
    np.testing.assert_array_equal(played(envs, given), together)
    assert not np.array_equal(played(envs, 3), together), "one seed for all"


def test_pyboys_have_them_too() -> None:
    ours = played(make_vec(num_envs=4, **OPTIONS), [9, 8, 7, 6], [0, 1, 2, 0])
    theirs = make_vec("pyboy_puffer_vec", num_envs=4, backend="serial", num_workers=2, **OPTIONS)
    np.testing.assert_array_equal(played(theirs, [9, 8, 7, 6], [0, 1, 2, 0]), ours)
    one = played(make_vec(num_envs=4, **OPTIONS), 9, [0, 1, 2, 0])
    np.testing.assert_array_equal(played(theirs, 9, [0, 1, 2, 0]), one)
    theirs.close()


def test_a_saved_state_has_them() -> None:
    rows = ACTIONS.astype(np.int64)
    env, other = (GBxCuLEEnv(num_envs=3, **OPTIONS) for _ in range(2))
    env.reset(seed=SEEDS)
    for row in rows[:3]:
        env.step(row)
    other.load_state_dict(env.state_dict())
    for row in rows[3:]:
        for one, two in zip(env.step(row)[:4], other.step(row)[:4], strict=True):
            np.testing.assert_array_equal(one, two)


def test_seeds_that_do_not_fit() -> None:
    envs = make_vec(num_envs=3, rom=ROM)
    refused: tuple[Any, ...] = ([1, 2], [1, 2, "x"], [1, 2, 2.5], np.ones((3, 1), int))
    for seed in refused:
        with pytest.raises(ConfigError, match=r"seed (has 2 numbers for 3 envs: give one for each|.* must be a whole)"):
            envs.reset(seed=seed)
    first, second = (envs.reset(seed=[1, None, 2])[0] for _ in range(2))
    assert first.shape == second.shape, "None: of the env's np_random"
    with pytest.raises(ConfigError, match="takes no list of seeds"):
        envs.reset(seed=SEEDS, options={"reset_mask": np.array([True, False, False])})
