"""A headless Chromium, driven by its debugging protocol."""

from __future__ import annotations

import atexit
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

PATIENCE = 180.0  # seconds until a test says that something does not come; nothing is asserted about speed
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@cache
class Chromium:
    """A headless Chromium for all tests of a process, which takes longer to start than most of them."""

    def __init__(self) -> None:
        program = next((path for name in NAMES if (path := shutil.which(name))), None)
        if program is None:
            pytest.skip("no Chromium: install the package chromium")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its children end later
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"]
        flags += [f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(
            [program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": "/tmp"}
        )
        active = Path(self._folder.name, "DevToolsActivePort")
        wait_for(lambda: active.exists() and len(active.read_text().split()) == 2)
        port, path = active.read_text().split()
        self.url = f"ws://127.0.0.1:{port}{path}"
        atexit.register(self.end)

    def end(self) -> None:
        """End it, where it has not ended."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._folder.cleanup()


class Browser(AbstractContextManager):
    """One page with nothing that another one left; the test is skipped where no Chromium is installed."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(connect(Chromium().url, max_size=None, compression=None))
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._context = self._send("Target.createBrowserContext")["browserContextId"]
        page = self._send("Target.createTarget", url="about:blank", browserContextId=self._context)
        attached = self._send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """Show the page as on a screen of this size, below 500 pixels a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._send("Emulation.setDeviceMetricsOverride", **size)

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def touch(self, kind: str, *elements: str) -> None:
        """A touchStart by a finger on each element, given by CSS selectors, or the touchEnd of all fingers."""
        centre = "(e => { const b = e.getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })"
        points = [self.run(f"{centre}(document.querySelector({each!r}))") for each in elements]
        self._send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
        touches = [{**point, "id": number} for number, point in enumerate(points)]
        self._send("Input.dispatchTouchEvent", type=kind, touchPoints=touches)

    def open(self, url: str) -> None:
        self._send("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_until(self, script: str, seconds: float = PATIENCE) -> None:
        """Waits for a JavaScript expression to be true."""
        wait_for(lambda: self.run(script), seconds)

    def screenshot(self, path: Path) -> None:
        """The page as it looks, as a PNG."""
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot", format="png")["data"]))

    def __exit__(self, *_: object) -> None:
        self._session = None
        self._send("Target.disposeBrowserContext", browserContextId=self._context)
        self._stack.close()


def wait_for(condition: Any, seconds: float = PATIENCE) -> None:
    """Raises: AssertionError where a condition does not become true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.05)
