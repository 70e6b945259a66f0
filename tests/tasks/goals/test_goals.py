"""Goal templates: the distance, the files, the checks against an environment, and how a goal is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import cli
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, GoalError
from gbxcule_puffer.tasks.goals.distance import GoalDistance
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
from gbxcule_puffer.tasks.goals.template import (
    CHECKED_FIELDS,
    FRAMES_FILE,
    K_CONSECUTIVE,
    META_FILE,
    VALUES,
    GoalTemplate,
)

STAGE = Path(__file__).parents[3] / "roms/homeward/stage1.json"
CONFIG = {
    "rom_sha256": "00",
    "action_codec": "pokemonred_puffer_v1",
    "frames_per_step": 24,
    "release_after_frames": 8,
    "stack_k": 1,
    "obs": "shades",
}


def template() -> GoalTemplate:
    frames = np.random.default_rng(1).integers(0, 4, (2, 72, 80), dtype=np.uint8)
    return GoalTemplate(frames, {"format": 1, **CONFIG, "tau": 0.05, "k_consecutive": 4})


@pytest.mark.parametrize("num_frames", [1, 3])
def test_distance_is_the_mean_absolute_difference(num_frames: int) -> None:
    random = np.random.default_rng(num_frames)
    frames = random.integers(0, 4, (num_frames, 72, 80), dtype=np.uint8)
    screens = random.integers(0, 4, (5, 72, 80), dtype=np.uint8)
    screens[4] = frames[-1]
    distances = torch.empty(5)
    GoalDistance(frames, 5, "cpu").measure(torch.from_numpy(screens), distances)
    differences = np.abs(screens[:, None].astype(float) - frames).mean((2, 3)) / 3
    np.testing.assert_allclose(distances.numpy(), differences.min(1), rtol=1e-6)
    assert distances[4] == 0


def test_distance_spans_0_to_1() -> None:
    screens = torch.stack([torch.zeros(144, 160), torch.full((144, 160), 3)]).to(torch.uint8)
    distances = torch.empty(2)
    GoalDistance(np.zeros((1, 144, 160), np.uint8), 2, "cpu").measure(screens, distances)
    assert distances.tolist() == [0, 1]


def test_save_and_load(tmp_path: Path) -> None:
    goal = template()
    goal.save(tmp_path / "goal")
    goal.save(tmp_path / "goal")  # replaces
    loaded = GoalTemplate.load(tmp_path / "goal")
    assert loaded.meta == goal.meta
    np.testing.assert_array_equal(loaded.frames, goal.frames)
    assert [path.name for path in tmp_path.iterdir()] == ["goal"]


@pytest.mark.parametrize("field", CHECKED_FIELDS)
def test_check_names_the_field_that_differs(field: str) -> None:
    template().check(CONFIG, (72, 80))
    with pytest.raises(GoalError, match=f"made for {field} "):
        template().check({**CONFIG, field: "other"}, (72, 80))


def test_check_of_the_picture_size() -> None:
    with pytest.raises(GoalError, match=r"\(72, 80\).*\(144, 160\)"):
        template().check(CONFIG, (144, 160))


@pytest.mark.parametrize(
    "damage", ["no meta", "no frames", "cut frames", "bad json", "field missing", "format", "shade"]
)
def test_damaged_goals_are_refused(tmp_path: Path, damage: str) -> None:
    goal = template()
    goal.save(tmp_path)
    frames, meta = tmp_path / FRAMES_FILE, tmp_path / META_FILE
    if damage == "no meta":
        meta.unlink()
    elif damage == "no frames":
        frames.unlink()
    elif damage == "cut frames":
        frames.write_bytes(frames.read_bytes()[:500])
    elif damage == "bad json":
        meta.write_text("{")
    elif damage == "field missing":
        meta.write_text(json.dumps({name: value for name, value in goal.meta.items() if name != "tau"}))
    elif damage == "format":
        meta.write_text(json.dumps({**goal.meta, "format": 99}))
    else:
        np.save(frames, goal.frames + np.uint8(4))
    with pytest.raises(GoalError) as error:
        GoalTemplate.load(tmp_path)
    assert "make it with" in str(error.value)
    assert "\n" not in str(error.value)


WRONG_VALUES = {
    "rom_sha256": [9], "action_codec": [7], "obs": [["shades"]], "frames_per_step": ["24"],
    "release_after_frames": [None], "stack_k": [1.0], "k_consecutive": [0, True, 2**31], "max_steps": ["small", 2**31],
    "tau": ["small", True, -0.1, 1.1], "solve_actions": ["UP", [5]], "more_ways": [7, [3], [[None]]],
    "calibration": [3, {"start_distance": "far"}],
}  # fmt: skip


def test_a_value_of_another_kind_is_refused(tmp_path: Path) -> None:
    """In the one place that reads goals, for all that use them."""
    assert set(WRONG_VALUES) == set(VALUES)
    for name, values in WRONG_VALUES.items():
        for value in values:
            goal = template()
            GoalTemplate(goal.frames, {**goal.meta, name: value}).save(tmp_path / "goal")
            with pytest.raises(GoalError, match=rf"{name} .* must be .*: make it with") as error:
                GoalTemplate.load(tmp_path / "goal")
            assert "\n" not in str(error.value)


def test_the_stage_becomes_a_start_and_a_goal(tmp_path: Path) -> None:
    files = GoalRecipe.load(STAGE).make(tmp_path / "stage")
    goal = GoalTemplate.load(files.goal_dir)
    distances = goal.meta["calibration"]["distances"]
    assert distances[-1] == 0
    assert distances[0] > goal.meta["tau"] > 0
    assert files.start_state.is_file()
    assert {path.name for path in files.start_state.parent.iterdir()} == {"start.state", "goal"}


@pytest.mark.parametrize("number, limit", [(1, 128), (2, 192)])
def test_a_stage_s_limit_and_a_goal_s_k_reach_the_env(tmp_path: Path, number: int, limit: int) -> None:
    """Unless they are given: neither is overridden by a default."""
    files = GoalRecipe.load(STAGE.with_name(f"stage{number}.json")).make(tmp_path)
    kwargs: dict[str, Any] = {"rom": files.rom, "start_state": files.start_state, "goal_dir": files.goal_dir}
    env = GBxCuLEEnv(**kwargs)
    assert (env.max_steps, env.k_consecutive) == (limit, K_CONSECUTIVE)
    goal = GoalTemplate.load(files.goal_dir)
    GoalTemplate(goal.frames, {**goal.meta, "k_consecutive": 2, "max_steps": 77}).save(files.goal_dir)
    env = GBxCuLEEnv(**kwargs)
    assert (env.max_steps, env.k_consecutive) == (77, 2)
    env = GBxCuLEEnv(**kwargs, max_steps=9, k_consecutive=3, tau=0.25)
    assert (env.max_steps, env.k_consecutive, env.tau) == (9, 3, 0.25)


def test_a_limit_that_is_none_is_refused(tmp_path: Path) -> None:
    stage = json.loads(STAGE.read_text())
    (tmp_path / "stage.json").write_text(
        json.dumps({**stage, "rom": str(STAGE.parents[1] / stage["rom"]), "max_steps": 0})
    )
    with pytest.raises(ConfigError, match="max_steps 0 must be a whole number, at least 1"):
        GoalRecipe.load(tmp_path / "stage.json").make(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_goal_that_is_already_there_is_refused(tmp_path: Path) -> None:
    stage = json.loads(STAGE.read_text())
    for actions, message in (
        (["NOOP", "NOOP"], "shows at the start: give another goal, or another start"),
        (["RIGHT", "LEFT", "RIGHT"], "met after 1 of 3 actions, then another: let them end there"),
    ):
        with pytest.raises(GoalError, match=message):
            GoalRecipe(STAGE.parents[1] / stage["rom"], actions, stage["start_actions"]).make(tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_a_way_of_buttons_that_the_goals_own_actions_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A game that was played by hand knows SELECT and several buttons at once; the goal is for whatever codec, however
    its list is written, and our own ROM has a name."""
    monkeypatch.chdir(tmp_path)
    Path("way.json").write_text('["SELECT", "A+UP", "START", "DOWN"]')
    codec = "start, noop,b+a"
    words = ["goal", "make", "--rom", "homeward", "--actions", "way.json", "--out", "task", "--action-codec", codec]
    assert cli.main([*words, "--obs", "averaged"]) == 0
    assert cli.main(["goal", "calibrate", "task", "--steps", "16", "--num-envs", "2"]) == 0
    env = GBxCuLEEnv("homeward", goal_dir="task/goal", action_codec=codec, obs="averaged")
    assert env.goal is not None and env.goal.meta["action_codec"] == "START,NOOP,A+B"
    capsys.readouterr()
    for name in ("NOOP:60", "JUMP"):
        Path("way.json").write_text(json.dumps(["A", name]))
        assert cli.main([*words, "--out", "other"]) == 2
        assert f"action 1 is '{name}', which is not a button: give NOOP, RIGHT" in capsys.readouterr().err
