"""`python -m tests.fuzz.planted [--seeds 0:150] [--games N] [--kernel datapath] [--record FILE]`: which of
color_faults.py the fuzzer and games find.

All faults are in one kernel, each in an environment of its own beside a sound one, and all run the same ROM with the
same buttons as one PyBoy. Exit code 1 where the sound one differs from PyBoy, or a fault is not found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build.instantiate import Edit
from gbxcule_puffer.emulator.build.variant import Variant, build
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import git_sha, versions
from tests.conformance.test_game_boy_color import games
from tests.fuzz.color_faults import DATAPATH_FAULTS, FAULTS, Fault
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import CHECK_EVERY, SCHEDULES, Oracle, differences, emulator_values, random_buttons

COLOR_KINDS = ("color", "color-scenes")
OF_KERNELS = {"interpreter": FAULTS, "datapath": DATAPATH_FAULTS}


def faults_of(kernel: str) -> list[Fault]:
    """All faults of a kernel."""
    return [fault for faults in OF_KERNELS[kernel].values() for fault in faults]


def edits(faults: Sequence[Fault]) -> tuple[Edit, ...]:
    """All faults: number i in environment i + 1."""
    return tuple(fault.in_env(env) for env, fault in enumerate(faults, start=1))


def faulty_emulator(kernel: str, faults: Sequence[Fault]) -> type[Emulator]:
    """Emulators of a Game Boy Color that have the faults.

    Raises: ValueError where what a fault changes is not in the code any more.
    """
    step = build(kernel, Variant(color=True), edits(faults)).step

    class FaultyEmulator(Emulator):
        """An emulator with another kernel."""

        def _kernel(self) -> wp.Kernel:
            return step

    return FaultyEmulator


@dataclass
class Search:
    """What was found so far."""

    faults: list[Fault]
    emulator: type[Emulator]
    kernel: str = "interpreter"
    found: dict[str, dict[str, str]] = field(init=False)
    """Fault to what found it: the kind of ROM to the first ROM's name."""
    sound: list[str] = field(default_factory=list)
    """Differences of the sound environment."""

    def __post_init__(self) -> None:
        self.found = {fault.name: {} for fault in self.faults}

    def missing(self, kind: str) -> list[Fault]:
        """The faults that no ROM of a kind has found."""
        return [fault for fault in self.faults if kind not in self.found[fault.name]]

    def run(
        self, kind: str, name: str, rom: bytes, buttons: np.ndarray, frames_per_step: int, check_every: int
    ) -> None:
        """One ROM, `buttons` (steps,) for all."""
        envs = len(self.faults) + 1
        emulator = self.emulator(
            rom, envs, screen="full", frames_per_step=frames_per_step, num_threads=1, model="cgb", kernel=self.kernel,
            release_after_frames=min(8, frames_per_step), instruction_budget=frames_per_step * 40_000,
        )  # fmt: skip
        if emulator.locked.any():
            return
        oracle = Oracle(emulator)
        try:
            for step, held in enumerate(buttons, start=1):
                emulator.step(torch.full((envs,), int(held), dtype=torch.uint8))
                if emulator.locked[0]:
                    return
                oracle.step(int(held))
                if step % check_every == 0 or step == len(buttons):
                    self._check(kind, name, emulator, oracle)
        finally:
            oracle.close()

    def _check(self, kind: str, name: str, emulator: Emulator, oracle: Oracle) -> None:
        """Compare each environment with PyBoy; those whose whole state is the sound one's are equal as well."""
        expected, colors = oracle.values(), oracle.colors()
        hashes = emulator.state_hash()
        for env in range(len(self.faults) + 1):
            is_known = env and kind in self.found[self.faults[env - 1].name]
            if is_known or (env and hashes[env] == hashes[0] and self._same_picture(emulator, env)):
                continue
            lines = differences(expected, emulator_values(emulator, env))
            if not np.array_equal(colors, emulator.colors[env].numpy()):
                lines.append("picture")
            if lines and env == 0:
                self.sound.append(f"{name}: {lines[0]}")
                return
            if lines:
                self.found[self.faults[env - 1].name][kind] = name

    @staticmethod
    def _same_picture(emulator: Emulator, env: int) -> bool:
        return torch.equal(emulator.colors[env], emulator.colors[0])


def search(seeds: list[int], games: list[Path], frames: int, steps: int, kernel: str = "interpreter") -> Search:
    """All faults of a kernel against the fuzzer's ROMs of some seeds, and against games."""
    faults = faults_of(kernel)
    result = Search(faults, faulty_emulator(kernel, faults), kernel)
    for kind in COLOR_KINDS:
        for seed in seeds:
            if not result.missing(kind):
                break
            frames_per_step = SCHEDULES[seed % len(SCHEDULES)]
            buttons = random_buttons(seed, -(-frames // frames_per_step), 1)[:, 0]
            rom = make_rom(seed, kind).data
            result.run(kind, str(seed), rom, buttons, frames_per_step, max(1, CHECK_EVERY // frames_per_step))
    for number, path in enumerate(games):
        buttons = random_buttons(number, steps, 1)[:, 0]
        result.run("game", path.stem, path.read_bytes(), buttons, 24, 1)
    return result


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.planted", description=__doc__)
    parser.add_argument("--seeds", default="0:150,787:788", help="first:end, the end not included; several with commas")
    parser.add_argument("--frames", type=int, default=40, help="frames of each random ROM")
    parser.add_argument("--games", type=int, default=0, help="how many games run as well")
    parser.add_argument("--steps", type=int, default=40, help="steps of each game")
    parser.add_argument("--kernel", choices=OF_KERNELS, default="interpreter", help="the kernel and its faults")
    parser.add_argument("--record", type=Path, help="JSON file for what was found")
    args = parser.parse_args()
    try:
        ranges = [range(*map(int, part.split(":"))) for part in args.seeds.split(",")]
    except (TypeError, ValueError):
        parser.error(f"--seeds is {args.seeds!r}; give first:end, for example 0:100,787:788")
    seeds = [seed for seeds in ranges for seed in seeds]
    begin = time.perf_counter()
    result = search(seeds, games()[: args.games], args.frames, args.steps, args.kernel)
    for fault in result.faults:
        print(f"{fault.name}: {result.found[fault.name] or 'NOT FOUND'}")
    print(*result.sound, sep="\n")
    missing = [name for name, found in result.found.items() if not set(COLOR_KINDS) & set(found)]
    print(f"{len(result.found) - len(missing)} of {len(result.found)} faults found by random programs")
    if args.record:
        parts = {
            part: {fault.name: result.found[fault.name] for fault in faults}
            for part, faults in OF_KERNELS[args.kernel].items()
        }
        found: dict[str, Any] = {"seeds": args.seeds, "frames": args.frames, "games": args.games, "steps": args.steps}
        found |= {"faults": parts, "seconds": round(time.perf_counter() - begin)}
        write_json(args.record, {**found, "git_sha": git_sha(), "versions": versions()})
    return int(bool(missing or result.sound))


if __name__ == "__main__":
    sys.exit(main())
