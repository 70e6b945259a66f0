"""Those who look at a wall, as its page does."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import torch
from websockets.sync.client import ClientConnection, connect

from gbxcule_puffer.trainers.blocks.replay import unpack
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.support.browser import wait_for

WHOLE = (144, 160)


def viewer(wall: Wall, origin: str | None = None) -> ClientConnection:
    """A viewer's connection, as the page makes it."""
    own: Any = origin or wall.url.rstrip("/")
    return connect(wall.url.replace("http", "ws") + "socket", origin=own, max_size=None)


def read(message: Any) -> tuple[dict[str, Any], bytes]:
    """(header, payload) of a picture."""
    (length,) = struct.unpack_from("<I", message)
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def receive_picture(connection: ClientConnection, seconds: float = 10) -> tuple[dict[str, Any], bytes]:
    """(header, payload) of the next picture; texts before it are left out."""
    while isinstance(message := connection.recv(timeout=seconds), str):
        pass
    return read(message)


def receive_text(connection: ClientConnection, key: str, seconds: float = 10) -> Any:
    """What the next text has under a key; pictures and other texts before it are left out."""
    while not (isinstance(message := connection.recv(timeout=seconds), str) and key in (found := json.loads(message))):
        pass
    return found[key]


def next_picture(wall: Wall) -> None:
    """Has the wall look again at once: pictures are not limited to a few a second."""
    wait_for(lambda: wall._server.viewers and not wall._busy)
    wall._next = 0.0


def whole_picture(header: dict[str, Any], payload: bytes) -> np.ndarray | None:
    """The whole picture (144, 160) in a message: shades, or colours as uint16; None where it has none."""
    if not header["whole"]:
        return None
    end = len(payload) - header["cells"]
    return picture_of(payload[end - header["whole"] : end], header["whole_colors"])


def picture_of(data: bytes | None, in_color: bool) -> np.ndarray:
    """A whole picture (144, 160) as the page gets it: shades, or colours as uint16."""
    assert data is not None
    if in_color:
        return np.frombuffer(data, "<u2").reshape(WHOLE)
    return unpack(torch.frombuffer(bytearray(data), dtype=torch.uint8).reshape(144, 40)).numpy()
