"""The wall's page in a browser, on a desk and on a phone: what a viewer sees of an env and of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.browser import Browser, wait_for
from tests.support.viewers import next_picture

ENVS = 80  # more than are shown
DESK, PHONE = (1280, 900), (390, 844)
GREETED = "typeof hello !== 'undefined' && hello !== null"
STATUS = {
    **{"step": 51200, "total": 2000000, "elapsed": 75.4, "left": 3723.0, "charts/SPS": 123456.0},
    **{"charts/success_rate": 0.5, "eval/success_rate": 0.75, "charts/episodic_return": -1.25},
    **{"charts/episodic_length": 12.5, "losses/policy_loss": 0.25, "losses/value_loss": float("nan")},
    "losses/entropy": 1.5,
}


@pytest.fixture
def wall() -> Iterator[Wall]:
    env = env_creator("toy")(num_envs=ENVS, device="cpu", seed=1)
    env.reset(seed=1)
    with Wall(env, "toy", lambda: STATUS, "127.0.0.1:0", controls=True) as wall:
        yield wall
    env.close()


def show(wall: Wall) -> None:
    """One step and its picture."""
    next_picture(wall)
    wall.env.step(torch.zeros(wall.env.num_envs, dtype=torch.int64))
    wall.look()


def words(browser: Browser, selector: str) -> str:
    """The text of an element as it is shown."""
    return browser.run(f"document.querySelector({selector!r}).innerText").strip()


def open_wall(browser: Browser, wall: Wall) -> None:
    browser.open(wall.url)
    browser.wait_until(GREETED)


CLICK = """
(() => {
  const wall = document.getElementById("wall"), box = wall.getBoundingClientRect(), [across, down] = tiles();
  const at = {clientX: box.left + 1.5 / across * box.width, clientY: box.top + 0.5 / down * box.height};
  wall.dispatchEvent(new MouseEvent("click", at));
  return [box.width, box.height];
})()
"""


def test_the_page_in_a_browser(wall: Wall) -> None:
    """A click chooses a Game Boy, its picture and numbers are the env's, and Pause stops the env."""
    with Browser() as browser:
        open_wall(browser, wall)
        show(wall)
        browser.wait_until("last !== null")
        width, height = browser.run(CLICK)
        assert width > 400 and height > 200
        wait_for(lambda: wall._focus == 1)
        env = browser.run("hello.envs[1]")
        assert words(browser, "#name") == f"Game Boy {env}"
        show(wall)
        browser.wait_until("returns.length === 1")
        assert browser.run("last.numbers[last.count + 1]") == float(wall.env.rewards[env])
        assert browser.run("returns[0]") == browser.run("last.numbers[2 * last.count + 1]")
        size = browser.run("hello.rows * hello.columns")
        shades = browser.run(f"Array.from(last.pictures.slice({size}, {2 * size}), (pixel) => COLOURS.indexOf(pixel))")
        assert shades == wall.env.observations[env, -1].flatten().tolist()
        browser.run("document.getElementById('pause').click()")
        wait_for(lambda: wall.paused)
        assert words(browser, "#pause") == "Go on" and words(browser, "#state") == "paused"


def canvas(rows: int, columns: int) -> str:
    context = "document.getElementById('screen').getContext('2d')"
    return f"Array.from({context}.getImageData(0, 0, {columns}, {rows}).data)"


def test_the_page_shows_colours() -> None:
    """Of Game Boy Colors, whatever is observed."""
    env = GBxCuLEEnv(picture_rom(1, 0xC0), 4, model="cgb", io="torch")
    env.reset(seed=1)
    with Wall(env, "colours", dict, "127.0.0.1:0") as wall, Browser() as browser:
        open_wall(browser, wall)
        for _ in range(2):
            env.step(torch.zeros(4, dtype=torch.int64))
        wait_for(lambda: wall._server.viewers)
        wall.look()
        browser.wait_until("last !== null")
        pixels = np.array(browser.run(canvas(72, 80))).reshape(72, 80, 4)
    assert isinstance(env.emulator, Emulator)
    rgb = env.emulator.render("rgb")[0].numpy()
    np.testing.assert_array_equal(pixels[..., :3], rgb)
    assert (rgb != rgb[..., :1]).any()
    env.close()


def test_the_chosen_game_boy_in_whole() -> None:
    """160x144 pixels in the shades of its LCD, and bytes of its RAM by name; a wrong word says so."""
    symbols = str(ROM.with_suffix(".sym"))
    env, twin = (GBxCuLEEnv(ROM, 3, io="torch", seed=1, symbols=symbols, obs=obs) for obs in ("shades", "full"))
    for each in (env, twin):
        each.reset(seed=1)
    rng = np.random.default_rng(1)

    def step() -> None:
        actions = torch.from_numpy(rng.integers(0, 8, 3))
        env.step(actions)
        twin.step(actions)

    with Wall(env, "whole", dict, "127.0.0.1:0", follow=True) as wall, Browser() as browser:
        open_wall(browser, wall)
        browser.run("choose(2); document.getElementById('words').value = 'player_facing c0a1 playr_facing';")
        browser.run("document.getElementById('words').dispatchEvent(new Event('input'))")
        wait_for(lambda: len(wall._watches) == 2)
        assert "did you mean player_facing" in words(browser, "#watches .error")

        def is_whole() -> bool:
            next_picture(wall)
            step()
            return browser.run("whole !== null && whole.focus === 2 && last.header.focus === 2")

        wait_for(is_whole)
        browser.run("last = null")
        next_picture(wall)
        step()
        browser.wait_until("last !== null")
        pixels = np.array(browser.run(canvas(144, 160))).reshape(144, 160, 4)
        shades = np.array(browser.run("SHADES"))
        np.testing.assert_array_equal(pixels[..., :3], shades[twin.final_observation[2, -1].numpy()])
        rows = browser.run("[...document.querySelectorAll('#watches tr')].map((row) => row.innerText.split(/\\s+/))")
        for row, where in zip(rows, ("player_facing", 0xC0A1), strict=False):
            value = int(env.ram[where][2])
            assert row[-2:] == [str(value), f"{value:02X}"]
        assert words(browser, "#screen-note") == ""
    env.close()
    twin.close()


def test_what_is_known_of_a_run(wall: Wall) -> None:
    """ROM, algorithm, times, figures and losses, the losses within the first screen."""
    env = GBxCuLEEnv(ROM, 3, io="torch")
    env.reset(seed=1)
    facts = {"algorithm": "a2c_streaming", "device": "cpu"}
    with Wall(env, "figures", lambda: STATUS, "127.0.0.1:0", facts=facts) as wall, Browser(*DESK) as browser:
        open_wall(browser, wall)
        assert "losses" in words(browser, "#losses") and "begin with" in words(browser, "#empty")
        show(wall)
        browser.wait_until("last !== null")
        assert words(browser, "#facts") == "HOMEWARD (DMG) · a2c_streaming · cpu · 3 Game Boys"
        figures = browser.run("[...document.querySelectorAll('.figure')].map((box) => box.innerText.split(/\\n+/))")
        assert figures == [
            ["steps", "51,200", "of 2,000,000"],
            ["steps/s", "123,456"],
            ["elapsed", "1:15"],
            ["left, at most", "1:02:03"],
            ["success", "0.50", "evaluated 0.75"],
            ["return", "-1.25"],
            ["length", "12.5"],
        ]
        losses = browser.run(
            "[...document.querySelectorAll('#losses div')].map((pair) => pair.innerText.split(/\\n+/))"
        )
        assert losses == [["policy loss", "0.2500"], ["value loss", "\u2013"], ["entropy", "1.5000"]]
        for selector in ("#losses", "#screen", "#ram input"):
            bottom = browser.run(f"document.querySelector({selector!r}).getBoundingClientRect().bottom")
            assert bottom < DESK[1], selector
    env.close()


def test_a_task_without_success_shows_none(wall: Wall) -> None:
    wall._status = lambda: {"step": 1, "charts/episodic_return": 2.0}
    with Browser() as browser:
        open_wall(browser, wall)
        show(wall)
        browser.wait_until("last !== null")
        assert "success" not in words(browser, "#figures") and "return" in words(browser, "#figures")


@pytest.mark.parametrize("envs", [1, 64])
def test_nothing_scrolls_sideways(tmp_path: Path, envs: int) -> None:
    """On a desk and on a phone, with a map, long names, many curves and errors; one Game Boy alone needs no wall."""
    records = tmp_path / "metrics.jsonl"
    tags = {f"env/task/a_statistic_with_a_long_name_{number}": 1e-9 for number in range(20)}
    lines = [{"global_step": step, "charts/success_rate": step / 9e6, **tags} for step in range(0, 9_000_000, 100_000)]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    env = GBxCuLEEnv(ROM, envs, io="torch", max_steps=64)
    env.reset(seed=1)
    status = STATUS | {f"losses/a_loss_with_a_long_name_{number}": 123456.789 for number in range(12)}
    title = "gbxcule__a2c_streaming__1__" + "x" * 80
    with Wall(env, title, lambda: status, "127.0.0.1:0", records=records, controls=True) as wall:
        for size in (DESK, PHONE):
            with Browser(*size) as browser:
                open_wall(browser, wall)
                browser.run(f"document.getElementById('words').value = 'FF80 {'wrong' * 30} 9:A000'; watch()")
                show(wall)
                browser.wait_until(
                    "document.querySelectorAll('.plot').length === 21"
                    " && document.querySelectorAll('.error').length === 2"
                )
                time.sleep(0.5)
                show(wall)
                browser.wait_until("mapRows !== null")
                assert browser.run("document.documentElement.scrollWidth") <= size[0]
                assert browser.run("document.getElementById('wall').checkVisibility()") == (envs > 1)
                too_wide = "(box) => box.getBoundingClientRect().right > innerWidth + 0.5 && box.checkVisibility()"
                boxes = f"[...document.querySelectorAll('body *')].filter({too_wide}).map((box) => box.outerHTML)"
                assert browser.run(boxes) == []
    env.close()


def test_the_curves_of_a_run(tmp_path: Path) -> None:
    """From its first record on; success in training and in evaluations in one plot."""
    records = tmp_path / "metrics.jsonl"
    lines = [{"global_step": 100 * n, "charts/success_rate": n / 10, "env/task/coins": 7 * n} for n in range(1, 11)]
    last = {"global_step": 900, "eval/success_rate": 1, "eval/task/coins": 5}
    records.write_text("".join(json.dumps(line) + "\n" for line in (*lines, last)))
    env = env_creator("toy")(num_envs=2, device="cpu")
    env.reset()
    with Wall(env, "curves", dict, "127.0.0.1:0", records=records) as wall, Browser() as browser:
        open_wall(browser, wall)
        browser.wait_until("document.querySelectorAll('.plot').length === 2")
        assert words(browser, ".plot figcaption").split("\n") == ["success", "1 evaluated 1"]
        names = browser.run("[...document.querySelectorAll('.plot figcaption > span')].map((name) => name.innerText)")
        assert names == ["success", "task/coins"]
        counts = (
            "[...document.querySelectorAll('polyline')].map((line) => line.getAttribute('points').split(' ').length)"
        )
        assert browser.run(counts) == [10, 2, 10, 2]
        with records.open("a") as file:
            file.write(json.dumps({"global_step": 1100, "env/task/coins": 70}) + "\n")
        browser.wait_until(f"{counts}[2] === 11")
    env.close()


def test_the_end_and_a_lost_connection_are_told_apart(wall: Wall) -> None:
    with Browser() as browser:
        open_wall(browser, wall)
        show(wall)
        browser.wait_until("last !== null")
        wall.close("been stopped")
        browser.wait_until("socket.readyState === 3")
        assert words(browser, "#state") == "the run has been stopped: its last pictures"
        assert browser.run("document.getElementById('wall').checkVisibility()")


def test_a_killed_training_is_a_lost_connection(wall: Wall) -> None:
    with Browser() as browser:
        open_wall(browser, wall)
        show(wall)
        browser.wait_until("last !== null")
        wall._server._process.kill()
        browser.wait_until("document.getElementById('state').className === 'bad'")
        assert words(browser, "#state").startswith("connection lost 0:0")


def test_a_run_that_gives_no_pictures_says_so(wall: Wall) -> None:
    with Browser() as browser:
        open_wall(browser, wall)
        show(wall)
        browser.wait_until("last !== null")
        browser.wait_until("document.getElementById('state').textContent.startsWith('no new picture for 0:0')")
        show(wall)
        browser.wait_until("document.getElementById('state').textContent === 'live'")
