"""The RAM of a person's game in a terminal, in a window and on the page: what is typed, shown, and sent."""

from __future__ import annotations

import ctypes
import json
import os
import warnings
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gbxcule_puffer.apps.play import window
from gbxcule_puffer.apps.play.browser import BrowserPlay
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.apps.play.terminal import CommandLine
from gbxcule_puffer.tasks.ram import Number
from gbxcule_puffer.tasks.ram.symbol_writing import numbers_in
from tests.apps.test_play import Terminal
from tests.apps.test_play_in_time import turn_until
from tests.support.browser import PATIENCE, Browser

BEGIN = ("NOOP", "START", "NOOP", "NOOP")


@pytest.fixture
def session(tmp_path: Path) -> PlaySession:
    """ORCHARD, where the first apple falls."""
    session = PlaySession("orchard", tmp_path / "play")
    for action in BEGIN:
        session.press(action)
    session.mark()
    return session


# -- terminal --


@pytest.mark.parametrize("size", [(100, 40), (80, 24), (40, 20)])
def test_a_command_line_in_a_terminal(tmp_path: Path, size: tuple[int, int]) -> None:
    """/ opens it; keys go there, not to the game; values stand beside the picture, help in its place."""
    terminal = Terminal(["play", "orchard", "--out", str(tmp_path)], *size)
    terminal.wait_for("/ RAM")
    terminal.press(" \r  ")
    terminal.wait_for("step 4 ")
    terminal.press("/watch livse\r")
    terminal.wait_for("symbol 'livse'")
    terminal.press("/watch livse\x7f\x7fes\r")
    terminal.wait_for("lives is 3")
    terminal.press("/Quit \x1b")
    terminal.wait_for("lives is 3")
    terminal.press("/= 3\r")
    terminal.wait_for("C123")
    terminal.press("/poke lives 9\r")
    terminal.wait_for("lives is 9 now")
    terminal.press("/\x1b[A\r")
    terminal.wait_for("lives is 9 now")
    terminal.press("/name #2 hearts\r")
    terminal.wait_for("hearts is C123")
    terminal.press("/help\r")
    terminal.wait_for("u16be")
    terminal.press("q")
    assert terminal.end() == 0
    assert "hearts" in numbers_in(tmp_path / "orchard.sym")


def test_a_line_is_edited() -> None:
    line = CommandLine()
    assert not line.key("/") and line.is_open
    for key in ["=", "space", "5", "7", "backspace", "left", "\ufffd", "tab"]:
        assert line.key(key) == ""
    assert line.text == "= 5" and line.key("enter") == "= 5" and not line.is_open
    for key, text in (("/", ""), ("down", ""), ("up", "= 5"), ("up", "= 5"), ("down", ""), ("A", "A")):
        line.key(key)
        assert line.text == text
    line.key("backspace")
    line.key("backspace")
    assert not line.is_open and line.text == ""


# -- window --


def test_commands_for_a_window_are_typed_in_its_terminal(
    session: PlaySession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Lines of standard input, half ones too, are answered there; the title has what is watched."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sdl2 = pytest.importorskip("sdl2")
    reader, writer = os.pipe()
    texts = [b"watch li", b"ves\n= 3\nnonsense\n", b"\xff\xfe\n", b""]
    titles: list[str] = []
    show = window.Window.show

    def typing(self: window.Window, picture: object, title: str) -> None:
        titles.append(title)
        show(self, picture, title)  # pyright: ignore[reportArgumentType]
        if texts:
            os.write(writer, texts.pop(0))
            return
        event = sdl2.SDL_Event()
        event.type = sdl2.SDL_QUIT
        sdl2.SDL_PushEvent(ctypes.byref(event))

    monkeypatch.setattr(window.Window, "show", typing)
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        window.play_in_window(session)
    os.close(writer)
    out = capfd.readouterr().out
    assert "lives is 3" in out and "= 3: 2 left" in out and "'nonsense' is not a command" in out
    assert titles[-1].endswith("lives 3") and session.finished


@pytest.mark.parametrize("stdin", [None, "closed", "ended"])
def test_a_window_without_standard_input(stdin: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, a closed one and the end of a pipe: nothing is read, and nothing fails."""
    reader, writer = os.pipe()
    file = os.fdopen(reader)
    os.close(writer)
    if stdin == "closed":
        file.close()
    monkeypatch.setattr("sys.stdin", file if stdin else None)
    lines = window.Lines()
    assert lines.read() == lines.read() == [] and not lines.are_typed
    file.close()


# -- page --


def test_what_the_page_sends_and_is_sent(session: PlaySession) -> None:
    """A command, and what is known after it, also of strangers' messages of other types, which do nothing."""
    page = BrowserPlay(session, "127.0.0.1:0")
    url = page.server.url
    with connect(url.replace("http", "ws") + "socket", origin=url.rstrip("/")) as viewer:  # pyright: ignore[reportArgumentType]

        def known(command: object) -> dict[str, object]:
            before = session.memory.answered
            viewer.send(json.dumps({"ram": command}))
            turn_until(page, lambda: session.memory.answered > before)
            page.turn()
            while True:
                message = viewer.recv(timeout=PATIENCE)
                state = json.loads(message).get("ram") if isinstance(message, str) else None
                if state and state["answered"] > before:
                    return state

        assert known("= 3")["left"] == 2
        state = known("poke C123 9")
        assert state["failed"] is False and {"value": 9}.items() <= state["matches"][-1].items()  # pyright: ignore
        assert known("poke C123 999")["failed"] is True
        assert known("x" * 400)["failed"] is True
        before, answered = session.emulator.state_hash(), session.memory.answered
        for message in ({"ram": 5}, {"ram": ["= 3"]}, {"ram": None}, {"pause": "yes"}, {"pause": 1}, {"ram": {"a": 1}}):
            viewer.send(json.dumps(message))
        viewer.send(json.dumps({"key": "space"}))
        turn_until(page, lambda: session.actions == ["NOOP"])
        assert session.memory.answered == answered and not page._paused
        viewer.send(json.dumps({"key": "u"}))
        turn_until(page, lambda: not session.actions)
        assert session.emulator.state_hash() == before
    page.close()


def test_a_poke_needs_what_a_key_needs(session: PlaySession) -> None:
    """Another origin, another machine's name, and on another address no token: 403 before any message."""
    for address in ("127.0.0.1:0", "0.0.0.0:0"):
        page = BrowserPlay(session, address)
        socket = f"ws://127.0.0.1:{page.server.port}/socket"
        token = f"?token={page.server.token}" if page.server.token else ""
        origin = f"http://127.0.0.1:{page.server.port}"
        refused = [(socket + token, "http://example.org")]
        refused += [(socket, origin), (socket + "?token=wrong", origin)] if token else []
        for url, given in refused:
            with pytest.raises(InvalidStatus, match="403"):
                connect(url, origin=given)  # pyright: ignore[reportArgumentType]
        with connect(socket + token, origin=origin) as viewer:  # pyright: ignore[reportArgumentType]
            viewer.send(json.dumps({"ram": "watch lives"}))
            turn_until(page, lambda: "lives" in session.memory.watches)
        session.memory.command("unwatch lives")
        page.close()


def test_the_game_waits_while_somebody_types(session: PlaySession) -> None:
    """Real time stops, and goes on when the field is left, or the page."""
    page = BrowserPlay(session, "127.0.0.1:0")
    url = page.server.url
    session.key("r")
    with connect(url.replace("http", "ws") + "socket", origin=url.rstrip("/")) as viewer:  # pyright: ignore[reportArgumentType]
        turn_until(page, lambda: len(session.actions) > 3)
        viewer.send(json.dumps({"pause": True}))
        turn_until(page, lambda: page._paused)
        frames = len(session.actions)
        page.turn()
        page.turn()
        assert len(session.actions) == frames
        viewer.send(json.dumps({"pause": False}))
        turn_until(page, lambda: len(session.actions) > frames)
        viewer.send(json.dumps({"pause": True}))
        turn_until(page, lambda: page._paused)
    turn_until(page, lambda: not page._paused)
    page.close()


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_the_memory_pane_in_a_browser(session: PlaySession, size: tuple[int, int]) -> None:
    """Typed conditions narrow, and are no keys of the game; rows are frozen, written and named; nothing is too wide."""
    page, memory = BrowserPlay(session, "127.0.0.1:0"), session.memory
    with Browser(*size) as browser:

        def shows(script: str) -> None:
            turn_until(page, lambda: browser.run(script))

        def type_into(selector: str, text: str, end: str = "Enter") -> None:
            browser.run(f"document.querySelector({selector!r}).focus()")
            for key in text:
                browser._send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
                browser._send("Input.dispatchKeyEvent", type="keyUp", key=key)
            more = {"text": "\r"} if end == "Enter" else {}
            browser._send("Input.dispatchKeyEvent", type="keyDown", key=end, windowsVirtualKeyCode=13, **more)
            browser._send("Input.dispatchKeyEvent", type="keyUp", key=end, windowsVirtualKeyCode=13)

        browser.open(page.server.url)
        shows("typeof hello === 'object' && hello !== null && header.status !== undefined")
        assert browser.run("$('names').children.length") == len(memory.names) > 10
        type_into("#where", "lives")
        shows("document.querySelector('#watches .value')?.textContent === '3'")
        type_into("#condition", "= 3")
        shows("$('count').textContent === '2 left'")
        shows("document.activeElement === document.body")  # the game has its keys again
        type_into("#condition", "mtars uq", "Escape")
        page.turn()
        assert session.actions == [] and not session.runs and not session.finished, "no key has reached the game"
        type_into("#condition", "x")
        shows("$('answer').classList.contains('error') && $('answer').textContent.includes('not a command')")
        browser.run("document.activeElement.blur()")
        browser.run("document.querySelector('#watches .value').click()")
        type_into("#watches .ask input", "8")
        turn_until(page, lambda: memory._values()[0] == 8)
        browser.run("document.querySelector('#watches .freeze').click()")
        turn_until(page, lambda: memory.frozen)
        shows("document.querySelector('#watches .freeze').classList.contains('on')")
        browser.run("document.querySelector('#matches [title=\"name C123\"]').click()")
        browser.run("document.querySelector('#matches .ask input').value = ''")
        type_into("#matches .ask input", "hearts")
        turn_until(page, lambda: memory.target.is_file() and numbers_in(memory.target) == {"hearts": Number(0xC123)})
        shows("[...document.querySelectorAll('#watches .name')].some((each) => each.textContent === 'hearts')")
        browser.run("document.querySelector('[data-ram=unchanged]').click()")
        turn_until(page, lambda: memory.conditions[-1] == "unchanged")
        browser.run("$('reading').value = 'digits3'; $('begin').click()")
        turn_until(page, lambda: memory.conditions == [] and (memory.left or 0) > 1000)
        shows("$('matches').rows.length === 50")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/'}))")
        assert browser.run("document.activeElement.id") == "condition"
        browser.run("document.activeElement.blur()")
        browser._send("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
        turn_until(page, lambda: session.actions == ["LEFT"])
    page.close()
