"""`puffer play` in a window: one step per key, repeated while it is held, or real time. Commands for the game's RAM are
typed in the terminal that it was started from."""

from __future__ import annotations

import os
import select
import sys

from gbxcule_puffer.apps.play.session import STEP_KEYS, Pace, PlaySession
from gbxcule_puffer.integrations.speaker import Speaker
from gbxcule_puffer.integrations.window import DOWN, QUIT, Event, Window
from gbxcule_puffer.pictures import to_rgb

SCALE = 4
WIDTH, HEIGHT = 160, 144
IDLE_MS = 200
MOST_BYTES = 4_096  # of typed text at once
TYPE = "commands for the game's RAM are typed here: help lists them"


def play_in_window(session: PlaySession) -> None:
    """Shows the session in a window until it ends or the window is closed.

    Raises: ConfigError if no window can be opened.
    """
    window = Window("puffer play", HEIGHT, WIDTH, SCALE, "give --browser or --terminal")
    speaker = Speaker("leave --sound out") if session.emulator.sound else None
    lines = Lines()
    print("\n".join([session.help, session.help_in_time, *([TYPE] if lines.are_typed else [])]), flush=True)
    held, pace = set[str](), Pace()
    try:
        while not session.finished:
            for line in lines.read():
                print(session.memory.command(line), flush=True)
            window.show(to_rgb(session.shown), f"{session.status}  {session.memory.title}")
            event = window.event(0 if session.runs else IDLE_MS)
            while event is not None:
                _take(session, event, held)
                event = window.event(0) if session.runs else None
            if session.runs and not session.finished:
                session.frame(held)
                pace.wait()
            if speaker is not None:
                speaker.play(session.take_sound())
    finally:
        if speaker is not None:
            speaker.close()
        window.close()


def _take(session: PlaySession, event: Event, held: set[str]) -> None:
    """Hands a key on; `held` are the buttons that are down."""
    if event.kind == QUIT:
        session.quit()
        return
    button = STEP_KEYS.get(event.key, "NOOP")
    if event.kind == DOWN:
        session.key(event.key)
        held |= {button} - {"NOOP"}
    else:
        held -= {button}


class Lines:
    """Lines of standard input, which are read without waiting: a terminal of ours in the foreground, or a pipe."""

    def __init__(self) -> None:
        try:
            self._file: int | None = sys.stdin.fileno()
        except (AttributeError, OSError, ValueError):  # closed, or not a file
            self._file = None
        if sys.platform == "win32":  # select reads sockets only
            self._file = None
        self._rest = b""

    @property
    def are_typed(self) -> bool:
        """True if a person can type them."""
        return self._file is not None and os.isatty(self._file)

    def read(self) -> list[str]:
        """The lines that have come; a process in the background is stopped if it reads from its terminal."""
        try:
            if self._file is None or (self.are_typed and os.tcgetpgrp(self._file) != os.getpgrp()):
                return []
            if not select.select([self._file], [], [], 0)[0]:
                return []
            data = os.read(self._file, MOST_BYTES)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._file = None
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:MOST_BYTES]
        return [line.decode("utf-8", "replace") for line in lines if line.strip()]
