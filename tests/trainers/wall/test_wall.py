"""The wall: viewers see what the env shows, strangers see nothing, and nobody holds the training up."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from cleanrl_style import a2c_streaming
from gbxcule_puffer import env_creator
from gbxcule_puffer.apps.play import browser as play
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.trainers.blocks.replay import unpack
from gbxcule_puffer.trainers.wall.process import TELL_SECONDS
from gbxcule_puffer.trainers.wall.server import MAX_VIEWERS, Server, parse_address
from gbxcule_puffer.trainers.wall.wall import PAGE, Wall
from tests.support.browser import PATIENCE, wait_for
from tests.support.signals import HEARS_CTRL_C
from tests.support.viewers import next_picture, read, receive_picture, viewer

ROOT = Path(__file__).parents[3]
ENVS = 80  # more than are shown


@pytest.fixture
def wall() -> Iterator[Wall]:
    env = env_creator("toy")(num_envs=ENVS, device="cpu", seed=1)
    env.reset(seed=1)
    with Wall(env, "toy", lambda: {"step": 7, "losses/value": float("nan")}, "127.0.0.1:0", controls=True) as wall:
        yield wall
    env.close()


def show(wall: Wall) -> None:
    """One step and its picture."""
    next_picture(wall)
    wall.env.step(torch.zeros(ENVS, dtype=torch.int64))
    wall.look()


def status_of(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_viewer_sees_the_env(wall: Wall) -> None:
    with viewer(wall) as connection:
        hello = json.loads(connection.recv(timeout=PATIENCE))
        rows, columns, envs = hello["rows"], hello["columns"], hello["envs"]
        assert hello["num_envs"] == ENVS and len(envs) == 64 and envs[0] == 0 and envs[-1] < ENVS
        show(wall)
        header, payload = read(connection.recv(timeout=PATIENCE))
    assert header["step"] == 7 and header["losses/value"] is None
    numbers = np.frombuffer(payload[: 3 * 4 * 64], dtype=np.float32).reshape(3, 64)
    assert (numbers[1] == wall.env.rewards[envs].numpy()).all()
    packed = torch.tensor(list(payload[3 * 4 * 64 :]), dtype=torch.uint8).reshape(64, rows, columns // 4)
    assert torch.equal(unpack(packed), wall.env.observations[envs, -1])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_viewer_sees_games(device: str) -> None:
    """Of the Game Boys shown their pictures, of one of them the RAM that was asked for, and of all their places."""
    env = GBxCuLEEnv(ROM, ENVS, device=device, io="torch", max_steps=64)
    env.reset(seed=1)
    assert env.position is not None
    generator = torch.Generator().manual_seed(1)
    with Wall(env, "games", dict, "127.0.0.1:0") as wall, viewer(wall) as connection:
        envs = json.loads(connection.recv(timeout=PATIENCE))["envs"]
        connection.send(json.dumps({"focus": 5, "watches": ["C0A1", "FF80"]}))
        wait_for(lambda: wall._watches)
        for _ in range(12):
            env.step(torch.randint(8, (ENVS,), generator=generator).to(env.device))
            next_picture(wall)
            wall.look()
            header, payload = receive_picture(connection)
        assert list(payload[12 * 64 : 12 * 64 + 2]) == env.ram[[0xC0A1, 0xFF80]][envs[5]].tolist()
        packed = torch.frombuffer(bytearray(payload[12 * 64 + 2 : -header["cells"]]), dtype=torch.uint8)
        shown = unpack(packed.reshape(64, 72, 20))
        assert torch.equal(shown, env.observations[envs, -1].cpu()) and len(shown.unique(dim=0)) > 1
        cells = np.frombuffer(payload[-header["cells"] :], "<i4")[:64]
        assert cells.tolist() == [
            int.from_bytes(bytes(row), "big") for row in env.ram[list(env.position)][envs].tolist()
        ]
    env.close()


def test_nothing_is_gathered_while_nobody_looks(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall.env, "pictures", lambda _: pytest.fail("somebody looked"))
    wall.look()
    with viewer(wall) as connection:
        connection.recv(timeout=PATIENCE)
    wait_for(lambda: wall._server.viewers == 0)
    wall.look()


@pytest.mark.parametrize("page", [PAGE, play.PAGE])
def test_a_page_has_an_icon(page: Path) -> None:
    """Without one browsers ask for favicon.ico, and say that it is missing."""
    server = Server("127.0.0.1:0", page, {}, print)
    try:
        html = urllib.request.urlopen(server.url, timeout=PATIENCE).read().decode()
        (icon,) = re.findall('<link rel="icon" href="(.+?)"', html)
        with urllib.request.urlopen(server.url + icon, timeout=PATIENCE) as response:
            assert response.headers["Content-Type"].startswith("image/svg+xml")
            assert ElementTree.fromstring(response.read()).tag == "{http://www.w3.org/2000/svg}svg"
    finally:
        server.close()


def test_strangers_get_nothing(wall: Wall) -> None:
    url = wall.url
    assert status_of(url) == 200 and status_of(url + "page.js") == 200
    for path in ("../page.py", "..%2f..%2fetc/passwd", "server.py", "page.html", "wall/../page.js?x"):
        assert status_of(url + path) == 404, path
    assert status_of(url, Host="example.org") == 403  # a name of a stranger's that leads here
    for origin in ("http://example.org", "null", url.replace("127.0.0.1", "localhost")):
        with pytest.raises(InvalidStatus, match="403"):
            viewer(wall, origin)
    with pytest.raises(InvalidStatus, match="403"):
        connect(url.replace("http", "ws") + "socket")  # no page at all


def test_another_address_needs_the_token() -> None:
    env = env_creator("toy")(num_envs=2, device="cpu")
    env.reset()
    with Wall(env, "toy", dict, "0.0.0.0:0") as wall:
        page, _, token = wall.url.replace("0.0.0.0", "127.0.0.1").partition("?token=")
        assert len(token) > 16
        assert [status_of(page), status_of(f"{page}?token=x"), status_of(f"{page}?token={token}")] == [403, 403, 200]
        place = page.replace("http", "ws") + "socket"
        with pytest.raises(InvalidStatus, match="403"):
            connect(place, origin=page.rstrip("/"))  # pyright: ignore[reportArgumentType]
        with connect(f"{place}?token={token}", origin=page.rstrip("/")) as connection:  # pyright: ignore[reportArgumentType]
            assert json.loads(connection.recv(timeout=PATIENCE))["num_envs"] == 2


def test_a_hundred_viewers_and_one_that_never_reads(wall: Wall) -> None:
    """So many are let in; the one that does not read holds nobody up."""
    port = wall._server.port
    request = (
        f"GET /socket HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
    )
    request += "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    sleeping = [socket.create_connection(("127.0.0.1", port)) for _ in range(99)]
    for each in sleeping[: MAX_VIEWERS - 1]:
        each.sendall(request.encode())
    wait_for(lambda: wall._server.viewers == MAX_VIEWERS - 1)
    with viewer(wall) as reading:
        for each in sleeping[MAX_VIEWERS - 1 :]:
            each.sendall(request.encode())
        assert all(b" 503 " in each.recv(100) for each in sleeping[MAX_VIEWERS - 1 :])
        reading.recv(timeout=PATIENCE)
        for _ in range(100):  # 9 MB, more than a socket's buffers hold
            show(wall)
            assert isinstance(reading.recv(timeout=PATIENCE), bytes)
    for each in sleeping:
        each.close()


def test_without_its_server_the_training_goes_on(wall: Wall) -> None:
    """Also where it ends amid a picture; the one who looked is told nothing more."""
    with viewer(wall) as connection:
        connection.recv(timeout=PATIENCE)
        show(wall)
        os.kill(wall._server._process.pid, signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            while True:
                connection.recv(timeout=PATIENCE)
    for _ in range(3):
        wall._next = 0.0
        wall.look()
    wait_for(lambda: wall._server.viewers == 0)


ALONE = """
import time
from pathlib import Path
from gbxcule_puffer.trainers.wall.process import Begin, ServerProcess
begin = Begin("127.0.0.1:0", Path("gbxcule_puffer/trainers/wall/page.html"), {"num_envs": 1})
print(ServerProcess(begin, print).port, flush=True)
while True:  # reading would miss a Ctrl-C that comes just before
    time.sleep(0.1)
"""


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_the_training(way: signal.Signals) -> None:
    training = subprocess.Popen(
        [sys.executable, "-c", ALONE],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=HEARS_CTRL_C,
    )
    assert training.stdout is not None
    address = f"127.0.0.1:{int(training.stdout.readline())}"
    assert is_listened_on(address)
    training.send_signal(way)
    training.wait(PATIENCE)
    wait_for(lambda: not is_listened_on(address))


def test_what_a_viewer_may_ask_for(wall: Wall) -> None:
    with viewer(wall) as connection:
        connection.send(json.dumps({"focus": 3, "watches": ["C000"], "speed": 1e9, "paused": True}))
        wait_for(lambda: wall.paused)
        assert (wall._focus, wall._watches, wall.speed) == (3, (), 240.0)  # a board has no RAM
        bad = [{"focus": 64}, {"focus": -1}, {"speed": 0}, {"speed": float("nan")}, {"paused": 1}, {"step": "x"}]
        for each in (*bad, {"speed": 10**400}, {"watches": "C000"}, {"viewers": 0}):
            connection.send(json.dumps(each))
            time.sleep(2 * TELL_SECONDS)  # so that each is heard: of several at once the latest counts
        assert wall._server.viewers == 1
        connection.send(json.dumps({"paused": False}))
        wait_for(lambda: not wall.paused)
        assert (wall._focus, wall.speed) == (3, 240.0)
    for bad in ("[]", "{", "[" * 3000, '"' + "x" * 5000 + '"'):
        with viewer(wall) as connection, pytest.raises(ConnectionClosed):
            connection.recv(timeout=PATIENCE)
            connection.send(bad)
            connection.recv(timeout=PATIENCE)
    with viewer(wall) as connection:
        assert connection.recv(timeout=PATIENCE)


def test_wrong_addresses_are_one_line(wall: Wall) -> None:
    assert parse_address("localhost:0") == ("127.0.0.1", 0) and parse_address("[::1]:80") == ("::1", 80)
    for address in ("8484", "example.org:80", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:80/x", ""):
        with pytest.raises(ConfigError, match=r"is not HOST:PORT: give an IP address and a port"):
            parse_address(address)
    with pytest.raises(ConfigError, match=r"^address 127.* cannot be used \(Address already in use\): give another$"):
        Wall(wall.env, "again", dict, f"127.0.0.1:{wall._server.port}")


@pytest.mark.parametrize("env", ["toy", "gbxcule"])
def test_a_watched_training_is_the_same(tmp_path: Path, env: str) -> None:
    """Bit for bit, while a viewer looks, chooses Game Boys and asks for RAM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    seen: list[Any] = []

    def view() -> None:
        with contextlib.suppress(ConnectionClosed):
            wait_for(lambda: is_listened_on(address))
            with connect(f"ws://{address}/socket", origin=f"http://{address}") as connection:  # pyright: ignore[reportArgumentType]
                while True:
                    seen.append(connection.recv(timeout=60))
                    with contextlib.suppress(ConnectionClosed):  # the last messages are still to be read
                        connection.send(json.dumps({"focus": len(seen) % 4, "watches": ["C0A0", "FF80"]}))

    thread = threading.Thread(target=view)
    losses = []
    for name, flags in (("alone", ""), ("watched", f"--watch --watch-address {address}")):
        if flags:
            thread.start()
        arguments = f"--env {env} --smoke --device cpu --run-dir {tmp_path / name} {flags}".split()
        assert a2c_streaming.main(arguments) == 0
        records = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        losses.append([{k: v for k, v in r.items() if k.startswith(("losses/", "eval/"))} for r in records])
    thread.join()
    assert losses[0] == losses[1] and losses[0]
    assert any(isinstance(message, bytes) for message in seen)
    assert {"ended": "ended"} in [json.loads(message) for message in seen if isinstance(message, str)]
    assert "watch" not in json.loads((tmp_path / "watched/manifest.json").read_text())["config"]


def is_listened_on(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
