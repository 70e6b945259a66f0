"""Goals from screenshots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import read_shades, save_png
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from tests.support.envs import STAGE, make_test_task

ROM = STAGE.parent.parent / "homeward.gb"


@pytest.mark.parametrize("obs", ["shades", "full"])
@pytest.mark.parametrize("scale", [1, 4])
def test_a_screenshot_is_the_goal(tmp_path: Path, obs: str, scale: int, capsys: pytest.CaptureFixture[str]) -> None:
    emulator = Emulator(ROM, screen="full")
    for _ in range(40):
        emulator.step(emulator.locked.byte())  # no button: the title
    picture = emulator.screen[0].numpy()
    save_png(tmp_path / "goal.png", picture, scale)
    words = ["goal", "make", "--rom", str(ROM), "--png", str(tmp_path / "goal.png"), "--obs", obs]
    assert main([*words, "--out", str(tmp_path / "made")]) == 0
    assert "1 picture\n" in capsys.readouterr().out
    goal = GoalTemplate.load(tmp_path / "made/goal")
    np.testing.assert_array_equal(goal.frames[0], picture if obs == "full" else picture[::2, ::2])
    env = GBxCuLEEnv(ROM, obs=obs, goal_dir=tmp_path / "made/goal", start_state=tmp_path / "made/start.state")
    env.reset()
    ended = [bool(env.step(np.zeros(1, int))[2][0]) for _ in range(44)]
    assert any(ended), "the title comes by itself"


def test_pictures_that_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (144, 160), np.uint8)
    cases = {
        "noise.png": (noise, "has 256 greys, a Game Boy has four"),
        "small.png": (noise[:100], "has 160 x 100 pixels, not 160 x 144 or a multiple"),
        "large.png": (np.zeros((144 * 11, 160 * 11), np.uint8), "has 1760 x 1584 pixels"),
    }
    for name, (pixels, fault) in cases.items():
        Image.fromarray(pixels).save(tmp_path / name)
        with pytest.raises(ConfigError, match=fault):
            read_shades(tmp_path / name, (72, 80))
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ConfigError, match=r"is not a PNG, or damaged: give a screenshot"):
        read_shades(tmp_path / "text.png", (72, 80))
    start = make_test_task(tmp_path).kwargs["start_state"]
    emulator = Emulator(ROM)
    emulator.reset()
    save_png(tmp_path / "here.png", emulator.screen[0].numpy(), 1)
    words = ["goal", "make", "--rom", str(ROM), "--png", str(tmp_path / "here.png"), "--out", str(tmp_path / "made")]
    assert main(words) == 2
    assert "the goal's picture shows at the start: give another" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    capsys.readouterr()
    assert main([*words, "--start-state", start]) == 0
    assert "hardly apart" not in capsys.readouterr().err
    env = GBxCuLEEnv(ROM, start_state=start)
    env.reset()
    picture = np.repeat(np.repeat(env.observations[0, 0], 2, 0), 2, 1)
    picture[:8, :8] = 3 - picture[:8, :8]
    save_png(tmp_path / "near.png", picture, 1)
    words[words.index(str(tmp_path / "here.png"))] = str(tmp_path / "near.png")
    assert main([*words[:-1], str(tmp_path / "near"), "--start-state", start]) == 0
    assert capsys.readouterr().err.startswith("warning: goal: start and goal are hardly apart (distance 0.0")
