"""Actions of several choices, and buttons that are held over steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pufferlib.vector
import pytest

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ActionError
from gbxcule_puffer.integrations.gym import make, make_vec
from tests.support.envs import STAGE, assert_same, make_test_task, play

ROM = STAGE.parent.parent / "homeward.gb"
CODEC = "NOOP,UP,DOWN,LEFT,RIGHT/NOOP,A,B"


def choices(steps: int, sizes: tuple[int, ...], num_envs: int = 2) -> np.ndarray:
    return np.random.default_rng(5).integers(0, sizes, (steps, num_envs, len(sizes)), dtype=np.int32)


def test_choices_press_what_their_combination_presses() -> None:
    rows = choices(12, (5, 3))
    env = GBxCuLEEnv(ROM, num_envs=2, action_codec=CODEC)
    assert env.single_action_space == gymnasium.spaces.MultiDiscrete([5, 3])
    by_choice = play(env, rows)
    numbers = (rows[..., 0] * 3 + rows[..., 1]).astype(np.int32)
    np.testing.assert_array_equal(env.taken_actions, numbers[-1])
    assert_same(by_choice, play(GBxCuLEEnv(ROM, num_envs=2, action_codec=CODEC), numbers))
    listed = ",".join(env.codec.actions)
    assert_same(by_choice, play(GBxCuLEEnv(ROM, num_envs=2, action_codec=listed), numbers))
    assert_same(by_choice, play(GBxCuLEEnv(ROM, num_envs=2, action_codec=CODEC, io="torch"), rows))
    with PyBoyPufferVecClosing(num_envs=2, action_codec=CODEC) as pyboy:
        assert_same(by_choice[:5], play(pyboy, rows[:4]))


class PyBoyPufferVecClosing:
    def __init__(self, **options: Any) -> None:
        self.env = PyBoyPufferVec(ROM, backend="serial", **options)

    def __enter__(self) -> PyBoyPufferVec:
        return self.env

    def __exit__(self, *_: object) -> None:
        self.env.close()


def test_what_is_no_choice() -> None:
    env = GBxCuLEEnv(ROM, num_envs=2, action_codec=CODEC)
    env.reset()
    with pytest.raises(ActionError, match=r"0\.\.14, and choices below 5, 3"):
        env.step(np.array([[0, 3], [0, 0]]))
    with pytest.raises(ActionError, match=r"shape \(2, 3\): give \(2,\), one action an env, or \(2, 2\), its choices"):
        env.step(np.zeros((2, 3), int))


def test_gymnasium_and_pufferlib_have_their_spaces() -> None:
    envs = make_vec(num_envs=2, rom=ROM, action_codec="multi_binary")
    assert envs.single_action_space == gymnasium.spaces.MultiBinary(8)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    actions = envs.action_space.sample()
    envs.step(actions)
    taken = [sum(int(bit) << (7 - i) for i, bit in enumerate(row)) for row in actions]
    assert envs.env.taken_actions.tolist() == taken
    single = make(rom=ROM, action_codec=CODEC)
    single.reset(seed=1)
    single.step(single.action_space.sample())
    kwargs = {"rom": str(ROM), "num_envs": 2, "action_codec": CODEC}
    vec = pufferlib.vector.make(GBxCuLEEnv, env_kwargs=kwargs, num_envs=2, backend=pufferlib.vector.Serial)
    vec.reset(seed=1)
    vec.step(choices(1, (5, 3), 4)[0])
    vec.close()


def test_held_buttons_equal_pyboy_s(tmp_path: Path) -> None:
    """Two steps that press the same button hold it, which the hero's walk over the border between them shows."""
    start = make_test_task(tmp_path).kwargs["start_state"]
    places = []
    for frames, release in ((6, 1), (6, 6), (1, 1)):
        options: dict[str, Any] = {"frames_per_step": frames, "release_after_frames": release}
        options |= {"start_state": start, "max_steps": 1000}
        env, pyboy = GBxCuLEEnv(ROM, **options), PyBoyPufferSingle(ROM, **options)
        names = [*["RIGHT"] * 7, "NOOP", *["DOWN"] * 7, "A", "NOOP", "A", *["LEFT"] * 5]
        rows = np.array(env.codec.parse(names), np.int32)[:, None].repeat(6 // frames, 0)
        assert_same(play(env, rows), play(pyboy, rows))
        wram = env.emulator.read_memory(0, 0xC000, 0x2000)
        np.testing.assert_array_equal(wram, pyboy.read_memory(0, 0xC000, 0x2000))
        places.append(wram[0xA0:0xA3].tolist())
        pyboy.close()
    assert places[0] != places[1] == places[2], "six steps of one frame hold a button as one of six frames does"
