"""A page's server: its files and one WebSocket, in a thread of its own. No other path of the disk is served or written.

It listens on this machine only; another address needs a token. A page of another origin is refused, and so is a Host
that is not this machine's name: a page could have its own name lead here. A viewer that does not read loses pictures,
then its connection; the others and the training go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from gbxcule_puffer.errors import ConfigError

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ICON = Path(__file__).with_name("icon.svg")  # of all pages
SOCKET = "/socket"
MAX_VIEWERS = 16
MAX_MESSAGE = 4096  # bytes from a viewer
LAST_SECONDS = 0.2  # for the newest messages to go out before the server ends
SEND_SECONDS = 10  # for which a viewer may leave a picture unread
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
SECURITY = {
    "Content-Security-Policy": "default-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT.

    Raises: ConfigError.
    """
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
        if host and port is not None and not (parts.path or parts.query or parts.username):
            ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
            return ("127.0.0.1" if host == "localhost" else host), port
    except ValueError:
        pass
    raise ConfigError(f"address {address!r:.60} is not HOST:PORT: give an IP address and a port, as in 127.0.0.1:8484")


class Server:
    """Serves a page, and what is `publish`ed to all viewers; `viewers` is their number.

    page: its HTML file; the files of the same name with another ending, and `more`, lie beside it. hello: the first
    message to a viewer; receive: called, in some thread, with each object that a viewer sends, whose answer, if it is
    not None, is sent to that viewer alone.
    """

    def __init__(
        self,
        address: str,
        page: Path,
        hello: dict[str, Any],
        receive: Callable[[dict[str, Any]], object],
        more: Sequence[str] = (),
    ) -> None:
        """Raises: ConfigError where the address cannot be listened on."""
        self.host, self.port = parse_address(address)
        self.is_local = ipaddress.ip_address(self.host).is_loopback
        self.token = "" if self.is_local else secrets.token_urlsafe(16)
        self.viewers = 0
        names = [page.with_suffix(suffix).name for suffix in (".js", ".css")]
        files = [ICON, *(page.with_name(name) for name in (*names, *more))]
        self._files = {"/": page} | {f"/{file.name}": file for file in files}
        self._hello, self._receive = json.dumps(hello), receive
        self._newest: dict[str, bytes | str] = {}  # by their subjects
        self._error: OSError | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="wall", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error:
            reason = os.strerror(self._error.errno) if self._error.errno else self._error  # asyncio's is a sentence
            raise ConfigError(f"address {address} cannot be used ({reason}): give another")

    @property
    def url(self) -> str:
        """The page's address, with the token where one is needed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a function in the server's thread, soon."""
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def begin(self, task: Coroutine[Any, Any, None]) -> None:
        """Runs a task beside the viewers, until the server ends. Call it in the server's thread."""
        self._task = self._loop.create_task(task)

    def publish(self, message: bytes | str, subject: str = "picture") -> None:
        """Sends a message to all viewers, also to those who come later; one that is busy gets the next on the same
        subject. Call it in the server's thread."""
        self._newest[subject] = message
        fresh, self._fresh = self._fresh, self._loop.create_future()
        fresh.set_result(None)

    def close(self) -> None:
        """Ends the server and its thread."""
        self.call(lambda: self._stop.done() or self._stop.set_result(None))
        self._thread.join(5)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._fresh = self._loop.create_future(), self._loop.create_future()
        quiet = logging.getLogger(__name__)  # the one who trains need not read what a stranger sends
        quiet.setLevel(logging.CRITICAL + 1)
        try:
            server = await serve(
                self._show,
                self.host,
                self.port,
                process_request=self._answer,
                compression=None,
                max_size=MAX_MESSAGE,
                server_header=None,
                logger=quiet,
            )
        except OSError as error:
            self._error = error
            self._ready.set()
            return
        self.port = next(iter(server.sockets)).getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop
            await asyncio.sleep(LAST_SECONDS if self.viewers else 0)

    def _answer(self, _: ServerConnection, request: Request) -> Response | None:
        """None lets a viewer's WebSocket begin; else a file of the page, or a refusal."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        path, _mark, query = request.path.partition("?")
        if len(hosts) != 1 or (self.is_local and _name_of(hosts[0]) not in THIS_MACHINE):
            return _reply(HTTPStatus.FORBIDDEN, b"this is another machine's name\n")
        if path in ("/", SOCKET) and self.token:
            given = parse_qs(query).get("token", [""])[0]
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return _reply(HTTPStatus.FORBIDDEN, b"give the token: the trainer has printed the whole address\n")
        if path == SOCKET:
            if origins not in ([f"http://{hosts[0]}"], [f"https://{hosts[0]}"]):
                return _reply(HTTPStatus.FORBIDDEN, b"a page from elsewhere\n")
            if self.viewers >= MAX_VIEWERS:
                return _reply(HTTPStatus.SERVICE_UNAVAILABLE, b"too many viewers\n")
            return None
        file = self._files.get(path)
        if file is None:
            return _reply(HTTPStatus.NOT_FOUND, b"no such page\n")
        return _reply(HTTPStatus.OK, file.read_bytes(), TYPES[file.suffix])

    async def _show(self, connection: ServerConnection) -> None:
        """One viewer, from the greeting to the end of the connection."""
        self.viewers += 1
        reader = asyncio.create_task(self._read(connection))
        sent: dict[str, bytes | str] = {}
        try:
            await connection.send(self._hello)
            while not reader.done():
                fresh = self._fresh
                new = [subject for subject, message in self._newest.items() if sent.get(subject) is not message]
                for subject in new:
                    sent[subject] = self._newest[subject]
                    await asyncio.wait_for(connection.send(sent[subject]), SEND_SECONDS)
                if not new:
                    await asyncio.wait({fresh, reader}, return_when=asyncio.FIRST_COMPLETED)
        except (ConnectionClosed, TimeoutError):
            connection.transport.abort()
        finally:
            self.viewers -= 1
            reader.cancel()

    async def _read(self, connection: ServerConnection) -> None:
        """Hands on what a viewer asks for; what is not an object ends its connection."""
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            async for text in connection:
                try:
                    message = json.loads(text)
                    if not isinstance(message, dict):
                        return
                    answer = await asyncio.to_thread(self._receive, message)
                    if answer is not None:
                        await asyncio.wait_for(connection.send(json.dumps(answer)), SEND_SECONDS)
                except (ValueError, TypeError, RecursionError):
                    return


def _name_of(host: str) -> str | None:
    """The name in HOST:PORT."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _reply(status: HTTPStatus, body: bytes, kind: str = "text/plain") -> Response:
    fixed = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close"}
    return Response(status.value, status.phrase, Headers(fixed | SECURITY), body)
