"""`puffer play` in real time, with an agent that takes over, and on its web page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cleanrl_style import a2c_streaming
from gbxcule_puffer import cli
from gbxcule_puffer.apps.play.agent import Agent
from gbxcule_puffer.apps.play.browser import MOST_MESSAGES, BrowserPlay
from gbxcule_puffer.apps.play.session import UNDO_FRAMES, Pace, PlaySession
from gbxcule_puffer.apps.verify.verify import comparable
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.actions import buttons_of
from gbxcule_puffer.tasks.goals.traces import Trace
from tests.support.browser import Browser
from tests.support.envs import STAGE
from tests.support.roms import joypad_rom

ROM = ROMS / "homeward.gb"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    flags = "--smoke --total-env-steps 8 --eval-episodes 1 --eval-envs 1 --max-steps 4"
    assert a2c_streaming.main([*flags.split(), "--device", "cpu", "--run-dir", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module", params=[8, 24])
def run_of_lengths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of actions with frames of their own, whose buttons are released, or held."""
    folder = tmp_path_factory.mktemp("runs") / "lengths"
    flags = "--smoke --total-env-steps 8 --eval-episodes 1 --eval-envs 1 --max-steps 4 --action-codec UP:30,LEFT:5,A"
    flags += f" --release-after-frames {request.param}"
    assert a2c_streaming.main([*flags.split(), "--device", "cpu", "--run-dir", str(folder)]) == 0
    return folder


def test_a_full_disk_does_not_end_the_game(tmp_path: Path) -> None:
    """What was played stays in the session; only a second q quits without it."""
    session = PlaySession(ROM, tmp_path / "play")
    session.key("a")
    (tmp_path / "play").write_text("")  # no folder can be here
    for key in "mtr":
        session.key(key)
        assert session.message.startswith("not saved: ") and not session.finished and not session.real_time
        assert session.actions == ["A"]
    session.key("q")
    assert session.message.endswith("q again quits without the trace") and not session.finished
    (tmp_path / "play").unlink()
    session.key("t")
    assert session.message == "saved trace1.json: 1 action" and (tmp_path / "play/trace1.json").is_file()
    session.key("a")
    (tmp_path / "play/trace1.json").unlink()
    (tmp_path / "play").rmdir()
    (tmp_path / "play").write_text("")
    session.key("q")
    session.key("q")
    assert session.finished
    with pytest.raises(ConfigError, match="is a file, not a folder"):
        PlaySession(ROM, tmp_path / "play")


@pytest.fixture
def session(tmp_path: Path) -> PlaySession:
    """In the house, where a game has begun."""
    session = PlaySession(ROM, tmp_path / "play")
    for action in json.loads(STAGE.read_text())["start_actions"]:
        session.press(action)
    session.mark()
    return session


def replayed(trace: Trace, session: PlaySession) -> np.ndarray:
    """The picture that a trace from the session's start leads to in an emulator of its schedule."""
    frames, release_after = trace.frames_per_step, trace.release_after_frames
    emulator = Emulator(ROM, screen="full", frames_per_step=frames, release_after_frames=release_after)
    emulator.load(session.origin)
    for action in trace.actions:
        emulator.step(torch.tensor([buttons_of(action)], dtype=torch.uint8))
    return emulator.screen[0].numpy()


def test_real_time_is_a_frame_an_action(session: PlaySession) -> None:
    """Several buttons at once; the trace replays to the picture; u goes back a second; both traces are files."""
    session.key("up")
    session.key("r")
    assert session.runs and [path.name for path in session.written] == ["state1.state", "trace1.json"]
    for held in [("LEFT", "B")] * 40 + [()] * 30 + [("SELECT",)] * 10:
        session.frame(held)
    session.key("up")  # the buttons are those that are held
    picture = session.picture.copy()
    assert len(session.actions) == 80 and session.actions[0] == "B+LEFT"
    assert np.array_equal(replayed(session.trace(), session), picture)
    session.key("u")
    assert len(session.actions) == UNDO_FRAMES
    assert np.array_equal(replayed(session.trace(), session), session.picture)
    session.key("q")
    assert Trace.load(session.written[-1]).frames_per_step == 1


def test_a_key_that_is_down_is_pressed_once(tmp_path: Path) -> None:
    """A game that counts presses; what is saved with a key down, and steps after it, begin with none."""
    rom = tmp_path / "joypad.gb"
    rom.write_bytes(joypad_rom())
    session = PlaySession(rom, tmp_path / "play")

    def presses() -> int:
        return int(session.emulator.read_memory(0, 0xC100, 1)[0])

    session.key("r")
    seen = []
    for held in (["A"], ["A"], ["A", "UP"], ["UP"], [], ["A"]):
        session.frame(held)
        seen.append(presses())
    assert seen == [1, 1, 2, 2, 2, 3]
    for _ in range(UNDO_FRAMES):
        session.frame(["A"])
    session.key("u")
    session.frame(["A"])
    assert presses() == 3, "a second back, where it was held"
    session.key("m")
    assert load_state_file(session.written[-1], session.emulator.cartridge).fields()["buttons"] == 0
    session.frame(["A"])
    trace = session.trace()
    emulator = Emulator(rom, frames_per_step=trace.frames_per_step, release_after_frames=trace.release_after_frames)
    emulator.load(session.origin)
    emulator.step(torch.tensor([buttons_of("A")], dtype=torch.uint8))
    assert presses() == int(emulator.read_memory(0, 0xC100, 1)[0]) == 4
    session.key("r")
    session.key("up")
    assert session.emulator.registers()["buttons"] == 0 and presses() == 5


def test_what_is_played_after_an_undo_is_saved(session: PlaySession) -> None:
    """Though it is no longer than the trace that was saved before."""
    for key in ("up", "left", "t", "u", "right", "q"):
        session.key(key)
    first, second = session.written[-2:]
    assert Trace.load(first).actions == ("UP", "LEFT") and Trace.load(second).actions == ("UP", "RIGHT")


def test_an_agent_takes_over(run: Path, session: PlaySession) -> None:
    """Frame by frame its steps are those of an env, and their trace replays; given back amid a step, that ends."""
    session.agent = agent = Agent(run, ROM)
    session.key("p")
    for _ in range(3 * 24 + 5):
        session.frame(["START"])
    assert len(session.actions) == 4 and session.schedule == (24, 8)
    session.key("m")
    assert session.written[-1].name == "state2.state" and session.agent_plays
    assert np.array_equal(session.picture[::2, ::2], agent.observations[0, -1])
    for _ in range(2 * 24):
        session.frame()
    trace, picture = session.trace(), session.picture.copy()
    assert len(trace.actions) == 2 and np.array_equal(replayed(trace, session), picture)
    assert np.array_equal(picture[::2, ::2], agent.observations[0, -1])
    session.key("p")
    assert not session.runs and session.schedule == (24, 8)
    agent.close()


def test_the_pace_is_the_console_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """59.7 frames a second by the clock; a stop is not made up for."""
    now, slept = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", sleep)
    pace = Pace()
    for _ in range(597):
        pace.wait()
        now[0] += 0.004
    assert now[0] - 100 == pytest.approx(597 / 59.7275, abs=0.02)
    now[0] += 60
    slept.clear()
    for _ in range(20):
        pace.wait()
    assert slept.count(0.0) < 10


def test_an_agents_steps_may_differ_in_length(run_of_lengths: Path, session: PlaySession) -> None:
    session.agent = agent = Agent(run_of_lengths, ROM)
    session.key("p")
    lengths = {"UP:30": 30, "LEFT:5": 5, "A": 24}
    for step in range(6):
        session.frame()
        for _ in range(lengths[session.actions[step]] - 1):
            session.frame()
        assert len(session.actions) == step + 1
        assert np.array_equal(session.picture[::2, ::2], agent.observations[0, -1])
        assert agent.env is not None
        mine, its = (emulator.save(0) for emulator in (session.emulator, agent.env.emulator))
        assert comparable(mine, session.emulator.cartridge) == comparable(its, session.emulator.cartridge)
    assert len(set(session.actions)) > 1
    agent.close()


def test_what_is_no_agent_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.gb"
    other.write_bytes((ROMS / "micro/alu_loop.gb").read_bytes())
    for rom, agent in ((ROM, tmp_path), (other, run)):
        assert cli.main(["play", str(rom), "--agent", str(agent), "--browser"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_strangers_send_does_nothing(session: PlaySession) -> None:
    """Keys and buttons that there are not, other types, and more of them than are taken: the game goes on as it was."""
    page = BrowserPlay(session, "127.0.0.1:0")
    url = page.server.url
    for origin in ("http://example.org", "null"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(url.replace("http", "ws") + "socket", origin=origin)  # pyright: ignore[reportArgumentType]
    bad = [
        {"key": 5},
        {"key": "p"},
        {"key": "b"},
        {"key": "../x"},
        {"held": "A"},
        {"held": [1, "NOOP", "JUMP", None]},
        {},
    ]
    address, origin = url.replace("http", "ws") + "socket", url.rstrip("/")
    # It reads no picture, so the server's last word would not come: the viewer goes without it, and not after 10 s
    with connect(address, origin=origin, close_timeout=0.1) as viewer:  # pyright: ignore[reportArgumentType]
        for message in [*bad, *[{"key": "?"}] * (2 * MOST_MESSAGES)]:
            viewer.send(json.dumps(message))
        for _ in range(4):
            page.turn()
        assert session.actions == [] and not session.runs and page._messages.qsize() <= MOST_MESSAGES
        while not page._held:
            viewer.send(json.dumps({"held": [1, "NOOP", "A", "JUMP", "UP", None]}))
            page.turn()
        assert page._held == ["A", "UP"]
    page.close()


def turn_until(page: BrowserPlay, condition: Any, turns: int = 600) -> None:
    """The game goes on until a condition is true."""
    for _ in range(turns):
        if condition():
            return
        page.turn()
    raise AssertionError("it did not become true")


PLUG_IN = """
plugged = {buttons: Array.from({length: 17}, () => ({pressed: false})), axes: [0, 0]};
navigator.getGamepads = () => [null, plugged], 0;
"""


def test_gamepad_and_touch_in_a_browser(session: PlaySession) -> None:
    """Fingers on the page's buttons, and buttons, cross and stick of a gamepad: steps; in real time what is held."""
    page = BrowserPlay(session, "127.0.0.1:0")
    with Browser(400, 860) as browser:
        browser.open(page.server.url)
        turn_until(page, lambda: browser.run("typeof header !== 'undefined' && header.status !== undefined"))
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.touch("touchStart", "[data-button=UP]")
        browser.touch("touchEnd")
        turn_until(page, lambda: session.actions == ["UP"])
        browser.run(PLUG_IN)
        browser.run("plugged.buttons[1].pressed = true")
        turn_until(page, lambda: session.actions == ["UP", "A"])
        browser.run("plugged.buttons[1].pressed = false")
        browser.run("document.querySelector('[data-key=r]').click()")
        turn_until(page, lambda: browser.run("header.real_time"))
        browser.touch("touchStart", "[data-button=LEFT]", "[data-button=B]")
        turn_until(page, lambda: session.actions[-1:] == ["B+LEFT"])
        browser.touch("touchEnd")
        turn_until(page, lambda: session.actions[-1:] == ["NOOP"])
        browser.run("plugged.axes = [0.9, 0], plugged.buttons[0].pressed = true")
        turn_until(page, lambda: session.actions[-1:] == ["B+RIGHT"])
        browser.run("plugged.axes = [0, 0], plugged.buttons[0].pressed = false, plugged.buttons[13].pressed = true")
        turn_until(page, lambda: session.actions[-1:] == ["DOWN"])
        browser.run("navigator.getGamepads = () => [null]")  # unplugged
        turn_until(page, lambda: session.actions[-1:] == ["NOOP"])
    page.close()


def test_the_page_in_a_browser(run: Path, session: PlaySession) -> None:
    """Keys are steps; r makes time go on, with what is held; the agent plays beside, from the same state."""
    session.agent = Agent(run, ROM)
    page = BrowserPlay(session, "127.0.0.1:0")

    def key(kind: str, name: str) -> None:
        browser.run(f"document.dispatchEvent(new KeyboardEvent('key{kind}', {{key: {name!r}}}))")

    with Browser(1100, 900) as browser:
        browser.open(page.server.url)
        turn_until(page, lambda: browser.run("typeof header !== 'undefined' && header.status !== undefined"))
        key("down", "ArrowUp")
        turn_until(page, lambda: session.actions == ["UP"])
        turn_until(page, lambda: browser.run("document.getElementById('status').textContent").startswith("step 1"))
        key("down", "r")
        turn_until(page, lambda: browser.run("header.real_time"))
        key("down", "ArrowLeft")
        turn_until(page, lambda: "LEFT" in session.actions[-3:])
        key("up", "ArrowLeft")
        turn_until(page, lambda: session.actions[-1:] == ["NOOP"])
        browser.run("document.querySelector('[data-key=b]').click()")
        turn_until(
            page, lambda: browser.run("header.beside") and browser.run("!document.getElementById('other').hidden")
        )
        assert page._beside is not None and page._beside.agent_plays
        browser.run("document.querySelector('[data-key=q]').click()")
        turn_until(page, lambda: session.finished)
        page.close()
        browser.wait_until("header.finished")
        assert "trace2.json" in browser.run("document.getElementById('written').textContent")
