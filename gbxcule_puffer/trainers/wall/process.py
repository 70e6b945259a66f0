"""The wall's server as a process of its own: requests of viewers and strangers take no time from the training.

The two processes hold the ends of a pipe. From the training come an object to begin with, then pictures: a header as
JSON, then bytes. The server answers with its port and token or an error, then with what viewers ask for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.trainers.wall.footprints import Footprints
from gbxcule_puffer.trainers.wall.server import Server

WISHES = ("focus", "watches", "speed", "paused", "step")  # what a viewer may ask for
TELL_SECONDS = 0.05  # between two times that the training hears of viewers
NICE = 10  # where cores are few, the training goes first
GONE = (EOFError, OSError)  # the other process has ended


class ServerProcess:
    """A `Server` in a process of its own, which ends with this one; `viewers` is the number of its viewers.

    hello: the first message to a viewer; receive: called in a thread with what viewers ask for, the latest of each of
    WISHES, at most every TELL_SECONDS; place: bytes that tell a Game Boy's place, at the end of each picture.
    """

    def __init__(
        self,
        address: str,
        page: Path,
        hello: dict[str, Any],
        receive: Callable[[dict[str, Any]], None],
        more: Sequence[str] = (),
        place: int = 0,
    ) -> None:
        """Raises: ConfigError where the address cannot be listened on."""
        self.viewers, self._receive = 0, receive
        self._link, theirs = Pipe()
        fd = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gbxcule_puffer.trainers.wall.process", str(fd)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[fd],
            env=child_environment(),
            start_new_session=True,  # Ctrl-C is for the training, which then closes the pipe
        )
        theirs.close()
        begin = {"address": address, "page": str(page), "hello": hello, "more": list(more), "place": place}
        try:
            self._link.send_bytes(json.dumps(begin).encode())
            answer = json.loads(self._link.recv_bytes())
        except GONE:
            answer = {"error": "the wall's server has ended: see above"}
        if "error" in answer:
            self._process.wait()
            raise ConfigError(answer["error"])
        self.url, self.port = answer["url"], answer["port"]
        threading.Thread(target=self._listen, name="wall", daemon=True).start()

    def send(self, header: dict[str, Any], payload: np.ndarray) -> None:
        """Hands a picture over, uint8; waits until the server has taken it.

        Raises: OSError where the server is gone.
        """
        self._link.send_bytes(json.dumps(header).encode())
        self._link.send_bytes(payload.data)

    def close(self) -> None:
        """Ends the server."""
        self._process.terminate()
        self._process.wait()

    def _listen(self) -> None:
        try:
            while True:
                message = json.loads(self._link.recv_bytes())
                self.viewers = message.pop("viewers")
                self._receive(message)
        except GONE:
            self.viewers = 0


def serve(link: Connection) -> None:
    """The server's process, until the training has ended."""
    begin, wishes = json.loads(link.recv_bytes()), dict[str, Any]()

    def receive(message: dict[str, Any]) -> None:
        wishes.update((name, message[name]) for name in WISHES if name in message)

    async def tell() -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while True:
                await asyncio.sleep(TELL_SECONDS)
                if wishes or server.viewers != sent:
                    sent = server.viewers
                    link.send_bytes(json.dumps({"viewers": sent, **wishes}).encode())
                    wishes.clear()

    try:
        server = Server(begin["address"], Path(begin["page"]), begin["hello"], receive, begin["more"])
    except ConfigError as error:
        link.send_bytes(json.dumps({"error": str(error)}).encode())
        return
    link.send_bytes(json.dumps({"url": server.url, "port": server.port}).encode())
    server.call(server.begin, tell())
    place, envs = begin["place"], begin["hello"]["num_envs"]
    footprints = Footprints(np.array(begin["hello"]["envs"])) if place else None
    while True:
        text, data, cells = link.recv_bytes(), link.recv_bytes(), b""
        if footprints:
            header, begins = json.loads(text), len(data) - envs * place
            cells = footprints.take(np.frombuffer(data, np.uint8, offset=begins).reshape(envs, place))
            text, data = json.dumps(header | {"cells": len(cells)}).encode(), data[:begins]
        server.call(server.publish, struct.pack("<I", len(text)) + text + data + cells)


if __name__ == "__main__":
    os.nice(NICE)
    with contextlib.suppress(*GONE):
        serve(Connection(int(sys.argv[1])))
