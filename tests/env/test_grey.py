"""obs="grey": images of any size, of which each pixel is the mean of the area of the screen that it covers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import LEVELS
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.tasks.observe.pictures import area_averaged, picture_kind
from gbxcule_puffer.toy import ToyEnv
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.envs import STAGE, assert_same, play, random_actions

ROM = STAGE.parent.parent / "homeward.gb"
SIZES = ["grey", "grey_64x96", "grey_72x80", "grey_144x160", "grey_13x200", "grey_42x42", "grey_1x4", "grey_256x3"]


def test_a_mean_is_of_the_area_that_a_pixel_covers() -> None:
    """Whole numbers, halves up; and for other sizes what fractions say."""
    assert area_averaged(np.array([[0, 1], [0, 1]], np.uint8), 1, 1).tolist() == [[1]]
    assert area_averaged(np.array([[0, 1, 0, 0]], np.uint8), 1, 1).tolist() == [[0]]
    assert area_averaged(np.array([[30, 90, 255]], np.uint8), 1, 2).tolist() == [[50, 200]]
    assert area_averaged(np.array([[7, 9]], np.uint8), 2, 4).tolist() == [[7, 7, 9, 9]] * 2
    generator = np.random.default_rng(1)
    for rows, columns, height, width in ((3, 4, 5, 7), (7, 5, 3, 2), (4, 6, 9, 6)):
        picture = generator.integers(0, 256, (height, width), dtype=np.uint8)
        expected = [[mean(picture, i, j, rows, columns) for j in range(columns)] for i in range(rows)]
        assert area_averaged(picture, rows, columns).tolist() == expected


def mean(picture: np.ndarray, row: int, column: int, rows: int, columns: int) -> int:
    """A pixel of a picture in another size."""
    height, width = picture.shape
    down, across = ((Fraction(size, count), number) for size, count, number in
                    ((height, rows, row), (width, columns, column)))  # fmt: skip
    total = Fraction(0)
    for y in range(height):
        for x in range(width):
            covered = Fraction(1)
            for (length, number), place in ((down, y), (across, x)):
                covered *= max(Fraction(0), min((number + 1) * length, place + 1) - max(number * length, place))
            total += covered * int(picture[y, x])
    return int(total / (down[0] * across[0]) + Fraction(1, 2))


@pytest.mark.parametrize("obs", SIZES)
def test_shades_are_pyboys_greys(obs: str) -> None:
    """Of the whole screen, stacked; what new episodes replace, too."""
    kind, actions = picture_kind(obs), random_actions(9, 2)
    env, whole = (GBxCuLEEnv(ROM, 2, obs=each, stack_k=2, max_steps=5) for each in (obs, "full"))
    for (mine, *_), (screens, *_) in zip(play(env, actions), play(whole, actions), strict=True):
        assert mine.dtype == np.uint8 and mine.shape == (2, 2, kind.rows, kind.row_values)
        assert mine[0] in env.single_observation_space
        for picture, screen in zip(mine.reshape(-1, *mine.shape[2:]), screens.reshape(-1, 144, 160), strict=True):
            np.testing.assert_array_equal(picture, area_averaged(LEVELS[screen], kind.rows, kind.row_values))
    first = area_averaged(LEVELS[whole.final_observation[0, 0]], kind.rows, kind.row_values)
    np.testing.assert_array_equal(env.final_observation[0, 0], first)


@pytest.mark.parametrize("model", ["dmg", "cgb"])
@pytest.mark.parametrize("obs", ["grey", "grey_50x70"])
def test_it_is_what_pyboys_screen_says(obs: str, model: str) -> None:
    """On a Game Boy Color of its luma; the same from both baselines; vectors beside the picture."""
    kind, rom = picture_kind(obs), picture_rom(1, 0xC0 if model == "cgb" else 0)
    options: dict[str, Any] = {"obs": obs, "model": model, "max_steps": 99, "frames_per_step": 4, "action_obs": 2}
    options |= {"release_after_frames": 2}
    actions, seen = random_actions(12, 2), set()
    pyboy = PyBoyPufferSingle(rom, 2, **options)
    mine = play(GBxCuLEEnv(rom, 2, **options), actions)
    assert_same(mine, play(PyBoyPufferVec(rom, 2, **options, backend="serial"), actions))
    pyboy.reset(seed=3)
    for row, (expected, *_) in zip(actions, mine[1:], strict=True):
        observations = pyboy.step(row)[0]
        np.testing.assert_array_equal(observations, expected)
        for picture, machine in zip(pyboy.layout.split(observations)["picture"], pyboy.emulator.machines, strict=True):
            red, green, blue = np.moveaxis(machine.pyboy.screen.ndarray[..., :3], -1, 0).astype(int)
            grey = red if model == "dmg" else (2 * (red >> 3) + 5 * (green >> 3) + (blue >> 3))
            averaged = area_averaged(grey.astype(np.uint8), kind.rows, kind.row_values)
            np.testing.assert_array_equal(picture[0], averaged)
            seen.add(picture.tobytes())
    assert len(seen) > 2, "the picture hardly changes"


def test_goals_saved_states_and_torch(tmp_path: Path) -> None:
    """The goal is the screen's; a saved state goes on; tensors are the same numbers, from 0 to 1 for a network."""
    files = GoalRecipe.load(STAGE, GoalSettings(obs="grey", stack_k=2)).make(tmp_path)
    options: dict[str, Any] = {"start_state": files.start_state, "goal_dir": files.goal_dir, "rom": files.rom}
    options |= {"obs": "grey", "stack_k": 2, "max_steps": 60}
    solved = GBxCuLEEnv(**options)
    solution = json.loads(STAGE.read_text())["solve_actions"] + ["NOOP"] * 4
    rows = np.array(solved.codec.parse(solution))[:, None]
    assert any(step[2][0] for step in play(solved, rows)[1:]), "the goal is reached"
    env, other = GBxCuLEEnv(**options, num_envs=2), GBxCuLEEnv(**options, num_envs=2, io="torch")
    actions = random_actions(20, 2)
    assert_same(play(env, actions), play(other, actions))
    assert torch.equal(other.layout.pictures(other.observations), other.observations.float() / 255)
    state = env.state_dict()
    expected = [part.copy() for part in env.step(actions[0])[:4]]
    env.load_state_dict(state)
    for part, found in zip(expected, env.step(actions[0])[:4], strict=True):
        np.testing.assert_array_equal(part, found)
    shown = other.pictures()
    assert torch.equal(shown.view(torch.int16) & 31, (other.observations[:, -1] >> 3).short())


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["dmg", "cgb"])
@pytest.mark.parametrize("obs", SIZES)
@pytest.mark.usefixtures("cpu_kernels")
def test_cuda_equals_cpu(cuda_device: str, obs: str, model: str) -> None:
    rom = picture_rom(1, 0xC0 if model == "cgb" else 0)
    options: dict[str, Any] = {"obs": obs, "model": model, "stack_k": 2, "max_steps": 7, "frames_per_step": 4}
    options |= {"release_after_frames": 2}
    actions = random_actions(12, 40)
    on_cpu, on_gpu = (GBxCuLEEnv(rom, 40, device, **options) for device in ("cpu", cuda_device))
    assert_same(play(on_cpu, actions), play(on_gpu, actions))


def test_the_toy_env_has_it_too() -> None:
    shades, grey = (ToyEnv(6, obs=obs, stack_k=2, max_steps=4) for obs in ("shades", "grey_40x40"))
    for env in (shades, grey):
        env.reset(seed=1)
    for step in range(9):
        actions = torch.full((6,), step % shades.codec.num_actions)
        before, after = (env.step(actions)[0].numpy() for env in (shades, grey))
        assert after.shape == (6, 2, 40, 40) and env.single_observation_space.high.max() == 255
        np.testing.assert_array_equal(after, LEVELS[before].repeat(2, -1).repeat(2, -2))
    with pytest.raises(
        ConfigError, match="obs 'packed' is not for the toy env: give shades, grey or grey_ROWSxCOLUMNS"
    ):
        ToyEnv(obs="packed")


@pytest.mark.parametrize("obs", ["grey_0x84", "grey_84x300", "grey_63x63", "grey_999999999x4"])
def test_sizes_that_there_are_not(obs: str) -> None:
    with pytest.raises(
        ConfigError, match=f"obs '{obs}' .* from 1 to 256 rows and columns, whose product is a multiple"
    ):
        GBxCuLEEnv(ROM, obs=obs)


@pytest.mark.parametrize("obs", ["grey_84", "grey_84x84x1", "grey_8.4x84", "grey_-8x84", "gray", ""])
def test_other_names(obs: str) -> None:
    with pytest.raises(ConfigError, match=r"is unknown: give one of shades, .* grey, grey_ROWSxCOLUMNS"):
        GBxCuLEEnv(ROM, obs=obs)
