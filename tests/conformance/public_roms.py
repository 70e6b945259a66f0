"""Public test ROMs on a Game Boy Color beside PyBoy: `python -m tests.conformance.public_roms FOLDER [--record FILE]`.

FOLDER has a folder for each suite with its ROMs and, where it has some, pictures beside them, as
github.com/c-sp/game-boy-test-roms has them: `cgb-acid2/cgb-acid2.gbc`, `cgb-acid2/cgb-acid2.png`,
`mooneye-test-suite/acceptance/...`. None of them is part of this repository. Each ROM runs on the emulator and on PyBoy
with all of both compared; that it passes is found out on each by itself.
"""

from __future__ import annotations

import argparse
import glob
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import git_sha, versions
from tests.fuzz.lockstep import Oracle, differences, emulator_values

SUITES = {
    # folder: (name, frames of a step, steps at most)
    "cgb-acid2": ("cgb-acid2", 10, 12),
    "cgb-acid-hell": ("cgb-acid-hell", 10, 12),
    "age-test-roms": ("AGE test roms", 10, 24),
    "blargg": ("blargg's tests", 60, 60),
    "gambatte": ("Gambatte's hardware tests", 4, 5),
    "magen-tests": ("Magen tests", 10, 12),
    "mealybug-tearoom-tests": ("Mealybug Tearoom", 10, 12),
    "mooneye-test-suite": ("mooneye", 10, 90),
    "same-suite": ("SameSuite", 10, 24),
}
VERDICTS = ("pass", "fail", "none")
FIB_PASS, FIB_FAIL = (3, 5, 8, 13, 21, 34), (0x42,) * 6  # B C D E H L
DIGITS = re.compile(r"cgb04c_out([0-9A-F]+)$|^(?!.*dmg08_out).*_out([0-9A-F]+)$")  # of Gambatte's: what shall be shown
PICTURE = re.compile(r"|(-dmg)?-cgb.*|-ncm.*|(_dmg08)?_cgb04c|_cgb_c")  # what a picture's name has after its ROM's
GREEN = 31 << 5
MAP = slice(0x1800, 0x1C00)  # of VRAM: the first tile map


@dataclass
class Verdict:
    """The result of one ROM."""

    ours: str
    """`pass`, `fail`, or `none` where the ROM says nothing that a machine could read."""
    pyboy: str
    difference: list[str]
    """What is not as in PyBoy, one line each."""


def expected_picture(path: Path) -> np.ndarray | None:
    """The picture of a Game Boy Color that lies beside a ROM, as one number a pixel; None where there is none."""
    for png in sorted(path.parent.glob(f"{glob.escape(path.stem)}*.png")):
        if PICTURE.fullmatch(png.stem.removeprefix(path.stem)):
            pixels = np.asarray(Image.open(png).convert("RGB")).astype(np.int64)
            return pixels @ np.array([1 << 16, 1 << 8, 1])
    return None


def is_same_picture(found: np.ndarray, expected: np.ndarray) -> bool:
    """True where two pictures are equal but for the names of their colours: suites convert them to RGB each in its own
    way, and a DMG's cartridge has other colours in PyBoy."""
    if found.shape != expected.shape:
        return False
    pairs = np.unique(np.stack([found.ravel().astype(np.int64), expected.ravel()]), axis=1)
    return len(pairs[0]) == len(set(pairs[0])) == len(set(pairs[1]))


def verdict(path: Path, values: dict[str, Any], colors: np.ndarray) -> str:
    """What a ROM says so far: by its file's name and Gambatte's digits on the screen, by a picture beside it, by the
    registers B to L, by Magen's screen all in green, or by blargg's text on it."""
    digits = DIGITS.search(path.stem)
    tiles = bytes(values["VRAM"][MAP])
    if digits:
        shown = "".join(f"{tile:X}" for tile in tiles[: len(digits[1] or digits[2])])
        return "pass" if shown == (digits[1] or digits[2]) else "fail"
    picture = expected_picture(path)
    if picture is not None:
        return "pass" if is_same_picture(colors, picture) else "fail"
    registers = tuple(values[name] for name in "bcdehl")
    if registers in (FIB_PASS, FIB_FAIL):
        return "pass" if registers == FIB_PASS else "fail"
    if (colors == GREEN).all():
        return "pass"
    if b"Passed" in tiles or b"Failed" in tiles:
        return "pass" if b"Passed" in tiles else "fail"
    return "none"


def run(path: Path, frames_per_step: int, steps: int) -> Verdict:
    """One ROM on both machines, compared after each step, until both have passed or `steps` are over."""
    release = min(8, frames_per_step)
    emulator = Emulator(
        path.read_bytes(), 1, screen="full", frames_per_step=frames_per_step, release_after_frames=release,
        num_threads=1, model="cgb",
    )  # fmt: skip
    oracle = Oracle(emulator)
    found = Verdict("none", "none", [])
    try:
        for _ in range(steps):
            emulator.step(torch.zeros(1, dtype=torch.uint8))
            if emulator.locked.any():  # PyBoy never returns from an illegal opcode
                break
            oracle.step(0)
            theirs, ours = oracle.values(), emulator_values(emulator, 0)
            colors = oracle.colors(), emulator.colors[0].numpy()
            found.difference = differences(theirs, ours)
            if not np.array_equal(*colors):
                found.difference.append(f"picture: {np.count_nonzero(colors[0] != colors[1])} pixels differ")
            found.pyboy, found.ours = verdict(path, theirs, colors[0]), verdict(path, ours, colors[1])
            if found.difference or (found.pyboy, found.ours) == ("pass", "pass"):
                break
    finally:
        oracle.close()
    return found


def roms(folder: Path) -> Iterator[Path]:
    """The ROMs of a suite, in the order of their names; of Gambatte's those with a result for a Game Boy Color."""
    for path in sorted(folder.rglob("*.gb*")):
        if path.suffix in (".gb", ".gbc") and (folder.name != "gambatte" or _has_result(path)):
            yield path


def _has_result(path: Path) -> bool:
    return DIGITS.search(path.stem) is not None or expected_picture(path) is not None


def main() -> int:
    """The command line; exit code 1 where a ROM does not run as on PyBoy."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.public_roms", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", choices=SUITES)
    parser.add_argument("--part", default="0/1", help="k/n: of every n ROMs the k-th only")
    parser.add_argument("--record", type=Path, help="JSON file for the verdicts")
    args = parser.parse_args()
    part, parts = (int(number) for number in args.part.split("/"))
    suites: dict[str, Any] = {}
    for name in [args.suite] if args.suite else SUITES:
        begin, results = time.perf_counter(), {}
        title, frames_per_step, steps = SUITES[name]
        for path in list(roms(args.folder / name))[part::parts]:
            result = run(path, frames_per_step, steps)
            results[path.relative_to(args.folder / name).with_suffix("").as_posix()] = result
            if result.difference or result.ours != result.pyboy:
                print(
                    f"{path}: ours {result.ours}, PyBoy {result.pyboy}", *result.difference[:6], sep="\n  ", flush=True
                )
        if not results:
            continue
        passing = [[name for name, r in results.items() if getattr(r, who) == "pass"] for who in ("ours", "pyboy")]
        suites[name] = {
            "title": title,
            "roms": len(results),
            "equal": sum(not r.difference for r in results.values()),
            "ours_pass": len(passing[0]),
            "pyboy_pass": len(passing[1]),
            **{word: [name for name, r in results.items() if r.ours == r.pyboy == word] for word in VERDICTS},
            "unlike": [name for name, r in results.items() if r.difference or r.ours != r.pyboy],
            "seconds": round(time.perf_counter() - begin),
        }
        counts = {key: value for key, value in suites[name].items() if not isinstance(value, list)}
        print(name, counts, flush=True)
    if not suites:
        parser.error(f"{args.folder} has no ROMs in folders named {', '.join(SUITES)}")
    if args.record:
        if args.record.exists():  # the suites that were not run stay
            suites = json.loads(args.record.read_text())["suites"] | suites
        write_json(args.record, {"suites": suites, "git_sha": git_sha(), "versions": versions()})
    return int(any(suite["equal"] != suite["roms"] for suite in suites.values()))


if __name__ == "__main__":
    sys.exit(main())
