"""`python -m benchmarks.one_core --out FILE [--rom ROM ...] [--model cgb] [--envs N] [--turns N] [--interpreter]`: one
CPU core beside PyBoy's.

For each game of the corpus, one process on one core steps PyBoy (no window, no sound, as programs that learn use it),
the interpreter and the native code in turns, with the same random buttons, a step of 24 frames with the 72x80 picture.
All are warmed up, and the native code is compiled before the first turn. The process's own CPU time counts, so that
other work on the machine slows down all alike. Pictures have to be PyBoy's, and the states of both kernels equal, after
each turn. The record is rewritten after each game.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.workload import find_rom
from gbxcule_puffer.apps.bench.suites import roms_of_suite
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.provenance import cpu_name, git_sha

ENVS, PYBOYS, WARMUP = 16, 4, 24
SECONDS = 0.08  # of a turn, about
BUTTONS = torch.tensor([0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01], dtype=torch.uint8)


class Stepped:
    """One contender: its steps, and the rates of its turns."""

    def __init__(self, num_envs: int, step: Callable[[torch.Tensor], None], rows: torch.Tensor) -> None:
        self.num_envs, self.rates, self.taken = num_envs, list[float](), 0
        self._step, self._rows = step, rows
        self.run(WARMUP)

    def run(self, steps: int) -> float:
        """Seconds of CPU time of so many steps."""
        begin = time.process_time()
        for row in self._rows[self.taken : self.taken + steps]:
            self._step(row)
        self.taken += steps
        return time.process_time() - begin

    def turn(self, steps: int) -> None:
        """Notes the steps a second of all envs."""
        self.rates.append(steps * self.num_envs / self.run(steps))


def measure(rom: Path, model: str, envs: int, turns: int, with_native: bool) -> dict[str, Any]:
    """The record of one game."""
    generator = torch.Generator().manual_seed(sum(rom.stem.encode()))
    most = WARMUP + 64 * (turns + 2)
    rows = BUTTONS[torch.randint(len(BUTTONS), (most, envs), generator=generator)]
    machines = [PyBoyMachine(rom.read_bytes(), model=model) for _ in range(min(PYBOYS, envs))]
    pictures = np.zeros((len(machines), 72, 80), np.uint8)

    def step_pyboy(row: torch.Tensor) -> None:
        for machine, mask, picture in zip(machines, row.tolist(), pictures, strict=False):
            machine.step(mask)
            machine.picture(2, out=picture)

    emulators = {"interpreter": Emulator(rom, envs, num_threads=1, model=model)}
    if with_native:
        emulators["native"] = Emulator(rom, envs, num_threads=1, model=model, native=True)
    stepped = {"pyboy": Stepped(len(machines), step_pyboy, rows)}
    stepped |= {name: Stepped(envs, emulator.step, rows) for name, emulator in emulators.items()}
    seconds = 0.0
    if with_native:
        begin, (native,) = time.monotonic(), [each.native for each in emulators.values() if each.native is not None]
        native.find_now()
        seconds = time.monotonic() - begin
    trial = {name: each.run(4) / 4 for name, each in stepped.items()}
    steps = max(2, min(56, round(SECONDS / trial["pyboy"])))
    equal = True
    for turn in range(turns):
        order = list(stepped) if turn % 2 == 0 else list(reversed(stepped))
        for name in order:
            stepped[name].turn(steps)
        hashes = [emulator.state_hash() for emulator in emulators.values()]
        equal = equal and all(bool((each == hashes[0]).all()) for each in hashes)
        equal = equal and bool((emulators["interpreter"].screen[: len(machines)].numpy() == pictures).all())
    for each in (*machines, *emulators.values()):
        each.close()
    rates = {name: statistics.median(each.rates) for name, each in stepped.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(each.rates, stepped["pyboy"].rates, strict=True))
        for name, each in stepped.items()
        if name != "pyboy"
    }
    return {
        "game": rom.stem,
        "steps_per_second": {name: round(rate) for name, rate in rates.items()},
        "to_pyboy": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "equal": equal,
        "seconds_until_native": round(seconds, 1),
    }


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rom", nargs="+", help="names or files (default: the corpus)")
    parser.add_argument("--model", choices=("dmg", "cgb"), default="dmg")
    parser.add_argument("--envs", type=int, default=ENVS, help=f"Game Boys of each contender of ours (default: {ENVS})")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--interpreter", action="store_true", help="without native code")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    args = parser.parse_args(argv)
    check_target(args.out)
    os.sched_setaffinity(0, {args.core})
    torch.set_num_threads(1)
    games: list[dict[str, Any]] = []
    record: dict[str, Any] = {
        "what": "steps/s of one core, 24 frames a step, random buttons: PyBoy without window and sound, the "
        "interpreter and the native code in turns, CPU time; medians (python -m benchmarks.one_core)",
        "date": time.strftime("%Y-%m-%d"), "git_sha": git_sha(), "cpu": cpu_name(), "model": args.model,
        "num_envs": args.envs, "turns": args.turns, "games": games,
    }  # fmt: skip
    for rom in map(find_rom, args.rom) if args.rom else roms_of_suite("corpus"):
        games.append(measure(rom, args.model, args.envs, args.turns, not args.interpreter))
        kinds = games[-1]["to_pyboy"]
        record["geometric_mean_to_pyboy"] = {
            kind: round(mean([game["to_pyboy"][kind] for game in games]), 3) for kind in kinds
        }
        write_json(args.out, record)
        print(json.dumps(games[-1]), flush=True)
    print(record["geometric_mean_to_pyboy"])


if __name__ == "__main__":
    main()
