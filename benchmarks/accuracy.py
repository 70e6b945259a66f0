"""docs/accuracy.md: what every suite says of the emulator, beside PyBoy: `python -m benchmarks.accuracy`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from baselines.pyboy_emulator import PyBoyEmulator
from benchmarks.references import HRAM, KINDS, WRAM, game_reference, hash64, step_hashes
from benchmarks.workload import GAMES, ROOT, shared_folder
from gbxcule_puffer.apps.verify.verify import Options, verify
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cpu.single_step import run_cases
from gbxcule_puffer.files import write_text
from gbxcule_puffer.provenance import versions

HALT, STOP = 0x76, 0x10  # their PC and M-cycles are a convention of the emulator that made the cases
FIB_PASS, FIB_FAIL = (3, 5, 8, 13, 21, 34), (0x42,) * 6
FRAMES_PER_CHECK = 10
INTRO = """# Accuracy

Written by `python -m benchmarks.accuracy`; run it again after a change to the emulator. The default profile reproduces
PyBoy {pyboy}, including where PyBoy differs from a real DMG: the columns "ours" and "PyBoy" should be equal.
`Emulator(rom, accuracy="hardware")` follows the DMG (CPU revisions A to C) where public test ROMs show a difference:
registers, DIV and LCD after the boot ROM, the halt bug, P1 (both rows, live), serial clock and SB, sound registers and
their unused bits, the write to STAT, and the locks of VRAM and OAM for all instructions.
"""
Machine = Emulator | PyBoyEmulator


@dataclass(frozen=True)
class Row:
    """One line of the table: counts `ours` and, for each machine or profile, out of `total`."""

    suite: str
    total: int
    ours: int
    pyboy: str
    hardware: int | None = None
    note: str = ""


def verdict(machine: Machine, test: dict[str, Any]) -> str:
    """`pass`, `fail` or `none` of a test ROM (shared roms/README.md, "How a pass is recognised")."""
    check = test["check"]
    for _ in range(test["max_frames"] // FRAMES_PER_CHECK):
        machine.step(torch.zeros(1, dtype=torch.uint8))
        if check["kind"] == "image":
            if f"{hash64(machine.screen[0].numpy().tobytes()):016x}" in check["ref"]:
                return "pass"
            continue
        registers = machine.registers(0)
        found = tuple(registers[name] for name in "bcdehl")
        if found in (FIB_PASS, FIB_FAIL):
            return "pass" if found == FIB_PASS else "fail"
    return "none"


def run_test(make: Callable[..., Machine], shared: Path, test: dict[str, Any], **options: Any) -> bool:
    """Whether a test ROM passes on a machine."""
    rom = (shared / "roms" / test["file"]).read_bytes()
    machine = make(rom, 1, screen="full", frames_per_step=FRAMES_PER_CHECK, release_after_frames=5, **options)
    try:
        return verdict(machine, test) == "pass"
    finally:
        if isinstance(machine, PyBoyEmulator):
            machine.close()


def test_rom_rows(shared: Path) -> Iterator[Row]:
    """Public test ROMs, each run on both machines."""
    tests = json.loads((shared / "roms" / "manifest.json").read_text())["tests"]
    for suite in sorted({test["suite"] for test in tests}):
        chosen = [test for test in tests if test["suite"] == suite and test["check"]["kind"] in ("fib", "image")]
        ours = [run_test(Emulator, shared, test) for test in chosen]
        pyboy = [run_test(PyBoyEmulator, shared, test) for test in chosen]
        hardware = sum(run_test(Emulator, shared, test, accuracy="hardware") for test in chosen)
        names = [Path(test["name"]).stem for test, passed in zip(chosen, ours, strict=True) if not passed]
        unlike = [Path(t["name"]).stem for t, a, b in zip(chosen, ours, pyboy, strict=True) if a != b]
        note = f"fails as in PyBoy: {', '.join(names)}" if names and not unlike else ""
        note = f"UNLIKE PYBOY: {', '.join(unlike)}" if unlike else note
        yield Row(suite, len(chosen), sum(ours), str(sum(pyboy)), hardware, note)


def sm83_row(shared: Path) -> Row:
    """SingleStepTests/sm83: cases whose registers, memory, PC, IME and M-cycles are all right."""
    with np.load(shared / "conformance" / "sm83" / "cases.npz") as file:
        cases = {name: file[name] for name in file.files}
    found = run_cases(*(cases[name] for name in ("r0", "sp0", "pc0", "ime0", "addr", "v0", "nram")))
    used = np.arange(5) < cases["nram"][:, None]
    right = (found["r1"] == cases["r1"]).all(axis=1) & (found["sp1"] == cases["sp1"])
    right &= ((found["v1"] == cases["v1"]) | ~used).all(axis=1)
    timing = (found["pc1"] == cases["pc1"]) & (found["ime1"] == cases["ime1"]) & (found["m_cycles"] == cases["mcycles"])
    right &= timing | np.isin(cases["opcode"], (HALT, STOP))
    note = "PyBoy: opcodes; PC and M-cycles of HALT and STOP are a convention and left out"
    return Row("SingleStepTests/sm83 (cases)", len(right), int(right.sum()), "498 of 500", None, note)


def game_rows(shared: Path) -> Iterator[Row]:
    """The stored hashes of PyBoy's pictures and RAM."""
    equal = {kind: dict.fromkeys(GAMES, 0) for kind in KINDS}
    steps = 0
    for game in GAMES:
        reference = game_reference(shared, game)
        steps = len(reference.buttons)
        emulator = Emulator(reference.rom, 1, screen="full")
        for step, buttons in enumerate(reference.buttons):
            emulator.step(torch.tensor([buttons], dtype=torch.uint8))
            memory = emulator.read_memory(0, *WRAM), emulator.read_memory(0, *HRAM)
            hashes = step_hashes(*memory, emulator.screen[0].numpy())
            for kind in KINDS:
                equal[kind][game] += hashes[kind] == int(reference.hashes[kind][step])
    for kind, counts in equal.items():
        wrong = [game for game, count in counts.items() if count != steps]
        note = f"differs: {', '.join(wrong)}" if wrong else ""
        total = steps * len(GAMES)
        yield Row(f"{len(GAMES)} games, `{kind}` hashes", total, sum(counts.values()), f"{total:,}", None, note)


def lockstep_row(name: str, roms: list[Path], steps: int) -> Row:
    """Random play in lockstep with PyBoy, everything compared after each step."""
    done, notes = 0, []
    for rom in roms:
        print(f"lockstep: {rom.name}", file=sys.stderr)
        result = verify(Options(rom=str(rom), steps=steps, actions="random:0"))
        done += len(result.trace) - (not result.equal)
        if not result.equal:
            notes.append(f"{rom.stem} differs at step {len(result.trace)}")
        elif result.ended:
            notes.append(f"{rom.stem}: {result.ended}")
    total = steps * len(roms)
    return Row(name, total, done, f"{total:,}", None, "; ".join(notes))


def table(rows: list[Row]) -> str:
    """The Markdown table."""
    with_hardware = any(row.hardware is not None for row in rows)
    heads = ["suite", "of", "ours", "PyBoy", *(["ours, `accuracy=hardware`"] if with_hardware else []), "note"]
    lines = ["| " + " | ".join(heads) + " |", "| --- | ---: | ---: | ---: |" + " ---: |" * with_hardware + " --- |"]
    for row in rows:
        cells = [row.suite, f"{row.total:,}", f"{row.ours:,}", row.pyboy]
        cells += ["" if row.hardware is None else f"{row.hardware:,}"] if with_hardware else []
        lines.append("| " + " | ".join([*cells, row.note]) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run all suites and write the page; exit code 1 where the default profile is not as PyBoy."""
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "accuracy.md")
    parser.add_argument("--steps", type=int, default=500, help="steps of each ROM in lockstep")
    args = parser.parse_args()
    shared = shared_folder()
    rows: list[Row] = []
    if shared is not None:
        rows += [sm83_row(shared), *test_rom_rows(shared), *game_rows(shared)]
        games = [shared / "roms" / "homebrew" / f"{game}.gb" for game in GAMES]
        rows.append(lockstep_row(f"{len(games)} games, steps in lockstep", games, args.steps))
    own = [ROOT / "roms" / entry["file"] for entry in json.loads((ROOT / "roms" / "manifest.json").read_text())]
    rows.append(lockstep_row(f"{len(own)} ROMs of our own, steps in lockstep", own, args.steps))
    names = ", ".join(f"{name} {number}" for name, number in versions().items() if name != platform.system().lower())
    page = INTRO.format(pyboy=versions()["pyboy"]) + f"\n{table(rows)}\n\nMeasured with {names}.\n"
    write_text(args.out, page)
    print(page)
    return int(any(row.note.startswith(("UNLIKE", "differs")) or " differs at " in row.note for row in rows))


if __name__ == "__main__":
    sys.exit(main())
