"""The cost of being watched: steps per second of a training with a viewer of its wall, beside those without.

    python -m benchmarks.training.wall_cost --device cuda --num-envs 16384 --out wall_cost.json
    python -m benchmarks.training.wall_cost --device cuda --num-envs 16384 --attack --out wall_attack.json
    python -m benchmarks.training.wall_cost --device cuda --num-envs 16384 --trainer-flags="--compile --bf16"

One training of streaming A2C with --watch, and a viewer that comes and goes: blocks of a few records of metrics.jsonl,
in the order A B B A, B A A B, so that a speed that drifts tells nothing. Four blocks are one measurement of the loss;
its interval is a bootstrap's over them. With --attack the wall has a token and, beside the viewer, 100 connections that
never read, and strangers who ask as fast as they can for what is refused. One JSON record on stdout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.workload import ROOT
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import device_name, git_sha, versions

SETTLING = 1  # records at the start of a block that do not count: a viewer has come or gone amid the first one
WARM_UP = 8  # records before the first block
NEVER = 10**15  # steps: no evaluation, no pictures, no checkpoint
START_SECONDS, RECORD_SECONDS = 300.0, 120.0
RESAMPLES = 10_000
CONNECTIONS, STRANGERS = 100, 4  # of an attack: those who never read; threads that ask without a pause
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
UPGRADE += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


class Viewer(AbstractContextManager):
    """One who reads all there is, as the page does, and watches RAM."""

    def __init__(self, url: str) -> None:
        parts, self._stack = urlsplit(url), ExitStack()
        origin: Any = f"http://{parts.netloc}"
        address = f"ws://{parts.netloc}/socket?{parts.query}"
        self._socket = self._stack.enter_context(connect(address, origin=origin, max_size=None, compression=None))
        self._socket.send(json.dumps({"focus": 0, "watches": ["C000", "C001"]}))
        self.pictures = self.size = 0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with suppress(ConnectionClosed):
            for message in self._socket:
                if isinstance(message, bytes):
                    self.pictures, self.size = self.pictures + 1, self.size + len(message)

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._thread.join()


class Attack(AbstractContextManager):
    """Connections that never read, and strangers whose requests are all refused; `refused` is their number."""

    def __init__(self, url: str) -> None:
        self._parts, self.refused, self._ended = urlsplit(url), 0, False
        self._sleeping = [self._ask(f"/socket?{self._parts.query}", UPGRADE) for _ in range(CONNECTIONS)]
        self._threads = [threading.Thread(target=self._be_refused) for _ in range(STRANGERS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, path: str, headers: str = "", origin: str = "") -> socket.socket:
        host = self._parts.netloc
        connection = socket.create_connection((self._parts.hostname, self._parts.port or 0), timeout=10)
        origin = origin or f"http://{host}"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{headers}\r\n".encode())
        return connection

    def _be_refused(self) -> None:
        query = self._parts.query
        requests = [("/../../../etc/passwd", "", ""), (f"/..%2f..%2fpage.py?{query}", "", ""), ("/", "", "")]
        requests += [("/socket?token=x", UPGRADE, ""), (f"/socket?{query}", UPGRADE, "http://example.org")]
        for request in itertools.cycle(requests):
            if self._ended:
                return
            with suppress(TimeoutError, ConnectionError), self._ask(*request) as connection:
                answer = connection.recv(64)
                if answer.split()[1:2] not in ([b"403"], [b"404"]):
                    raise SystemExit(f"{request} was not refused: {answer!r}")
                self.refused += 1

    def __exit__(self, *_: object) -> None:
        self._ended = True
        for thread in self._threads:
            thread.join()
        for connection in self._sleeping:
            connection.close()


class Training:
    """A run of A2C with --watch in a process of its own."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        host = "0.0.0.0" if args.attack else "127.0.0.1"
        self.metrics = folder / "run" / "metrics.jsonl"
        self._lines, self._line, self._rates = None, "", list[float]()
        own = ["--device", args.device, "--run-dir", str(folder / "run"), "--watch", "--watch-address", f"{host}:0"]
        own += ["--num-envs", str(args.num_envs), "--total-env-steps", str(NEVER), "--stop-at-success", "2"]
        own += ["--eval-every-steps", str(NEVER), "--media-every", str(NEVER)]
        script = str(ROOT / "cleanrl_style" / "a2c_streaming.py")
        self.log = folder / "trainer.log"
        with self.log.open("w") as log:
            command = [sys.executable, script, *own, *shlex.split(args.trainer_flags)]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    @property
    def url(self) -> str:
        """The wall's address, as the trainer has printed it."""
        lines = self.log.read_text().splitlines()
        return next(line.split()[1] for line in lines if line.startswith("watch ")).replace("0.0.0.0", "127.0.0.1")

    def rates(self) -> list[float]:
        """charts/SPS_learner of all records so far; NaN where a step's parts were timed, for which it waits."""
        if self.process.poll() is not None:
            lines = self.log.read_text().splitlines() or ["nothing was said"]
            raise ConfigError(f"the training has ended ({lines[-1]}): mend its flags")
        if self._lines is None and self.metrics.exists():
            self._lines = self.metrics.open()
        while self._lines and (text := self._lines.readline()):
            self._line += text
            if self._line.endswith("\n"):
                row, self._line = json.loads(self._line), ""
                if "charts/SPS_learner" in row:
                    self._rates.append(np.nan if "time/env" in row else row["charts/SPS_learner"])
        return self._rates

    def wait_for(self, count: int, seconds: float = RECORD_SECONDS) -> list[float]:
        """Waits until there are so many records. Raises: ConfigError where one takes too long."""
        end, known = time.monotonic() + seconds, 0
        while len(found := self.rates()) < count:
            if len(found) > known:
                end, known = time.monotonic() + seconds, len(found)
            if time.monotonic() > end:
                raise ConfigError(f"no record within {seconds:.0f} s: give fewer --num-envs")
            time.sleep(0.02)
        return found

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def block(training: Training, args: argparse.Namespace) -> float:
    """Steps per second over the next records."""
    begin = len(training.rates()) + SETTLING
    rates = training.wait_for(begin + args.records)[begin : begin + args.records]
    return 1 / statistics.fmean(1 / rate for rate in rates if rate == rate)


def watched_block(training: Training, args: argparse.Namespace) -> tuple[float, list[float]]:
    """Steps per second with viewers, and what a second brought: pictures and bytes of all viewers, refusals."""
    with ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(training.url)) for _ in range(args.viewers)]
        attack = stack.enter_context(Attack(training.url)) if args.attack else None
        begun = time.monotonic()
        rate = block(training, args)
        seconds = time.monotonic() - begun
        brought = [sum(v.pictures for v in viewers), sum(v.size for v in viewers), attack.refused if attack else 0]
    return rate, [part / seconds for part in brought]


def loss_and_interval(fours: np.ndarray) -> tuple[float, float, float]:
    """The share of speed that is lost and its 95 % interval, of (n, 2) speeds alone and watched."""
    rng = np.random.default_rng(0)
    sums = fours[rng.integers(0, len(fours), (RESAMPLES, len(fours)))].sum(1)
    low, high = np.percentile(1 - sums[:, 1] / sums[:, 0], [2.5, 97.5])
    alone, watched = fours.sum(0)
    return 1 - watched / alone, low, high


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The record."""
    fours, brought = [], []
    with tempfile.TemporaryDirectory() as folder:
        training = Training(args, Path(folder))
        os.nice(19)  # viewers and attackers are elsewhere: on a machine of few cores they do not take the training's
        try:
            training.wait_for(WARM_UP, START_SECONDS)
            end = time.monotonic() + args.seconds
            while time.monotonic() < end or len(fours) < 2:
                rates = [0.0, 0.0]
                for watched in (0, 1, 1, 0) if len(fours) % 2 == 0 else (1, 0, 0, 1):
                    rate, found = watched_block(training, args) if watched else (block(training, args), None)
                    rates[watched] += rate / 2
                    brought += [found] if found else []
                fours.append(rates)
                text = f"{rates[0]:,.0f} steps/s alone, {rates[1]:,.0f} watched ({1 - rates[1] / rates[0]:.2%} lost)"
                print(text, file=sys.stderr, flush=True)
        finally:
            training.end()
    alone, watched = np.mean(fours, axis=0)
    loss, low, high = loss_and_interval(np.array(fours))
    pictures, size, refused = np.mean(brought, axis=0)
    return {
        "device_name": device_name(args.device), "host_cores": os.cpu_count(), "num_envs": args.num_envs,
        "trainer_flags": args.trainer_flags, "viewers": args.viewers, "attack": args.attack,
        "records_of_a_block": args.records, "blocks": 4 * len(fours),
        "sps_alone": round(alone, 1), "sps_watched": round(watched, 1),
        "loss": round(loss, 5), "loss_interval_95": [round(low, 5), round(high, 5)],
        "losses": [round(1 - b / a, 5) for a, b in fours],
        "pictures_per_second": round(pictures, 2), "bytes_per_second": round(size),
        "refused_per_second": round(refused, 1), "git_sha": git_sha(), "versions": versions(),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--viewers", type=int, default=1, help="at a time (default: 1)")
    parser.add_argument("--attack", action="store_true", help="strangers attack the page in the watched blocks")
    parser.add_argument("--records", type=int, default=6, help="records of a block that count (default: 6)")
    parser.add_argument("--seconds", type=float, default=80.0, help="time to measure for (default: 80)")
    parser.add_argument("--trainer-flags", default="", help="more flags of a2c_streaming.py, as one text")
    parser.add_argument("--out", type=Path, help="JSON file to write the record to")
    args = parser.parse_args()
    if min(args.num_envs, args.viewers) < 1 or args.records < 2 or not args.seconds > 0:
        parser.error("--num-envs and --viewers are numbers from 1, --records from 2, --seconds more than 0")
    try:
        record = measure(args)
    except ConfigError as error:
        print(f"wall_cost: {error}", file=sys.stderr)
        return 2
    print(json.dumps(record))
    if args.out:
        write_json(args.out, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
