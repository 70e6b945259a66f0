"""Reading mutants: each is accepted, refused in one line, or something else, which is a defect."""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gbxcule_puffer.errors import GBxCuLEError
from tests.hostile.formats import Format

SECONDS = 20  # that reading a file may take
MEMORY = 256 * 2**20  # bytes by which the process may grow, over all mutants of a format


@dataclass
class Tally:
    """What became of the mutants of one format; `others` tells what no file may cause, with the mutant's seed."""

    accepted: int = 0
    refused: int = 0
    others: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """All mutants."""
        return self.accepted + self.refused + len(self.others)


class TooLong(BaseException):
    """Reading does not end."""


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(one: Format, folder: Path, seeds: range, keep: Path | None = None) -> Tally:
    """Reads one mutant for each of `seeds`, made in `folder`; those that cause anything else are copied to `keep`."""
    valid = folder / "valid"
    one.make(valid)
    one.read(valid)
    files = sorted(valid.iterdir()) if valid.is_dir() else [valid]
    contents = {path: path.read_bytes() for path in files}
    tally, before = Tally(), peak()
    for seed in seeds:
        generator = random.Random(f"{one.name}/{seed}")
        path = generator.choice(files)
        path.write_bytes(one.mutate(contents[path], generator))
        fault = ""
        try:
            with _alarm():
                one.read(valid)
            tally.accepted += 1
        except GBxCuLEError as error:
            fault = "" if str(error).isprintable() and str(error) else f"an error of other than one line: {error!r}"
            tally.refused += not fault
        except TooLong:
            fault = f"more than {SECONDS} s"
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"[:200]
        if not fault and peak() - before > MEMORY:
            fault, before = f"{(peak() - before) // 2**20} MiB more memory", peak()
        if fault:
            tally.others.append(f"{one.name} {seed} ({path.name}): {fault}")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, keep / f"{one.name.replace(' ', '-')}-{seed}-{path.name}")
        path.write_bytes(contents[path])
    return tally
