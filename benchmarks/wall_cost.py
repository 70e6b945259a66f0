"""The cost of being watched: steps per second of a training with a viewer of its wall, beside those without.

    python -m benchmarks.wall_cost --device cuda --num-envs 16384 --out wall_cost.json
    python -m benchmarks.wall_cost --device cuda --num-envs 16384 --trainer-flags="--compile --cuda-graph --bf16"

One training of streaming A2C with --watch, and a viewer in a process of its own that comes and goes, in the order A B,
B A: in each block as many records of metrics.jsonl count, without the first ones. One JSON record on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from benchmarks.workload import ROOT
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import device_name, git_sha, versions

SETTLING = 4  # records at the start of a block that do not count
NEVER = 10**15  # steps: no evaluation, no pictures, no checkpoint
START_SECONDS, RECORD_SECONDS = 300.0, 120.0


def view(address: str) -> None:
    """A viewer, which reads all there is, as the page does, and at its end prints what it was."""
    pictures = size = 0
    with connect(f"ws://{address}/socket", origin=f"http://{address}", max_size=None, compression=None) as socket:  # pyright: ignore[reportArgumentType]
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(json.dumps([pictures, size])) or 0))
        print("connected", flush=True)
        while True:
            message = socket.recv()
            pictures, size = pictures + 1, size + len(message)


class Viewer:
    """A `view` in a process of its own."""

    def __init__(self, address: str) -> None:
        command = [sys.executable, "-m", "benchmarks.wall_cost", "--view", address]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "connected\n":
            raise ConfigError(f"the viewer was not let in at {address}: see above")
        self.begun = time.monotonic()

    def leave(self) -> tuple[float, float]:
        """(pictures, bytes) a second."""
        self.process.terminate()
        pictures, size = json.loads(self.process.communicate(timeout=30)[0])
        seconds = time.monotonic() - self.begun
        return pictures / seconds, size / seconds


class Training:
    """A run of A2C with --watch in a process of its own."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.metrics = folder / "run" / "metrics.jsonl"
        own = ["--device", args.device, "--run-dir", str(folder / "run"), "--watch", "--watch-address", self.address]
        own += ["--num-envs", str(args.num_envs), "--total-env-steps", str(NEVER), "--stop-at-success", "2"]
        own += ["--eval-every-steps", str(NEVER), "--media-every", str(NEVER)]
        script = str(ROOT / "cleanrl_style" / "a2c_streaming.py")
        self.log = folder / "trainer.log"
        with self.log.open("w") as log:
            command = [sys.executable, script, *own, *shlex.split(args.trainer_flags)]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def rates(self) -> list[float]:
        """charts/SPS of all records so far."""
        if self.process.poll() is not None:
            lines = self.log.read_text().splitlines() or ["nothing was said"]
            raise ConfigError(f"the training has ended ({lines[-1]}): mend its flags")
        lines = self.metrics.read_text().splitlines(keepends=True) if self.metrics.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        return [row["charts/SPS"] for row in rows if "charts/SPS" in row]

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


def blocks(training: Training, args: argparse.Namespace) -> tuple[dict[str, list[float]], list[tuple[float, float]]]:
    """Medians of the blocks by kind, and what each viewer got."""
    found: dict[str, list[float]] = {"alone": [], "watched": []}
    received = []
    training.wait_for(SETTLING, START_SECONDS)
    for number in range(args.rounds):
        for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
            viewers = [Viewer(training.address) for _ in range(args.viewers if kind == "watched" else 0)]
            begin = len(training.rates()) + SETTLING
            rates = training.wait_for(begin + args.records)[begin : begin + args.records]
            received += [viewer.leave() for viewer in viewers]
            found[kind].append(1 / statistics.fmean(1 / rate for rate in rates))
            print(f"{kind:8} {found[kind][-1]:>12,.0f} steps/s", file=sys.stderr, flush=True)
    return found, received


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The record."""
    with tempfile.TemporaryDirectory() as folder:
        training = Training(args, Path(folder))
        try:
            found, received = blocks(training, args)
        finally:
            training.end()
    alone, watched = (statistics.median(found[kind]) for kind in ("alone", "watched"))
    losses = [1 - b / a for a, b in zip(found["alone"], found["watched"], strict=True)]
    return {
        "device_name": device_name(args.device), "host_cores": os.cpu_count(), "num_envs": args.num_envs,
        "trainer_flags": args.trainer_flags, "viewers": args.viewers, "records_of_a_block": args.records,
        "sps_alone": round(alone, 1), "sps_watched": round(watched, 1),
        "loss": round(1 - watched / alone, 5), "losses_of_pairs": [round(loss, 5) for loss in losses],
        "sps_alone_blocks": [round(rate, 1) for rate in found["alone"]],
        "sps_watched_blocks": [round(rate, 1) for rate in found["watched"]],
        "pictures_per_second": round(statistics.fmean(p for p, _ in received), 2),
        "bytes_per_second": round(statistics.fmean(b for _, b in received)),
        "git_sha": git_sha(), "versions": versions(),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--viewers", type=int, default=1, help="at a time (default: 1)")
    parser.add_argument("--records", type=int, default=40, help="records of a block that count (default: 40)")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of blocks (default: 6)")
    parser.add_argument("--trainer-flags", default="", help="more flags of a2c_streaming.py, as one text")
    parser.add_argument("--out", type=Path, help="JSON file to write the record to")
    parser.add_argument("--view", metavar="ADDRESS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.view:
        view(args.view)
    if min(args.num_envs, args.viewers, args.records, args.rounds) < 1:
        parser.error("--num-envs, --viewers, --records and --rounds are numbers from 1")
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
