"""`puffer play` in a terminal: the picture in half blocks, one step per key."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import textwrap
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from types import FrameType

import numpy as np

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.pictures import for_terminal, half_blocks, shrunk

TEXT_LINES, RAM_COLUMNS = 2, 26  # below the picture, and beside it where something is known of the RAM
OPENS, ESCAPE = "/", "\x1b"  # the command line
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
        line = CommandLine()
        for key in _keys(sys.stdin.fileno()):
            name = key.lower()
            view.page = []
            if line.is_open or key == OPENS:
                command = line.key(key)
                if command:
                    view.say(session, session.memory.command(command))
            elif name in ("r", "p"):
                session.message = "needs a window or a browser"
            else:
                session.key(name)
            view.draw(session, line)
            if session.finished:
                return
        session.quit()  # the terminal is gone


class CommandLine:
    """A line that is typed below the picture: a command for the game's RAM."""

    def __init__(self) -> None:
        self.is_open, self.text = False, ""
        self._history: list[str] = []
        self._index = 0

    def key(self, key: str) -> str:
        """Takes a key of _keys; returns the line when it is finished, else nothing."""
        if not self.is_open:
            self.is_open, self.text, self._index = True, "", len(self._history)
        elif key == "enter":
            self.is_open = False
            self._history += [self.text] if self.text.strip() else []
            return self.text
        elif key == ESCAPE or (key == "backspace" and not self.text):
            self.is_open = False
        elif key == "backspace":
            self.text = self.text[:-1]
        elif key in ("up", "down"):
            self._index = min(max(self._index + (1 if key == "down" else -1), 0), len(self._history))
            self.text = [*self._history, ""][self._index]
        elif key == "space" or (len(key) == 1 and key.isascii() and key.isprintable()):
            self.text += " " if key == "space" else key
        return ""


class _View:
    """The terminal's contents; only changed lines are written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.page: list[str] = []  # in place of the picture, until the next key
        self.shown: list[str] = []
        self.size = os.get_terminal_size(fd)

    def say(self, session: PlaySession, text: str) -> None:
        """Shows a line below the picture, more in its place."""
        lines = text.splitlines()
        session.message = lines[0] if len(lines) == 1 else ""
        self.page = [part for line in lines for part in textwrap.wrap(line, self.size.columns)] if lines[1:] else []

    def draw(self, session: PlaySession, line: CommandLine | None = None) -> None:
        size = os.get_terminal_size(self.fd)
        clear = size != self.size or not self.shown
        self.size = size
        is_open = line is not None and line.is_open
        below = f"{OPENS} {line.text}_" if line is not None and is_open else session.status
        lines = [
            *self._whole(session, *size),
            below[-size.columns :] if is_open else below[: size.columns],
            _help(session.help, size.columns),
        ]
        clear |= len(lines) != len(self.shown)
        out = "\x1b[2J" if clear else ""
        for number, text in enumerate(lines[: size.lines]):
            if clear or text != self.shown[number]:
                out += f"\x1b[{number + 1};1H{text}\x1b[K"
        self.shown = lines
        data = out.encode()
        while data:
            data = data[os.write(self.fd, data) :]

    def _whole(self, session: PlaySession, columns: int, lines: int) -> list[str]:
        """The lines of the picture, with what is known of the RAM beside it; or those of a page of text."""
        if self.page:
            return self.page[: lines - TEXT_LINES]
        rows = session.memory.lines(lines - TEXT_LINES)
        picture = picture_for(session.shown, columns - (RAM_COLUMNS if rows else 0), lines)
        width = columns - picture.shape[1] - 1
        blocks = half_blocks(picture)
        return [f"{block} {row[:width]}" for block, row in zip_longest(blocks, rows[: len(blocks)], fillvalue="")]


def _help(keys: str, columns: int) -> str:
    """The line of the keys, with SELECT where it fits, and less space between them where it does not."""
    more = f"{OPENS} RAM  {keys}"
    for line in (f"{more}  backspace SELECT", more):
        if len(line) <= columns:
            return line
    return more.replace("  ", " ")[:columns]


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
            yield ARROWS.get(match.group(1) or b"") or NAMES.get(key) or key.decode("ascii", "replace")


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
