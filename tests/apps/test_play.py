"""`puffer play` on a pseudo terminal and in SDL's windowless driver, and what its files become."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import cli
from gbxcule_puffer.apps.play.play import show
from gbxcule_puffer.apps.play.session import STEP_KEYS, PlaySession
from gbxcule_puffer.apps.play.terminal import _keys as terminal_keys
from gbxcule_puffer.apps.play.terminal import picture_for
from gbxcule_puffer.apps.play.window import play_in_window
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations import window
from gbxcule_puffer.pictures import TERMINAL_COLORS, half_blocks, mosaic
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from gbxcule_puffer.tasks.goals.traces import Trace, read_actions
from tests.support.envs import CODEC, STAGE, solution

ROM = STAGE.parent.parent / "homeward.gb"
KEYS = {
    "UP": "\x1b[A", "DOWN": "\x1b[B", "RIGHT": "\x1b[C", "LEFT": "\x1bOD",
    "A": "a", "B": "s", "START": "\r", "NOOP": " ",
}  # fmt: skip
SECONDS = 60  # until a test gives up


class Terminal:
    """A command on a pseudo terminal of 100 by 40; `shown` is all it has written."""

    def __init__(self, arguments: list[str], columns: int = 100, lines: int = 40) -> None:
        self.shown = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave, self.master = slave, master
        self.pid = os.fork()
        if self.pid == 0:  # a process of its own without the seconds that starting Python and torch takes
            self._run(arguments)

    def _run(self, arguments: list[str]) -> None:
        code = 70
        try:
            os.setsid()
            for number in range(3):
                os.dup2(self.slave, number)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
            for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
                os.environ.pop(name, None)
            torch.set_num_threads(1)
            code = cli.main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def wait_for(self, text: str) -> None:
        """Reads until the terminal shows `text`, and forgets what it has shown."""
        end = time.monotonic() + SECONDS
        while text.encode() not in self.shown:
            assert time.monotonic() < end, f"{text!r} does not come; shown: {self.shown[-2000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.shown += os.read(self.master, 65536)
        self.shown = b""

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """The exit code; what was written last is in `shown`."""
        end = time.monotonic() + SECONDS
        while not (status := os.waitpid(self.pid, os.WNOHANG))[0]:
            assert time.monotonic() < end, "the command does not end"
            if select.select([self.master], [], [], 0.1)[0]:
                self.shown += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0.1)[0]:
            self.shown += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is as it was found"
        os.close(self.master)
        os.close(self.slave)
        return os.waitstatus_to_exitcode(status[1])


def spec(stage: int) -> dict[str, Any]:
    return json.loads((STAGE.parent / f"stage{stage}.json").read_text())


def keys_of(names: list[str]) -> str:
    return "".join(KEYS[name] for name in names)


def test_keys_on_a_terminal_become_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Title, start state, the way out of the house, with a wrong key taken back: by commands and keys alone."""
    stage, out = spec(1), tmp_path / "play"
    terminal = Terminal(["play", str(ROM), "--out", str(out)])
    terminal.wait_for("u undo  q quit")
    terminal.press(keys_of(stage["start_actions"]))
    terminal.wait_for(f"step {len(stage['start_actions'])} ")
    terminal.press("m")
    terminal.wait_for("state1.state")
    half = len(stage["solve_actions"]) // 2
    terminal.press(keys_of([*stage["solve_actions"][:half], "LEFT"]))
    terminal.wait_for(f"step {half + 1} ")
    terminal.press("u")
    terminal.wait_for(f"step {half} ")
    terminal.press(keys_of(stage["solve_actions"][half:]) + "t")
    terminal.wait_for("trace1.json")
    terminal.press("q")
    assert terminal.end() == 0
    assert b"\x1b[?1049l" in terminal.shown, "the other screen is left"
    assert sorted(path.name for path in out.iterdir()) == ["state1.state", "trace1.json"]
    assert Trace.load(out / "trace1.json").actions == tuple(stage["solve_actions"])
    (tmp_path / "any").touch()
    modes = {path.stat().st_mode for path in (tmp_path / "any", *out.iterdir())}
    assert len(modes) == 1, "files are as readable as any other"

    goal = tmp_path / "leave_house"
    options = ["--start-state", str(out / "state1.state"), "--actions", str(out / "trace1.json"), "--out", str(goal)]
    assert cli.main(["goal", "make", "--rom", str(ROM), *options]) == 0
    assert cli.main(["goal", "show", str(goal)]) == 0
    assert cli.main(["goal", "stages", f"{goal}:20", "--out", str(tmp_path / "stages.json")]) == 0
    assert "leave_house (20 steps)" in capsys.readouterr().out
    assert (goal / "pictures" / "goal0.png").read_bytes().startswith(b"\x89PNG")
    env = GBxCuLEEnv(ROM, stages=tmp_path / "stages.json")
    env.reset()
    assert any(env.step(np.array([action]))[2][0] for action in solution(1)), "the stage made by hand is solved"


def test_a_goal_by_hand(tmp_path: Path) -> None:
    """`goal make --play`: m sets the start, g the goal; q gives up and writes nothing."""
    stage = spec(1)
    given_up = Terminal(["goal", "make", "--rom", str(ROM), "--play", "--out", str(tmp_path / "none")])
    given_up.wait_for("g goal  u undo")
    given_up.press("  q")
    assert given_up.end() == 2
    assert b"no goal was marked" in given_up.shown
    terminal = Terminal(["goal", "make", "--rom", str(ROM), "--play", "--out", str(tmp_path / "goal")])
    terminal.wait_for("g goal  u undo")
    terminal.press(keys_of(stage["start_actions"]) + "m" + keys_of(stage["solve_actions"]) + "g")
    assert terminal.end() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["goal"]
    goal = GoalTemplate.load(tmp_path / "goal" / "goal")
    assert goal.meta["solve_actions"] == stage["solve_actions"]


def test_the_terminal_is_restored_and_the_trace_kept(tmp_path: Path) -> None:
    """q and a closed terminal save what was played; SIGTERM ends at once, with the terminal as it was."""
    terminal = Terminal(["play", str(ROM), "--out", str(tmp_path)])
    terminal.wait_for("u undo  q quit")
    terminal.press(" \r q")
    assert terminal.end() == 0
    assert Trace.load(tmp_path / "trace1.json").actions == ("NOOP", "START", "NOOP")
    terminal = Terminal(["play", str(ROM), "--out", str(tmp_path)])
    terminal.wait_for("u undo  q quit")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert b"\x1b[?25h" in terminal.shown


@pytest.mark.parametrize(
    ("size", "flags", "message"),
    [
        ((30, 40), [], "30 columns and 40 lines: make it 40 by 20"),
        ((100, 40), ["--window"], "no window can be opened here (DISPLAY and WAYLAND_DISPLAY are not set)"),
    ],
)
def test_terminals_that_are_refused(size: tuple[int, int], flags: list[str], message: str, tmp_path: Path) -> None:
    terminal = Terminal(["play", str(ROM), "--out", str(tmp_path / "out"), *flags], *size)
    assert terminal.end() == 2
    assert message in terminal.shown.decode()
    assert len(terminal.shown.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_small_terminal_shows_the_whole_picture(tmp_path: Path) -> None:
    terminal = Terminal(["play", str(ROM), "--out", str(tmp_path)], columns=80, lines=24)
    terminal.wait_for("u undo q quit")
    terminal.press("q")
    assert terminal.end() == 0
    edge = np.zeros((144, 160), np.uint8)
    edge[:, 80:] = 3
    for columns, lines, shape in ((80, 24, (44, 48)), (40, 20, (36, 40)), (80, 38, (72, 80)), (200, 74, (144, 160))):
        picture = picture_for(edge, columns, lines)
        assert picture.shape == shape
        assert (picture[:, : shape[1] // 2] == TERMINAL_COLORS[0]).all()
        assert (picture[:, shape[1] // 2 :] == TERMINAL_COLORS[3]).all()


def test_a_display_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(window, "TRIAL_SECONDS", 0.5)
    with socket.socket() as server:
        for number in range(50, 100):
            with contextlib.suppress(OSError):
                server.bind(("127.0.0.1", 6000 + number))
                break
        server.listen()
        monkeypatch.setenv("DISPLAY", f"127.0.0.1:{number}")
        with pytest.raises(ConfigError, match=r"DISPLAY=127.0.0.1:.* does not answer.*: give --browser or --terminal"):
            show(PlaySession(ROM, tmp_path), "window")


def test_a_display_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SDL takes a driver that shows nothing, and what it says on stderr is not an error."""
    for name, value in (("DISPLAY", ":97"), ("XDG_RUNTIME_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    for name in ("SDL_VIDEODRIVER", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=r"SDL cannot use DISPLAY=:97: nothing is there.*: give --browser or --term"):
        show(PlaySession(ROM, tmp_path), "window")
    for name in ("DISPLAY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    assert window.why_no_window() == ""


def test_backspace_is_select() -> None:
    """Terminals send DEL, or BS; it did nothing."""
    reader, writer = os.pipe()
    os.write(writer, b"\x7f\x08\r")
    os.close(writer)
    assert [STEP_KEYS[name] for name in terminal_keys(reader)] == ["SELECT", "SELECT", "START"]
    os.close(reader)


def test_without_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="needs a terminal or a window"):
        show(PlaySession(ROM, tmp_path), "auto")


def test_keys_in_a_window_become_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window itself cannot be seen under SDL's dummy driver; its events and files are the same."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sdl2 = pytest.importorskip("sdl2")
    symbols = [sdl2.SDLK_SPACE, sdl2.SDLK_RETURN, sdl2.SDLK_DOWN, sdl2.SDLK_a, sdl2.SDLK_m]
    symbols += [sdl2.SDLK_UP, sdl2.SDLK_LEFT, sdl2.SDLK_RIGHT, sdl2.SDLK_s, sdl2.SDLK_u, sdl2.SDLK_F1]

    class Pushing(PlaySession):
        """Puts the next key into SDL's queue each time the window is drawn."""

        @property
        def status(self) -> str:
            event = sdl2.SDL_Event()
            event.type = sdl2.SDL_KEYDOWN if symbols else sdl2.SDL_QUIT
            if symbols:
                event.key.keysym.sym = symbols.pop(0)
            sdl2.SDL_PushEvent(ctypes.byref(event))
            return super().status

    session = Pushing(ROM, tmp_path)
    play_in_window(session)
    assert session.written == [tmp_path / "state1.state", tmp_path / "trace1.json"]
    assert Trace.load(tmp_path / "trace1.json").actions == ("UP", "LEFT", "RIGHT")


# -- what is shown --


def test_half_blocks_show_every_pixel() -> None:
    """Read back by colour: the foreground is the upper pixel, the background the lower."""
    picture = np.random.default_rng(2).integers(0, 4, (6, 8), dtype=np.uint8)
    shades = {"231": 0, "250": 1, "248": 1, "240": 2, "16": 3}
    rows = []
    for line in half_blocks(TERMINAL_COLORS[picture]):
        upper, lower, colours = [], [], (0, 0)
        for part in line.removesuffix("\x1b[0m").split("\x1b[38;5;")[1:]:
            codes, blocks = part.split("m")
            first, second = codes.split(";48;5;")
            colours = shades[first], shades[second]
            upper += [colours[0]] * len(blocks)
            lower += [colours[1]] * len(blocks)
        rows += [upper, lower]
    np.testing.assert_array_equal(np.array(rows), picture)
    sheet = mosaic(np.stack([picture] * 5), columns=2)
    assert sheet.shape == (3 * 7 - 1, 2 * 9 - 1)
    np.testing.assert_array_equal(sheet[7:13, 9:], picture)


# -- traces --


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From power-on through the title into the house."""
    folder = tmp_path_factory.mktemp("trace")
    session = PlaySession(ROM, folder)
    for name in spec(1)["start_actions"]:
        session.press(name)
    session.quit()
    return session.written[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "is damaged"),
        ({"format": "gbxcule-stages"}, "is not a trace"),
        ({"version": 3}, "has version 3, not 1"),
        ({"actions": ["UP", "JUMP"]}, "action 'JUMP' is unknown"),
        ({"actions": "UP"}, "its fields are not those of a trace"),
        ({"extra": 1}, "its fields are not those of a trace"),
        ({"rom_sha256": "00"}, "was recorded with rom_sha256 00"),
        ({"frames_per_step": 12}, "was recorded with frames_per_step 12, not 24"),
        ({"start_picture": "00"}, "was recorded from another start"),
        ({"end_picture": "00"}, "does not end at the picture"),
    ],
)
def test_traces_that_are_refused(
    trace: Path, tmp_path: Path, change: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    text = change if isinstance(change, str) else json.dumps(json.loads(trace.read_text()) | change)
    path.write_text(text)
    assert cli.main(["goal", "make", "--rom", str(ROM), "--actions", str(path), "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err
    assert message in line
    assert str(path) in line
    assert len(line.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_actions_may_be_a_trace_a_list_or_a_text(trace: Path, tmp_path: Path) -> None:
    names = spec(1)["start_actions"]
    assert read_actions(trace) == (names, Trace.load(trace))
    (tmp_path / "list.json").write_text(json.dumps(names))
    (tmp_path / "text").write_text("\n".join(names))
    for name in ("list.json", "text"):
        assert read_actions(tmp_path / name) == (names, None)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_actions(tmp_path / "nothing")
    (tmp_path / "list.json").write_text("[1,")
    with pytest.raises(ConfigError, match="is damaged"):
        read_actions(tmp_path / "list.json")


def test_two_ways_make_one_goal(tmp_path: Path) -> None:
    """The ends of both ways count, each with its own picture, and the files say how to get there again."""
    stage = spec(1)
    (tmp_path / "start").write_text(" ".join(stage["start_actions"]))
    ways = [["DOWN", "RIGHT"], ["DOWN", "RIGHT", "LEFT"]]
    flags = []
    for number, way in enumerate(ways):
        (tmp_path / str(number)).write_text(" ".join(way))
        flags += ["--actions", str(tmp_path / str(number))]
    command = ["goal", "make", "--rom", str(ROM), "--start-actions", str(tmp_path / "start"), *flags]
    assert cli.main([*command, "--out", str(tmp_path / "out")]) == 0
    goal = GoalTemplate.load(tmp_path / "out" / "goal")
    assert len(goal.frames) == 2
    assert [goal.meta["solve_actions"], *goal.meta["more_ways"]] == ways
    for way in ways:
        env = GBxCuLEEnv(ROM, start_state=tmp_path / "out/start.state", goal_dir=tmp_path / "out/goal", k_consecutive=1)
        env.reset()
        ends = [bool(env.step(np.array([action]))[2][0]) for action in CODEC.parse(way)]
        assert ends[-1] or ends[1]
