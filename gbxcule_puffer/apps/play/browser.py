"""`puffer play` on a web page: keyboard, gamepad or touch, and an agent's game from the same state."""

from __future__ import annotations

import json
import queue
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.apps.play.agent import Agent
from gbxcule_puffer.apps.play.session import Pace, PlaySession
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.tasks.actions import BUTTONS
from gbxcule_puffer.tasks.ram.search import ANY
from gbxcule_puffer.trainers.wall.encoding import encoded
from gbxcule_puffer.trainers.wall.server import Server

PAGE = Path(__file__).with_name("play.html")
SCRIPT = "ram.js"
MOST_NAMES = 5_000  # symbols that the page can complete
RAM_SECONDS = 0.1  # between two messages on the RAM
TAIL = 2_412  # samples, of three frames
IDLE_SECONDS = 0.25  # without a message
MOST_MESSAGES = 256  # that wait to be taken; more than a person sends


def play_in_browser(session: PlaySession, address: str) -> None:
    """Serves the session as a page until it ends, or until Ctrl-C, which also saves it.

    Raises: ConfigError if the address cannot be listened on.
    """
    page = BrowserPlay(session, address)
    print(f"play    {page.server.url}   (Ctrl-C ends it)", flush=True)
    try:
        while not session.finished:
            page.turn()
    except KeyboardInterrupt:
        session.quit()
    finally:
        page.close()


class BrowserPlay:
    """The page of a session. The owner of the session calls `turn`; the game stands still while there is no viewer."""

    def __init__(self, session: PlaySession, address: str) -> None:
        self.session, self._held, self._pace = session, list[str](), Pace()
        self._beside: PlaySession | None = None  # the agent's own game
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue(MOST_MESSAGES)
        self._shown = -1  # viewers that the last picture was sent to
        self._paused = False  # while somebody types
        self._samples, self._tail = 0, np.zeros((0, 2), np.uint8)  # of sound that were sent, and the last of them
        self._ram, self._ram_due = "", 0.0  # what was sent last, and when the next may be
        hello = {"title": session.emulator.title or session.rom.stem, "goal": session.goal}
        hello |= {
            "sound": session.emulator.sound,
            "agent": session.agent is not None,
            "names": session.memory.names[:MOST_NAMES],
            "readings": ANY,
        }
        self.server = Server(address, PAGE, hello, self._receive, [SCRIPT])

    def turn(self) -> None:
        """One frame in real time; otherwise the requests of the page, if any arrive soon."""
        session = self.session
        if not self.server.viewers:
            self._held, self._paused = [], False
        runs = (session.runs or self._beside) and self.server.viewers and not self._paused
        changed = self._take(0 if runs else IDLE_SECONDS)
        if runs and not session.finished:
            if session.runs:
                session.frame(self._held)
            if self._beside:
                self._beside.frame()
            self._pace.wait()
            self._publish()
        elif changed or self.server.viewers != self._shown:
            self._publish()
        self._shown = self.server.viewers

    def close(self) -> None:
        """Ends the server after the last picture."""
        self._publish()
        self.server.close()

    def _receive(self, message: dict[str, Any]) -> None:
        """In the server's thread; surplus messages are dropped."""
        if not self._messages.full():
            self._messages.put_nowait(message)

    def _take(self, seconds: float) -> bool:
        """Carries out all requests of the page, after waiting for the first; False if there was none."""
        found = False
        try:
            message = self._messages.get(timeout=seconds) if seconds else self._messages.get_nowait()
            while found := True:
                self._obey(message)
                message = self._messages.get_nowait()
        except queue.Empty:
            return found

    def _obey(self, message: dict[str, Any]) -> None:
        """Carries out one message; unknown parts are ignored."""
        held, key = message.get("held"), message.get("key")
        if isinstance(held, list):
            self._held = [name for name in held if isinstance(name, str) and name in BUTTONS and name != "NOOP"]
        if key == "b" and self.session.agent:
            self._beside = None if self._beside else self._begin_beside(self.session.agent)
        elif isinstance(key, str):
            self.session.key(key)
        if isinstance(message.get("ram"), str):
            self.session.memory.command(message["ram"])
            self._ram_due = 0.0
        if isinstance(message.get("pause"), bool):
            self._paused = message["pause"]

    def _begin_beside(self, agent: Agent) -> PlaySession | None:
        """The agent's own game, from the player's current state; None if it cannot play."""
        session = self.session
        try:
            own = Agent(agent.trained.path, session.rom, agent.seed + 1, agent.greedy)
            beside = PlaySession(
                session.rom, None, header=own.trained.args.header, model=own.trained.args.model, agent=own
            )
            beside.emulator.load(session.emulator.save(0))
            beside.let_agent_play(True)
        except GBxCuLEError as error:
            session.message = f"the agent cannot play: {error}"
            return None
        return beside

    def _publish(self) -> None:
        session = self.session
        names = ("status", "pressed", "real_time", "agent_plays", "finished")
        header = {name: getattr(session, name) for name in names} | {"beside": self._beside is not None}
        header["paused"] = self._paused
        header["colors"] = session.emulator.model == "cgb"
        header["written"] = [path.name for path in session.written]
        parts = [session.shown] if self._beside is None else [session.shown, self._beside.shown]
        header["heard"], sound = self._sound()
        pictures = b"".join(encoded(torch.from_numpy(part)).numpy().tobytes() for part in parts)
        text = json.dumps(header).encode()
        self.server.call(self.server.publish, struct.pack("<I", len(text)) + text + pictures + sound)
        self._publish_ram()

    def _sound(self) -> tuple[int, bytes]:
        """(number of the first sample, samples): the new ones, after some that the last messages had, because a viewer
        does not get each message."""
        new = self.session.take_sound()
        self._tail = np.concatenate([self._tail[-TAIL:], new])
        self._samples += len(new)
        return self._samples - len(self._tail), self._tail.tobytes()

    def _publish_ram(self) -> None:
        """Sends what is known of the RAM where that has changed, some times per second in real time."""
        now = time.monotonic()
        if now < self._ram_due and self.session.runs:
            return
        text = json.dumps({"ram": self.session.memory.state()})
        if text != self._ram:
            self._ram, self._ram_due = text, now + RAM_SECONDS
            self.server.call(self.server.publish, text, "ram")
