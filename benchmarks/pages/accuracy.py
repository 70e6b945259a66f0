"""Writer of docs/accuracy.md, each suite beside PyBoy: `python -m benchmarks.pages.accuracy [--model cgb] [--sound]`.

Results go into a record by model, and the page is written from the record: a model that is not measured keeps its row.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.references import HRAM, KINDS, WRAM, game_reference, hash64, step_hashes
from benchmarks.workload import GAMES, ROOT, shared_folder
from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import verify
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.probes.single_step import run_cases
from gbxcule_puffer.files import write_json, write_text
from gbxcule_puffer.provenance import versions

HALT, STOP = 0x76, 0x10  # their PC and M-cycles are a convention of the emulator that made the cases
FIB_PASS, FIB_FAIL = (3, 5, 8, 13, 21, 34), (0x42,) * 6
FRAMES_PER_CHECK = 10
SHOOTOUT = ROOT / "benchmarks" / "results" / "cpu" / "shootout.json"
RECORD = ROOT / "benchmarks" / "results" / "cpu" / "accuracy.json"
PUBLIC_ROMS = ROOT / "benchmarks" / "results" / "cpu" / "color_test_roms.json"
PLANTED = ROOT / "benchmarks" / "results" / "cpu" / "color_faults.json"
MODELS = {"dmg": "DMG", "cgb": "Game Boy Color"}
INTRO = """# Accuracy

Use this page to see what is compared with PyBoy. To compare your own ROM, step by step:

```sh
puffer verify my_game.gb --steps 500
```

By default the emulator reproduces PyBoy {pyboy} with `sound_emulated=False`, also where PyBoy differs from a real Game
Boy: the columns "ours" and "PyBoy" should be equal. With `sound=True` it reproduces PyBoy's default
([below](#with-sound)). `model="cgb"` is the Game Boy Color ([color.md](color.md)).

The table counts the tests or steps of each suite that pass, or equal PyBoy's. It is written by
`python -m benchmarks.pages.accuracy`; run it again after a change to the emulator.
"""
HARDWARE = """
## Like the hardware

`Emulator(rom, accuracy="hardware")` follows a real DMG (CPU revisions A to C) where public test ROMs show that PyBoy
differs: registers, DIV and LCD after the boot ROM, the halt bug, P1 (both rows, live), serial clock and SB, sound
registers and their unused bits, the write to STAT, and the locks of VRAM and OAM for all instructions. A Game Boy Color
also has the tile map that the boot ROM leaves.
"""
SOUND_INTRO = """
## With sound

The same for `Emulator(rom, sound=True)` beside `PyBoy(rom)`, whose default is `sound_emulated=True`
([sound.md](sound.md)). Steps in lockstep compare the whole sound unit, too. Measured with
`python -m benchmarks.pages.accuracy --sound --steps 100`.

"""
SHOOTOUT_INTRO = """
## The GBEmulatorShootout

Tests of [GBEmulatorShootout](https://github.com/gbdev/GBEmulatorShootout) that pass. {total} of them have a ROM and a
reference picture, which the screen has to show. The machines start after the boot ROM. The default passes the same
tests as PyBoy muted, and `sound=True` the same as PyBoy's default. `accuracy="hardware"` with sound passes all of
blargg's and SameSuite's tests of sound. Run `python -m benchmarks.shootout FOLDER [--sound] [--accuracy hardware]
[--pyboy]` on a clone in FOLDER.

"""
PUBLIC_INTRO = """
## Public test ROMs on a Game Boy Color

Public test ROMs on our Game Boy Color and on PyBoy's. Registers, memory and the picture's colours are compared after
each step, and each ROM's verdict is read on both. A ROM is "equal" if nothing differed up to its end. Most ROMs that
fail test what PyBoy does not have: sound, changes within a line, single T-cycles, other consoles.

The ROMs are those of [game-boy-test-roms](https://github.com/c-sp/game-boy-test-roms) and
[MagenTests](https://github.com/alloncm/MagenTests), built from their sources except for blargg's and Mealybug's
images. Of Gambatte's ROMs, only those with a result for a Game Boy Color other than sound are included. Two of
Magen's need a person to judge the picture.

`python -m tests.conformance.public_roms FOLDER --record benchmarks/results/cpu/color_test_roms.json` runs all ROMs of a
folder; the record has the verdict of every ROM. `GBXCULE_TEST_ROMS=FOLDER pytest tests/conformance/test_public_roms.py`
runs some.
"""
PLANTED_INTRO = """
## Planted faults

Would the tests notice a fault? {total} faults are planted into the code of a Game Boy Color, one at a time, and random
programs and {games} games search for them. Random programs find {found} of {total}, the games {by_games}. The columns
`color` and `color-scenes` have the first seed of `python -m tests.fuzz --kind color` or `--kind color-scenes` at which
the faulty machine differs from PyBoy; the correct one never differs. By `python -m tests.fuzz.planted --seeds {seeds}
--games {games} --steps {steps} --record benchmarks/results/cpu/color_faults.json`.
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

    @property
    def is_wrong(self) -> bool:
        """True where the default profile is not as PyBoy."""
        return self.note.startswith(("UNLIKE", "differs")) or " differs at " in self.note


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


def passes(make: Callable[..., Machine], shared: Path, test: dict[str, Any], **options: Any) -> bool:
    """True where a test ROM passes on a machine."""
    rom = (shared / "roms" / test["file"]).read_bytes()
    machine = make(rom, 1, screen="full", frames_per_step=FRAMES_PER_CHECK, release_after_frames=5, **options)
    try:
        return verdict(machine, test) == "pass"
    finally:
        if isinstance(machine, PyBoyEmulator):
            machine.close()


def test_rom_rows(shared: Path, model: str, sound: bool) -> Iterator[Row]:
    """Public test ROMs, each run on both machines; a reference picture is that of a DMG."""
    tests = json.loads((shared / "roms" / "manifest.json").read_text())["tests"]
    kinds = ("fib", "image") if model == "dmg" else ("fib",)
    tests = [test for test in tests if test["check"]["kind"] in kinds]
    for suite in sorted({test["suite"] for test in tests}):
        chosen = [test for test in tests if test["suite"] == suite]
        ours = [passes(Emulator, shared, test, model=model, sound=sound) for test in chosen]
        pyboy = [passes(PyBoyEmulator, shared, test, model=model, sound=sound) for test in chosen]
        hardware = None
        if model == "dmg" and not sound:
            hardware = sum(passes(Emulator, shared, test, accuracy="hardware") for test in chosen)
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


def lockstep_row(name: str, roms: list[Path], steps: int, model: str, sound: bool) -> Row:
    """Random play in lockstep with PyBoy, everything compared after each step."""
    done, notes = 0, []
    for rom in roms:
        print(f"lockstep: {rom.name} ({model})", file=sys.stderr)
        result = verify(Verify(rom=str(rom), steps=steps, actions="random:0", model=model, sound=sound))
        done += len(result.trace) - (not result.equal)
        if not result.equal:
            notes.append(f"{rom.stem} differs at step {len(result.trace)}")
        elif result.ended:
            notes.append(f"{rom.stem}: {result.ended}")
    total = steps * len(roms)
    return Row(name, total, done, f"{total:,}", None, "; ".join(notes))


def measure(model: str, steps: int, sound: bool) -> Iterator[Row]:
    """All rows of a model, with sound or muted."""
    shared = shared_folder()
    if shared is not None:
        homebrew = shared / "roms" / "homebrew"
        is_usual = model == "dmg" and not sound
        if is_usual:
            yield sm83_row(shared)
        yield from test_rom_rows(shared, model, sound)
        if is_usual:
            yield from game_rows(shared)
        games = [homebrew / f"{game}.gb" for game in GAMES]
        yield lockstep_row(f"{len(GAMES)} games, steps in lockstep", games, steps, model, sound)
        if model == "cgb":
            roms = sorted((*homebrew.glob("*.gb"), *(shared / "roms" / "corpus").glob("*.gb")))
            color = [path for path in roms if path.stem not in GAMES and path.read_bytes()[0x143] & 0x80]
            name = f"{len(color)} more games for the Game Boy Color, steps in lockstep"
            yield lockstep_row(name, color, steps, model, sound)
    own = [ROOT / "roms" / entry["file"] for entry in json.loads((ROOT / "roms" / "manifest.json").read_text())]
    yield lockstep_row(f"{len(own)} ROMs of our own, steps in lockstep", own, steps, model, sound)


def table(rows: dict[str, list[Row]]) -> str:
    """The Markdown table: for each model what it has of each suite; no column without figures."""
    suites = list(dict.fromkeys(row.suite for model in MODELS for row in rows[model]))
    found = {model: {row.suite: row for row in rows[model]} for model in MODELS}
    has_profile = any(row.hardware is not None for row in rows["dmg"])
    heads = ["suite", "of"]
    for model, name in MODELS.items():
        heads += [f"{name}: ours", "PyBoy", *(["ours, `accuracy=hardware`"] if has_profile and model == "dmg" else [])]
    lines = ["| " + " | ".join([*heads, "note"]) + " |", "| --- |" + " ---: |" * (len(heads) - 1) + " --- |"]
    for suite in suites:
        here = {model: by_suite[suite] for model, by_suite in found.items() if suite in by_suite}
        cells, notes = [suite, f"{max(row.total for row in here.values()):,}"], []
        for model, name in MODELS.items():
            row = here.get(model)
            cells += [f"{row.ours:,}", row.pyboy] if row else ["", ""]
            if has_profile and model == "dmg":
                cells.append(f"{row.hardware:,}" if row and row.hardware is not None else "")
            if row and row.note:
                notes.append(row.note if model == "dmg" else f"{name}: {row.note}")
        lines.append("| " + " | ".join([*cells, "; ".join(notes)]) + " |")
    return "\n".join(lines)


def shootout() -> str:
    """The section about the Shootout, from its record."""
    record = json.loads(SHOOTOUT.read_text())
    machines = [f"{machine}{how}" for how in ("", ", sound") for machine in ("gbxcule-puffer", "PyBoy")]
    machines += [f"gbxcule-puffer, hardware{how}" for how in ("", ", sound")]
    titles = [name.replace("gbxcule-puffer", "ours") for name in machines]
    names = sorted(record[machines[0]]["PASS"] + record[machines[0]]["FAIL"])
    suites = {"all": names} | {
        suite: list(of) for suite, of in itertools.groupby(names, lambda name: name.split("/")[0])
    }
    lines = ["| suite | of | " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (1 + len(titles))]
    for suite, of in suites.items():
        counts = (len(set(of) & set(record[machine]["PASS"])) for machine in machines)
        lines.append(f"| {suite} | {len(of)} | " + " | ".join(map(str, counts)) + " |")
    return SHOOTOUT_INTRO.format(total=len(names)) + "\n".join(lines) + "\n"


def public_roms() -> str:
    """The section about public test ROMs, from its record."""
    lines = ["| suite | ROMs | equal | ours pass | PyBoy passes |", "| --- | ---: | ---: | ---: | ---: |"]
    for suite in json.loads(PUBLIC_ROMS.read_text())["suites"].values():
        counts = (suite[name] for name in ("roms", "equal", "ours_pass", "pyboy_pass"))
        lines.append(f"| {suite['title']} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    return PUBLIC_INTRO + "\n" + "\n".join(lines) + "\n"


def planted_faults() -> str:
    """The section about planted faults, from its record."""
    record = json.loads(PLANTED.read_text())
    faults = {name: found for part in record["faults"].values() for name, found in part.items()}
    by_seeds = sum(bool({"color", "color-scenes"} & set(found)) for found in faults.values())
    intro = PLANTED_INTRO.format(
        **{name: record[name] for name in ("seeds", "games", "steps")}, total=len(faults), found=by_seeds,
        by_games=sum("game" in found for found in faults.values()),
    )  # fmt: skip
    lines = ["| part | fault | `color` | `color-scenes` | first game |", "| --- | --- | ---: | ---: | --- |"]
    for part, rows in record["faults"].items():
        for name, found in rows.items():
            cells = (found.get(kind, "") for kind in ("color", "color-scenes", "game"))
            lines.append(f"| {part} | {name} | " + " | ".join(cells) + " |")
    return intro + "\n" + "\n".join(lines) + "\n"


def page(record: dict[str, Any]) -> str:
    """docs/accuracy.md from the records."""
    rows = {model: [Row(**row) for row in record[model]["rows"]] for model in MODELS}
    lines = [f"Measured with {record[model]['with']} ({name})." for model, name in MODELS.items()]
    intro = INTRO.format(pyboy=versions()["pyboy"])
    text = f"{intro}\n{table(rows)}\n\n" + "\n\n".join(lines) + "\n" + HARDWARE
    return text + with_sound(record) + shootout() + public_roms() + planted_faults()


def key_of(model: str, sound: bool) -> str:
    """The name of a model's figures in the record."""
    return f"{model} with sound" if sound else model


def with_sound(record: dict[str, Any]) -> str:
    """The section about sound, from the same record; empty until it is measured."""
    if not all(key_of(model, True) in record for model in MODELS):
        return ""
    rows = {model: [Row(**row) for row in record[key_of(model, True)]["rows"]] for model in MODELS}
    lines = [f"Measured with {record[key_of(model, True)]['with']} ({name})." for model, name in MODELS.items()]
    return SOUND_INTRO + table(rows) + "\n\n" + "\n\n".join(lines) + "\n"


def main() -> int:
    """Run the suites of the chosen models and write the page; exit code 1 where the default profile is not as PyBoy."""
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "accuracy.md")
    parser.add_argument("--record", type=Path, default=RECORD, help="JSON file of the figures, by model")
    parser.add_argument("--model", choices=[*MODELS, "both", "none"], default="both", help="what is measured anew")
    parser.add_argument("--sound", action="store_true", help="measure with sound, not muted")
    parser.add_argument("--steps", type=int, default=500, help="steps of each ROM in lockstep")
    args = parser.parse_args()
    record = json.loads(args.record.read_text()) if args.record.exists() else {}
    names = ", ".join(f"{name} {number}" for name, number in versions().items() if name != platform.system().lower())
    measured = MODELS if args.model == "both" else [model for model in MODELS if model == args.model]
    for model in measured:
        rows = [asdict(row) for row in measure(model, args.steps, args.sound)]
        record[key_of(model, args.sound)] = {"with": names, "rows": rows}
        write_json(args.record, record)
    write_text(args.out, page(record))
    print(args.out.read_text())
    found = [record[key_of(model, args.sound)]["rows"] for model in measured]
    return int(any(Row(**row).is_wrong for rows in found for row in rows))


if __name__ == "__main__":
    sys.exit(main())
