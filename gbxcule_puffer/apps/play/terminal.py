"""`puffer play` in a terminal: the picture in half blocks, one step per key."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import for_terminal, half_blocks, shrunk

TEXT_LINES = 2  # below the picture
LEAST = 40, 20  # columns and lines
ARROWS = {b"A": "up", b"B": "down", b"C": "right", b"D": "left"}
NAMES = {
    b"\r": "enter", b"\n": "enter", b" ": "space", b"\x7f": "backspace", b"\x08": "backspace",
    b"\x03": "q", b"\x04": "q",
}  # fmt: skip
KEY = re.compile(rb"\x1b[\[O]([ABCD])|\x1b[\[O][0-9;]*[~A-Za-z]|\x1b[\[O]?$|.", re.DOTALL)
ESCAPE_SECONDS = 0.05  # the rest of an arrow key's bytes comes within this time


def play_in_terminal(session: PlaySession) -> None:
    """Shows the session in this terminal until it ends; then the terminal is restored.

    Raises: ConfigError if there is no terminal, or it is too small.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("puffer play needs a terminal or a window: run it in a terminal, or give --browser")
    size = os.get_terminal_size(sys.stdout.fileno())
    if size.columns < LEAST[0] or size.lines < LEAST[1]:
        raise ConfigError(
            f"the terminal has {size.columns} columns and {size.lines} lines: make it {LEAST[0]} by {LEAST[1]} or "
            "larger, or give --browser"
        )
    with _raw_terminal(sys.stdin.fileno()):
        view = _View(sys.stdout.fileno())
        view.draw(session)
        for name in _keys(sys.stdin.fileno()):
            if name in ("r", "p"):
                session.message = "needs a window or a browser"
            else:
                session.key(name)
            view.draw(session)
            if session.finished:
                return
        session.quit()  # the terminal is gone


class _View:
    """The terminal's contents; only changed lines are written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.shown: list[str] = []
        self.size = os.get_terminal_size(fd)

    def draw(self, session: PlaySession) -> None:
        size = os.get_terminal_size(self.fd)
        clear = size != self.size or not self.shown
        self.size = size
        lines = [
            *half_blocks(picture_for(session.shown, *size)),
            session.status[: size.columns],
            _help(session.help, size.columns),
        ]
        out = "\x1b[2J" if clear else ""
        for number, line in enumerate(lines[: size.lines]):
            if clear or line != self.shown[number]:
                out += f"\x1b[{number + 1};1H{line}\x1b[K"
        self.shown = lines
        data = out.encode()
        while data:
            data = data[os.write(self.fd, data) :]


def _help(keys: str, columns: int) -> str:
    """The line of the keys, with SELECT where it fits."""
    more = f"{keys}  backspace SELECT"
    return (more if len(more) <= columns else keys)[:columns]


def picture_for(whole: np.ndarray, columns: int, lines: int) -> np.ndarray:
    """A picture in a terminal's colours: all pixels, every second one or, in a small terminal, shrunk."""
    rows = 2 * (lines - TEXT_LINES)
    for step in (1, 2):
        picture = whole[::step, ::step]
        if picture.shape[0] <= rows and picture.shape[1] <= columns:
            return for_terminal(picture)
    return shrunk(whole, columns, rows)


def _keys(fd: int) -> Iterator[str]:
    """Names of the keys pressed, until the terminal is closed."""
    while True:
        data = os.read(fd, 1024)
        while data and re.search(rb"\x1b[\[O]?$", data) and select.select([fd], [], [], ESCAPE_SECONDS)[0]:
            more = os.read(fd, 1024)
            if not more:
                break
            data += more
        if not data:
            return
        for match in KEY.finditer(data):
            key = match.group(0)
            yield ARROWS.get(match.group(1) or b"") or NAMES.get(key) or key.decode("ascii", "replace").lower()


@contextmanager
def _raw_terminal(fd: int) -> Iterator[None]:
    """Reads keys one by one without echo, on another screen without a cursor; restores everything at the end, also
    after SIGTERM."""

    def stop(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    saved, handler = termios.tcgetattr(fd), signal.signal(signal.SIGTERM, stop)
    try:
        tty.setraw(fd)
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        sys.stdout.flush()
        yield
    finally:
        sys.stdout.write("\x1b[0m\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)
        signal.signal(signal.SIGTERM, handler)
