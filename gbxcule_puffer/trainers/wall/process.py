"""The wall's server as a process of its own: requests of viewers and strangers take no time from the training.

The two processes hold the ends of a pipe. From the training come a `Begin`, then pictures: a header as JSON, then
bytes; at last a header with `ended`. The server answers with its port and token or an error, then with what viewers
ask for. It also does what would cost the training time: looks names of RAM up, draws whole pictures, counts visits, and
reads the run's curves.
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
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.trainers.wall.curves import Curves
from gbxcule_puffer.trainers.wall.footprints import Footprints
from gbxcule_puffer.trainers.wall.ram_words import find_words
from gbxcule_puffer.trainers.wall.server import Server
from gbxcule_puffer.trainers.wall.whole_picture import Machine, WholePicture

WISHES = ("focus", "watches", "speed", "paused", "step")  # what a viewer may ask the training for
TELL_SECONDS = 0.05  # between two times that the training hears of viewers
CURVE_SECONDS = 2.0  # between two looks at the run's records
END_SECONDS = 1.0  # for which the training waits for the server's end
NICE = 10  # where cores are few, the training goes first
GONE = (EOFError, OSError)  # the other process has ended


@dataclass(frozen=True)
class Begin:
    """The first message to the server's process.

    hello: the first message to a viewer; more: files of the page; position_size: bytes that tell a Game Boy's position,
    at the end of each picture; cartridge, symbols: of the RAM that viewers ask for; machine: of a `Lens`, whose data
    stands before the positions where the header names its size; records: a run's, for its curves.
    """

    address: str
    page: Path
    hello: dict[str, Any]
    more: tuple[str, ...] = ()
    position_size: int = 0
    cartridge: Cartridge | None = None
    symbols: Symbols | None = None
    machine: Machine | None = None
    records: Path | None = None


class ServerProcess:
    """A `Server` in a process of its own, which ends with this one; `viewers` is the number of its viewers.

    receive: called in a thread with what viewers ask for, the latest of each of WISHES, at most every TELL_SECONDS.
    """

    def __init__(self, begin: Begin, receive: Callable[[dict[str, Any]], None]) -> None:
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
        try:
            self._link.send(begin)
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
        """Ends the server: by itself after a header with `ended`, else at once."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
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


class Desk:
    """The server's side of the pipe: what viewers ask for goes to the training, pictures of the training to viewers."""

    def __init__(self, link: Connection, begin: Begin) -> None:
        """Raises: ConfigError where the address cannot be listened on."""
        self._link, self._begin = link, begin
        self._wishes, self._lock = dict[str, Any](), threading.Lock()
        self._whole = None if begin.machine is None else WholePicture(begin.machine)
        self._envs = begin.hello["num_envs"] if begin.position_size else 0
        self._footprints = Footprints(np.array(begin.hello["envs"])) if begin.position_size else None
        self._curves = None if begin.records is None else Curves(begin.records)
        self.server = Server(begin.address, begin.page, begin.hello, self._receive, begin.more)
        self.server.call(self.server.begin, self._tell())

    def _receive(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Keeps what a viewer asks for; the answer has the words of RAM that it names."""
        wishes = {name: message[name] for name in WISHES if name in message}
        found = None
        if "watches" in wishes and self._begin.cartridge is not None:
            found = find_words(wishes["watches"], self._begin.cartridge, self._begin.symbols)
            wishes["watches"] = [word["column"] for word in found if "column" in word]
        with self._lock:
            self._wishes |= wishes
        return None if found is None else {"watches": found}

    async def _tell(self) -> None:
        """Tells the training of viewers, and viewers of the curves."""
        sent, looked = 0, -CURVE_SECONDS
        with contextlib.suppress(OSError):
            while True:
                await asyncio.sleep(TELL_SECONDS)
                with self._lock:
                    wishes, self._wishes = self._wishes, {}
                if wishes or self.server.viewers != sent:
                    sent = self.server.viewers
                    self._link.send_bytes(json.dumps({"viewers": sent, **wishes}).encode())
                if self._curves and sent and time.monotonic() >= looked + CURVE_SECONDS:
                    looked = time.monotonic()
                    if await asyncio.to_thread(self._curves.read):
                        self.server.publish(json.dumps({"curves": self._curves.points()}), "curves")

    def show(self) -> bool:
        """Takes one picture of the training's to the viewers; False where it was the last."""
        header, data, cells, whole = json.loads(self._link.recv_bytes()), self._link.recv_bytes(), b"", None
        if "ended" in header:
            self.server.call(self.server.publish, json.dumps(header), "ended")
            self.server.close()
            return False
        if self._footprints:
            begins = len(data) - self._envs * self._begin.position_size
            cells = self._footprints.take(
                np.frombuffer(data, np.uint8, offset=begins).reshape(self._envs, self._begin.position_size)
            )
            data = data[:begins]
        if self._whole and (size := header.pop("lens_size", 0)):
            whole, data = self._whole.draw(data[-size:]), data[:-size]
            header |= {"whole_error": self._whole.error} if self._whole.error else {}
            header["whole_colors"] = self._whole.in_color
        header |= {"whole": len(whole or b""), "cells": len(cells)}
        text = json.dumps(header).encode()
        message = struct.pack("<I", len(text)) + text + data + (whole or b"") + cells
        self.server.call(self.server.publish, message)
        return True


def serve(link: Connection) -> None:
    """The server's process, until the training has ended."""
    try:
        desk = Desk(link, link.recv())
    except ConfigError as error:
        link.send_bytes(json.dumps({"error": str(error)}).encode())
        return
    link.send_bytes(json.dumps({"url": desk.server.url, "port": desk.server.port}).encode())
    while desk.show():
        pass


if __name__ == "__main__":
    os.nice(NICE)
    with contextlib.suppress(*GONE):
        serve(Connection(int(sys.argv[1])))
