"""A game's ROM: found by its digest, and patched for a variant, in memory alone."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from gbxcule_puffer.emulator.cartridge import MAX_ROM_SIZE, ROM_FILE
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, RomError
from gbxcule_puffer.files import Kind, StrPath, read_bytes
from gbxcule_puffer.layout import find_rom

SUFFIXES = (".gb", ".gbc", ".sgb", ".dmg")
MOST_FILES = 2_000  # of a folder that are looked at
VARIABLE = "GBXCULE_ROMS"  # names folders with ROMs, with the separator of PATH between them
SMALLEST = 2**14  # bytes of a ROM
IPS_FILE = Kind("IPS patch", ConfigError, "give the .ips file of the patch")
IPS_START, IPS_END = b"PATCH", b"EOF"
LARGEST_IPS = 2 * MAX_ROM_SIZE


@dataclass(frozen=True)
class RomSource:
    """The ROM as a game.toml names it. by_symbols: all addresses are names of the symbol file beside the ROM, so that a
    ROM that is given may be another build."""

    sha256: str
    file: Path | None = None
    model: str = "dmg"
    header: str = "strict"
    author: str = ""
    license: str = ""
    source: str = ""
    others: tuple[str, ...] = ()  # digests of more versions
    by_symbols: bool = False

    @property
    def digests(self) -> tuple[str, ...]:
        """The SHA-256 of each ROM that it may be."""
        return (self.sha256, *self.others)

    def find(self, folder: Path, given: StrPath | None = None) -> Path | None:
        """The ROM's file: the `given` one, else the named one, else one that has the digest: in the game's `folder`,
        in the folder above it, in those of GBXCULE_ROMS and below them, or in the user's (fetched_folder); None where
        there is none.

        Raises: RomError for a file that is given or named, and has another digest or cannot be read.
        """
        named = Path(find_rom(given)) if given is not None else self.file
        if named is not None:
            found = digest(named)
            if found not in self.digests and not self.by_symbols:
                raise RomError(
                    f"{named}: is not the game's ROM, its SHA-256 is {found}, not {self.sha256}: {self.remedy()}"
                )
            return named
        resolved = folder.resolve()
        beside = chain(images(resolved), images(resolved.parent))
        named_folders = (Path(each) for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each)
        elsewhere = chain(*(images_below(each) for each in named_folders), images(fetched_folder()))
        for path in chain(islice(beside, 2 * MOST_FILES), islice(elsewhere, MOST_FILES)):
            with contextlib.suppress(GBxCuLEError, OSError):
                if _digest_of(path, path.stat().st_mtime_ns) in self.digests:
                    return path
        return None

    def remedy(self) -> str:
        """The end of an error: where the ROM may be had, and how to give it."""
        where = f"get it from {self.source:.200}, and " if self.source else ""
        return f"{where}give its file with --rom, put it into the game's folder, or take it with `puffer game fetch`"


def digest(path: Path) -> str:
    """SHA-256 of a ROM's file, hex. Raises: RomError if it cannot be read."""
    return hashlib.sha256(read_bytes(path, ROM_FILE, MAX_ROM_SIZE)).hexdigest()


@lru_cache(maxsize=4 * MOST_FILES)
def _digest_of(path: Path, changed: int) -> str:
    """The digest of a file that was changed at this time."""
    return digest(path)


def fetched_folder() -> Path:
    """The user's folder of ROMs, which `puffer game fetch` copies into: ~/.local/share/gbxcule-puffer/roms, or below
    XDG_DATA_HOME."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return Path(data) / "gbxcule-puffer/roms"


def images_below(folder: Path) -> Iterator[Path]:
    """Files in a folder and those below it that may be ROMs, in the order of their names."""
    for parent, below, _ in os.walk(folder):
        below.sort()
        yield from images(Path(parent))


def images(folder: Path) -> Iterator[Path]:
    """Files in a folder that may be ROMs, sorted by name."""
    try:
        names = sorted(islice(os.listdir(folder), 50 * MOST_FILES))
    except OSError:
        return
    for name in names:
        path = folder / name
        with contextlib.suppress(OSError):
            if path.suffix.lower() in SUFFIXES and path.is_file() and not path.stat().st_size % SMALLEST:
                yield path


@dataclass(frozen=True)
class Patch:
    """A change of a ROM's image: `data` at `offset`, or the file `ips`. source: names the field, for errors."""

    source: str
    offset: int = 0
    data: bytes = b""
    ips: Path | None = None

    def apply(self, image: bytearray) -> None:
        """Changes the image.

        Raises: ConfigError for bytes beyond its end, and for a damaged file.
        """
        if self.ips is not None:
            _apply_ips(image, read_bytes(self.ips, IPS_FILE, LARGEST_IPS), self.ips)
            return
        if self.offset + len(self.data) > len(image):
            last = f"{len(image) - 1:#x}"
            raise ConfigError(
                f"{self.source}: offset {self.offset:#x} and its bytes end beyond the ROM: give at most {last}"
            )
        image[self.offset : self.offset + len(self.data)] = self.data


def _apply_ips(image: bytearray, data: bytes, path: Path) -> None:
    """The patch of an IPS file: records of a 24-bit offset, a 16-bit length and bytes; a length of 0 has a 16-bit count
    and one byte to repeat; after the end there may be the length to cut the image to."""
    if not data.startswith(IPS_START):
        raise IPS_FILE.bad(path, f"does not begin with {IPS_START.decode()}")
    at = len(IPS_START)

    def number(size: int) -> int:
        nonlocal at
        if at + size > len(data):
            raise IPS_FILE.bad(path, "is cut off")
        at += size
        return int.from_bytes(data[at - size : at], "big")

    while data[at : at + 3] != IPS_END or len(data) - at not in (3, 6):
        offset, length = number(3), number(2)
        if length:
            if at + length > len(data):
                raise IPS_FILE.bad(path, "is cut off")
            piece, at = data[at : at + length], at + length
        else:
            count = number(2)
            piece = bytes([number(1)]) * count
        if offset + len(piece) > MAX_ROM_SIZE:
            raise IPS_FILE.bad(path, f"writes beyond {MAX_ROM_SIZE:,} bytes")
        if offset > len(image):
            image.extend(bytes(offset - len(image)))
        image[offset : offset + len(piece)] = piece
    at += 3
    if at < len(data):
        del image[number(3) :]
