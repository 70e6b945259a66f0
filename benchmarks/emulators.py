"""Frames a second on one core: this project beside PyBoy, with and without sound, and stable-retro's Game Boy core.

    python -m benchmarks.emulators --out benchmarks/results/cpu/emulators.json [--rom homeward 2048] [--core 1]
        [--python stable-retro=FOLDER/bin/python]     # an interpreter for one of them

All play the same ROM as a Game Boy, from the end of the boot ROM, with the same random buttons, each in a process of
its own on the same core (emulator_processes.py says what a step is). They warm up, then take turns of about a second,
forwards and backwards.
The record has the median, least and greatest rate, and the share of the first Game Boy's pixels that are PyBoy's after
the warm-up; `python -m benchmarks.pages.emulators` makes the table of docs/lab/emulators.md of it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.emulator_processes import CONTENDERS, FRAMES
from benchmarks.pages.emulators import table
from benchmarks.workload import find_rom
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.provenance import cpu_name, git_sha

WARMUP = 240  # steps
SECONDS = 1.0  # of a turn, about
ROMS = ("homeward", "2048", "tobu", "PostBot")  # not for a Game Boy Color, which gambatte would be for others
ORACLE = "pyboy"
SIZES = {"gbxcule": (1, 16, 256), "gbxcule, native": (1, 16, 256)}
SCRIPT = Path(__file__).with_name("emulator_processes.py")


class Contender:
    """A process of an emulator; it has warmed up."""

    def __init__(self, python: str, name: str, rom: Path, num_envs: int, core: int) -> None:
        self.name, self.num_envs, self.rates = name, num_envs, list[float]()
        command = [python, str(SCRIPT), name, str(rom), str(num_envs), str(core)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=child_environment(), **pipes)
        self.versions = self._answer()
        warm = self.take(WARMUP)
        self.picture = np.frombuffer(bytes.fromhex(warm["picture"]), np.uint8)
        self._steps = max(4, round(SECONDS * WARMUP / 2 / self.take(WARMUP // 2)["seconds"]))

    def take(self, steps: int) -> dict[str, Any]:
        """Takes steps; its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return self._answer()

    def measure(self) -> None:
        """Notes the frames a second of all envs in one turn."""
        self.rates.append(FRAMES * self.num_envs * self._steps / self.take(self._steps)["seconds"])

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} has ended: install it, or leave it out with --only")
        return json.loads(line)


def measure(rom: Path, names: Sequence[str], pythons: Mapping[str, str], core: int, turns: int) -> list[dict[str, Any]]:
    """The rows of one ROM."""
    started = [
        Contender(pythons.get(name, sys.executable), name, rom, size, core)
        for name in names
        for size in SIZES.get(name, (1,))
    ]
    for turn in range(turns):
        for contender in started if turn % 2 == 0 else reversed(started):
            contender.measure()
    for contender in started:
        contender.close()
    oracle = next((contender for contender in started if contender.name == ORACLE), started[0])
    rates = {contender: statistics.median(contender.rates) for contender in started}
    return [
        {
            "rom": rom.stem, "emulator": each.name, "num_envs": each.num_envs, "versions": each.versions,
            "frames_per_second": round(rates[each]), "least": round(min(each.rates)),
            "greatest": round(max(each.rates)), "ratio": round(rates[each] / rates[oracle], 3),
            "pixels_as_pyboy": round(float((each.picture == oracle.picture).mean()), 4),
        }
        for each in started
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, writes the record and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rom", nargs="+", default=list(ROMS))
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--python", nargs="+", default=[], metavar="NAME=PATH", help="interpreter of an emulator")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=6)
    args = parser.parse_args(argv)
    check_target(args.out)
    pythons = dict(pair.split("=", 1) for pair in args.python)
    record: dict[str, Any] = {
        "what": "frames a second on one core, a step of 24 frames (python -m benchmarks.emulators)",
        "date": time.strftime("%Y-%m-%d"), "git_sha": git_sha(), "cpu": cpu_name(), "turns": args.turns,
        "load_average": os.getloadavg()[0], "rows": [],
    }  # fmt: skip
    for name in args.rom:
        record["rows"] += measure(find_rom(name), args.only, pythons, args.core, args.turns)
        write_json(args.out, record)
    print(table(record["rows"]))


if __name__ == "__main__":
    main()
