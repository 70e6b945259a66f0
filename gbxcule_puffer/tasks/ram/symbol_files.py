"""Symbol files as RGBDS, GBDK, WLA DX, SDCC and no$gmb write them, and which of them belong to a ROM."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, read_bytes

SYMBOL_FILE = Kind(
    "symbols", ConfigError, "give the .sym file of rgblink -n, wlalink -S or makebin -yS, or sdld's .map or .noi"
)
LARGEST_FILE = 8 * 2**20  # bytes; the largest disassemblies have 2 MiB
LONGEST = 200  # characters of a name
MAP_SUFFIX, MAP_TITLE = ".map", "ASxxxx"
# What follows a name is metadata (rgbds.gbdev.io/sym), in a .map the module.
_LINE = re.compile(r"(?:(BOOT|[0-9A-F]{1,8}):)?([0-9A-F]{1,8})\s+(\S+)(?:\s.*)?", re.IGNORECASE)
_NOICE = re.compile(r"DEF\s+(\S+)\s+0x([0-9A-F]{1,8})", re.IGNORECASE)
_SECTION = re.compile(r"\[(.*)\]")
# Sections of wlalink; others have sizes and lines of source.
SECTIONS_OF_ADDRESSES, SECTIONS_OF_NAMES = ("", "labels", "symbols"), ("", "labels", "symbols", "definitions")


@dataclass(frozen=True)
class Location:
    """An address, and its bank of ROM or RAM as the file says; 0 where it names none."""

    bank: int
    address: int

    def __str__(self) -> str:
        return f"{self.bank:02X}:{self.address:04X}"


@dataclass
class SymbolFile:
    """The names of a file. locations: of each name, without repetition; others: names that have no address, and why."""

    locations: dict[str, list[Location]] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def read_symbol_file(path: StrPath) -> SymbolFile:
    """The names of a file; lines that are not understood are left out.

    Raises: ConfigError for a file that is missing, too large or not text.
    """
    found, source = SymbolFile(), os.fspath(path)
    text = decode(path, read_bytes(path, SYMBOL_FILE, LARGEST_FILE))
    is_map = source.lower().endswith(MAP_SUFFIX) or text.startswith(MAP_TITLE)
    for number, whole, section in _lines(text):
        line = _plain(whole)
        name, location = _named(line, section, is_map)
        if not name:
            continue
        if location is None:
            why = "has no address" if ":" in line.split()[0] else "is a constant, not an address"
            where = f"{source}, in [{section}]," if section else source
            found.others[name] = f"{why}: line {number} of {where} is {line!r:.60}, not BANK:ADDRESS NAME"
        elif location not in found.locations.setdefault(name, []):
            found.locations[name].append(location)
    _drop_lengths(found, source)
    return found


def files_beside(rom: str) -> list[str]:
    """The symbol files beside a ROM that PyBoy would read. Of two with the same name in them PyBoy takes the address of
    game.gb.sym before game.sym, and of a .map only where no .sym has the name: the first of this list."""
    stem, suffix = os.path.splitext(rom)
    names = [f"{stem}{suffix}.sym", f"{stem}.sym", f"{stem}.map", f"{stem}{suffix}.map"]
    return [name for name in dict.fromkeys(names) if os.path.isfile(name)]


def decode(path: StrPath, data: bytes) -> str:
    """The text of a file, with or without a byte order mark. Comments may be in any other encoding of single bytes.

    Raises: ConfigError for UTF-16 and for data that are not text.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SYMBOL_FILE.bad(path, "is UTF-16 text, not UTF-8")
    if b"\0" in data:
        raise SYMBOL_FILE.bad(path, f"is not UTF-8 text (a zero byte at {data.index(0)})")
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def lines_of_names(text: str) -> Iterator[tuple[int, str, str, str, Location | None]]:
    """(index, whole line, its section, name, location) of all lines of a .sym. In a line without them, the name is
    empty and the location None."""
    for number, whole, section in _lines(text):
        yield number - 1, whole, section, *_named(_plain(whole), section, False)


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """(number, line, section in small letters) of all lines."""
    section = ""
    for number, whole in enumerate(text.split("\n"), 1):
        header = _SECTION.fullmatch(_plain(whole))
        if header is not None:
            section = header[1].strip().lower()
        yield number, whole, section


def _plain(line: str) -> str:
    """A line without its comment."""
    return line.partition(";")[0].strip()


def _named(line: str, section: str, is_map: bool) -> tuple[str, Location | None]:
    """The name that a line defines, and its location, if that is an address; an empty name where it defines none."""
    named = _NOICE.fullmatch(line)
    match = None if named else _LINE.fullmatch(line)
    if named is not None:
        name, location = named[1], _far(named[2])
    elif match is not None:
        name, location = match[3], _far(match[2]) if is_map else _near(match[1], match[2], section)
    else:
        return "", None
    return (name, location) if len(name) <= LONGEST and section in SECTIONS_OF_NAMES else ("", None)


def _near(bank: str | None, digits: str, section: str) -> Location | None:
    """The location that BANK:ADDRESS gives. Without a bank, rgblink writes constants; addresses are those among labels,
    and those that wlalink -sM writes with eight digits, where rgblink would take four."""
    address = int(digits, 16)
    if section not in SECTIONS_OF_ADDRESSES or address > 0xFFFF or (bank or "").upper() == "BOOT":
        return None
    if bank is not None:
        return Location(int(bank, 16), address)
    return Location(0, address) if len(digits) == 8 or (section and len(digits) == 4) else None


def _far(digits: str) -> Location:
    """The location of sdld's numbers, which have the bank above the address."""
    value = int(digits, 16)
    return Location(value >> 16, value & 0xFFFF)


def _drop_lengths(found: SymbolFile, source: str) -> None:
    """Moves l__AREA beside s__AREA, the lengths and starts of sdld's areas, to the names without an address."""
    for name in [name for name in found.locations if name.startswith("l__") and f"s{name[1:]}" in found.locations]:
        del found.locations[name]
        found.others[name] = f"is a constant, not an address: the length of the area {name[2:]} in {source}"
