"""Trainings that cannot learn say so, each fault once and in one line; those that can say nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cleanrl_style import a2c_streaming
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.trainers import advice
from gbxcule_puffer.trainers.advice import Pictures, Rewards, Statistics, unlike_play
from tests.support.envs import STAGE, make_test_task
from tests.support.roms import tiny_rom
from tests.support.training_runs import small_run

ROMS = STAGE.parent.parent
HOMEWARD = {"rom": str(ROMS / "homeward.gb"), "symbols": str(ROMS / "homeward.sym")}
STILL = """
from gbxcule_puffer.tasks.task import StepResult, Task


class Still(Task):
    def step(self, ram, picture, info):
        nothing = 0 * ram["player_x"] + 2
        return StepResult(nothing, statistics={"coins": nothing, "button": info.actions})


class Moving(Task):
    def step(self, ram, picture, info):
        return StepResult(1 - 2 * (info.length % 2), statistics={"column": ram["player_x"]})
"""
FAULTS = ("the reward was the same", "a statistic was the same", "the screen has hardly", "does not look like play")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of a thousand steps is long enough."""
    for name, value in {"PATIENCE": 512, "PICTURES_PATIENCE": 512, "PICTURES_EACH": 8}.items():
        monkeypatch.setattr(advice, name, value)


def warnings_of(folder: Path, capsys: pytest.CaptureFixture[str], task: str, **flags: Any) -> list[str]:
    """The warnings of a short training with a Task of STILL."""
    advice.PATIENCE = advice.PICTURES_PATIENCE = 256  # until the test ends, as `impatient` has set them
    (folder / "tasks.py").write_text(STILL)
    given = {**HOMEWARD, "task": f"{folder / 'tasks.py'}:{task}", "total_env_steps": 512, "k_consecutive": None}
    given |= {"eval_every_steps": 512, "eval_episodes": 2, "eval_envs": 2, "num_envs": 4}
    assert a2c_streaming.main(small_run(folder / "run", **{**given, **flags})) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]


def test_a_task_at_a_title_screen_says_all_that_is_wrong_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = warnings_of(tmp_path, capsys, "Still", action_codec="NOOP,A,UP,DOWN,LEFT,RIGHT")
    assert sorted(fault for line in found for fault in FAULTS if fault in line) == sorted(FAULTS)
    assert len(found) == len(FAULTS), "no line speaks of a goal, or of stages"
    assert "(2 by Still)" in "".join(found) and "(task/coins 2)" in "".join(found)
    assert "power-on, where episodes begin, does not look like play: no button changes" in found[0]


def test_a_goal_beside_the_task_hides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The picture's distance moves the env's reward; the Task's is the same all the time."""
    files = make_test_task(tmp_path / "made").kwargs
    found = warnings_of(tmp_path, capsys, "Still", max_steps=32, **files)
    assert [fault for fault in FAULTS if any(fault in line for line in found)] == list(FAULTS[:2])


def test_a_task_that_pays_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one whose rewards are 0 in the sum of every episode."""
    start = make_test_task(tmp_path / "made").kwargs["start_state"]
    assert warnings_of(tmp_path, capsys, "Moving", start_state=start, max_steps=16) == []


class Shown:
    """An env whose pictures, statistics and ranges of rewards are given."""

    def __init__(self, **parts: Any) -> None:
        self.parts, self.milestones = parts, parts.get("milestones")

    def pictures(self, rows: slice) -> torch.Tensor:
        return self.parts["pictures"][rows]

    def statistics(self) -> dict[str, torch.Tensor]:
        return self.parts["statistics"]

    def reward_ranges(self) -> dict[str, tuple[float, float]]:
        return self.parts["ranges"]


def test_the_rewards_of_all_groups_count() -> None:
    """Two groups with another reward each are not the same reward."""
    first, second = Shown(ranges={"One": (0.0, 0.0)}), Shown(ranges={"One": (1.0, 1.0)})
    assert Rewards([first, second]).look(10**6, {}) == ""  # pyright: ignore[reportArgumentType]
    second.parts["ranges"] = {"One": (0.0, 0.0)}
    watch = Rewards([first, second])  # pyright: ignore[reportArgumentType]
    assert watch.look(511, {}) is None and "(0 by One)" in str(watch.look(512, {}))
    assert Rewards([Shown(ranges={})]).look(0, {}) == "", "there is no Task"  # pyright: ignore[reportArgumentType]


def test_statistics_of_few_episodes_are_waited_for() -> None:
    env: Any = Shown(statistics={"task/a": torch.zeros(1), "task/b": torch.zeros(1)})
    watch = Statistics(env)
    assert watch.look(600, {}) is None, "no episode has ended yet"
    assert watch.look(700, {"env/task/a": 1 / 3, "env/task/b": 1.0, "env/episodes": 100.0}) is None
    text = watch.look(800, {"env/task/a": 1 / 3 + 1e-17, "env/task/b": 2.0, "env/episodes": 1.0})
    assert text is not None and "101 episodes (task/a 0.333333)" in text
    assert Statistics(Shown(statistics={})).look(1, {}) == ""  # pyright: ignore[reportArgumentType]


def test_few_statistics_are_named_and_no_milestones() -> None:
    """Milestones that have not come yet are no fault, and are said elsewhere."""
    names = [f"task/{name}" for name in "abcdefg"]
    env: Any = Shown(statistics=dict.fromkeys(names), milestones=SimpleNamespace(names=["f", "g"]))
    watch, infos = Statistics(env), {"env/episodes": 100.0, **{f"env/{name}": 0.0 for name in names}}
    assert watch.look(600, infos) is None
    assert "(task/a 0, task/b 0, task/c 0, task/d 0 and 1 more)" in str(watch.look(700, infos))
    only: Any = Shown(statistics=dict.fromkeys(names[5:]), milestones=env.milestones)
    assert Statistics(only).look(700, {"env/task/f": 0.0, "env/episodes": 100.0}) == ""


@pytest.mark.parametrize(("share", "told"), [(0.012, True), (0.05, False)])
def test_a_text_that_blinks_is_not_play(share: float, told: bool) -> None:
    env: Any = Shown(pictures=torch.zeros(4, 72, 80, dtype=torch.uint8))
    watch = Pictures(env, 512)
    texts = []
    for step in range(0, 1024, 128):
        env.parts["pictures"] = torch.zeros(4, 72, 80, dtype=torch.uint8)
        env.parts["pictures"][step % 4, : int(72 * share + 1), :] = step // 128 % 2
        texts.append(watch.look(step, {}))
    assert any(texts) == told


@pytest.mark.parametrize("num_envs", [1, 4, 16])
def test_a_start_is_tried_with_every_button(num_envs: int, tmp_path: Path) -> None:
    """Whatever the number of Game Boys that it is tried in."""
    title: Any = GBxCuLEEnv(HOMEWARD["rom"], num_envs, io="torch")
    assert "power-on, where episodes begin, does not look like play: only START changes" in str(unlike_play(title, 1))
    files = make_test_task(tmp_path).kwargs
    assert unlike_play(GBxCuLEEnv(num_envs=num_envs, io="torch", **files), 1) is None
    both = [files["start_state"], str(tmp_path / "title.state")]
    title.reset()
    title.emulator.save(0).to_file(both[1])
    env: Any = GBxCuLEEnv(HOMEWARD["rom"], num_envs, io="torch", start_state=both)
    texts = {str(unlike_play(env, seed)) for seed in range(8)}
    assert any("a start does not look like play" in text for text in texts), "some of the seeds begin there"


def test_a_game_that_hangs_answers_to_nothing(tmp_path: Path) -> None:
    rom = tiny_rom(tmp_path / "hangs.gb", bytes([0x18, 0xFE]))
    env: Any = GBxCuLEEnv(rom, 2, io="torch")
    assert "no button changes the picture" in str(unlike_play(env, 1))


def test_an_action_of_one_button_may_be_play(tmp_path: Path) -> None:
    """Where no action is the D-pad's, any button that answers is enough."""
    title: Any = GBxCuLEEnv(HOMEWARD["rom"], 4, io="torch", action_codec="NOOP,START")
    assert unlike_play(title, 1) is None
    assert unlike_play(env_creator("toy")(4), 1) is None, "which has no Game Boys"
