"""The tests of the GBEmulatorShootout (github.com/gbdev/GBEmulatorShootout), with this emulator or with PyBoy.

python -m benchmarks.shootout FOLDER --sound --accuracy hardware --out shootout.json

FOLDER is a clone of it: its ROMs and reference pictures are not part of this repository. shootout_tests.json has its
list: names, models and seconds. As there, a test passes at the first of ten pictures a second that is like one of its
references, and fails where none is. The machines start behind the boot ROM. SGB tests are not run. The JSON is as the
Shootout's own, with the seconds of the emulated machine.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.commandline import command, flag, parse, word
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, RomError
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.pictures import to_rgb
from gbxcule_puffer.provenance import git_sha, versions

TESTS = Path(__file__).with_name("shootout_tests.json")
MODELS = {"DMG": "dmg", "CGB": "cgb"}
FRAMES = 6  # between two pictures
LATER = 6.0  # seconds that a test may take longer than in the list: what the Shootout gives for the boot ROM, and 5
VERDICTS = ("PASS", "FAIL")
TOLERANCE = 50  # of a pixel's grey


@command
class Flags:
    """Run the tests of the GBEmulatorShootout."""

    folder: str = word("a clone of github.com/gbdev/GBEmulatorShootout", "FOLDER")
    pyboy: bool = flag(False, "run PyBoy, not this emulator")
    accuracy: str = flag("pyboy", "of this emulator", one_of=("pyboy", "hardware"))
    sound: bool = flag(False, "with the sound unit")
    only: str = flag("", "run the tests with this in their names", metavar="TEXT")
    out: str | None = flag(None, "the JSON to write", metavar="FILE")
    record: str | None = flag(None, "the record of docs/accuracy.md, to add the verdicts to", metavar="FILE")


@dataclass(frozen=True)
class Test:
    """A line of shootout_tests.json. pictures: paths in testroms/, by default one beside the ROM."""

    name: str
    model: str
    seconds: float
    pictures: list[str] | None = None
    rom: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rom", self.name.partition(" (")[0])

    def references(self, folder: Path) -> list[np.ndarray]:
        """The pictures of a pass, in grey, (144, 160) int16."""
        names = [str(Path(self.rom).with_suffix(".png"))] if self.pictures is None else self.pictures
        return [grey(Image.open(folder / name)) for name in names]


def grey(picture: Image.Image) -> np.ndarray:
    """A picture's levels of grey as int16."""
    return np.asarray(picture.convert("L")).astype(np.int16)


def listed() -> list[Test]:
    """All tests."""
    return [Test(**entry) for entry in json.loads(TESTS.read_text())]


def pictures(flags: Flags, rom: bytes, test: Test) -> Iterator[Image.Image]:
    """A machine's pictures, ten a second, until the test is over."""
    options: dict[str, Any] = {"model": MODELS[test.model], "sound": flags.sound, "header": "pyboy"}
    options |= {"screen": "full", "frames_per_step": FRAMES, "release_after_frames": FRAMES}
    machine: Emulator | PyBoyEmulator
    if flags.pyboy:
        machine = PyBoyEmulator(rom, 1, **options)
    else:
        machine = Emulator(rom, 1, num_threads=1, accuracy=flags.accuracy, **options)
    try:
        for _ in range(int((test.seconds + LATER) * 60 / FRAMES)):
            machine.step(torch.zeros(1, dtype=torch.uint8))
            picture = machine.colors if test.model == "CGB" else machine.screen
            yield Image.fromarray(to_rgb(picture[0].numpy()))
    finally:
        if isinstance(machine, PyBoyEmulator):
            machine.close()


def run(flags: Flags, folder: Path, test: Test) -> dict[str, Any]:
    """A test's entry in the JSON; INFO for one without reference pictures."""
    references = test.references(folder)
    found: dict[str, Any] = {"result": "FAIL" if references else "INFO", "startuptime": 0.0, "runtime": 0.0}
    picture = None
    try:
        for picture in pictures(flags, (folder / test.rom).read_bytes(), test):
            found["runtime"] = round(found["runtime"] + FRAMES / 60, 1)
            shown = grey(picture)
            if any((abs(shown - reference) <= TOLERANCE).all() for reference in references):
                found["result"] = "PASS"
                break
    except RomError as error:
        print(f"{test.name}: {error}", file=sys.stderr)
    png = io.BytesIO()
    if picture is not None:
        picture.save(png, "png")
    return found | {"screenshot": base64.b64encode(png.getvalue()).decode()}


def name_of(flags: Flags) -> str:
    """The machine's name in the JSON."""
    name = "PyBoy" if flags.pyboy else "gbxcule-puffer"
    return name + (", hardware" if flags.accuracy == "hardware" else "") + (", sound" if flags.sound else "")


def run_all(flags: Flags) -> dict[str, Any]:
    """The JSON. Raises: ConfigError for a folder without the tests."""
    folder = Path(flags.folder) / "testroms"
    wanted = [test for test in listed() if test.model in MODELS and flags.only in test.name]
    present = [test for test in wanted if (folder / test.rom).exists()]
    if not present:
        raise ConfigError(f"{folder} has no ROM of a test: give a clone of github.com/gbdev/GBEmulatorShootout")
    missing = [test.name for test in wanted if test not in present]
    if missing:
        print(f"{len(missing)} ROMs are not there, {missing[0]} first", file=sys.stderr)
    tests = {}
    for test in present:
        tests[test.name] = run(flags, folder, test)
        print(f"{tests[test.name]['result']} {test.name}", file=sys.stderr)
    return {"emulator": name_of(flags), "date": time.time(), "tests": tests}


def keep(path: Path, record: dict[str, Any]) -> None:
    """Add a machine's verdicts to the record of docs/accuracy.md."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    lists = {
        verdict: [name for name, entry in record["tests"].items() if entry["result"] == verdict] for verdict in VERDICTS
    }
    write_json(path, kept | {record["emulator"]: {"git_sha": git_sha(), "versions": versions(), **lists}})


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print the counts and write the JSON; exit code 2 for bad input."""
    try:
        flags = parse(Flags, "python -m benchmarks.shootout", argv=argv)
        if flags.out:
            check_target(flags.out)
        record = run_all(flags)
        if flags.out:
            write_json(flags.out, record)
        if flags.record:
            keep(Path(flags.record), record)
    except GBxCuLEError as error:
        print(f"benchmarks.shootout: {error}", file=sys.stderr)
        return 2
    counts = Counter(entry["result"] for entry in record["tests"].values())
    print(f"{record['emulator']}: {counts['PASS']} of {counts['PASS'] + counts['FAIL']} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
