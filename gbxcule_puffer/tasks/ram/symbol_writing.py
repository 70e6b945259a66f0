"""Names of numbers in a symbol file: written without a change to its other lines, and read back with their readings."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath, read_bytes, write_bytes
from gbxcule_puffer.tasks.ram.addresses import bank_of
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.readings import number_of, word_of
from gbxcule_puffer.tasks.ram.symbol_files import (
    LARGEST_FILE,
    LONGEST,
    SECTIONS_OF_ADDRESSES,
    SYMBOL_FILE,
    Location,
    decode,
    lines_of_names,
)

MARK = "puffer:"  # begins the comment of a line that is written here; the word of the reading follows
LONGEST_NOTE = 200  # characters
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.#@$]*")
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{4}")
_COMMENT = re.compile(rf";\s*{MARK}\s*([\w-]+)")


def check_name(name: str) -> None:
    """Raises: ConfigError for a name that a symbol file cannot have, or that reads as an address."""
    if len(name) > LONGEST or _NAME.fullmatch(name) is None:
        raise ConfigError(f"name {name!r:.60}: give letters, digits, _ and ., at most {LONGEST}, with a letter first")
    if _HEXADECIMAL.fullmatch(name):
        raise ConfigError(f"name {name!r:.60} reads as a hexadecimal address: give another, such as {name}_")


def save_symbols(path: StrPath, numbers: Mapping[str, Number], notes: Mapping[str, str] | None = None) -> None:
    """Writes names of numbers, each at an address or (bank, address), into a symbol file, which is made where it is
    missing. All other lines of the file stay byte for byte; a name that was written here before is replaced.

    notes: a text for the comment after a name. Nothing is written unless all can be.

    Raises: ConfigError for a path that is not a .sym, a file that is not text or too large, a name that cannot be one,
    and one that another line of the file gives another address; StorageError as `write_bytes`.
    """
    if not os.fspath(path).lower().endswith(".sym"):
        raise ConfigError(f"symbols {path}: names are written into a .sym file: give one")
    data = read_bytes(path, SYMBOL_FILE, LARGEST_FILE) if os.path.lexists(path) else b""
    end = "\r\n" if b"\r\n" in data else "\n"
    lines, others = data.splitlines(keepends=True), dict[str, Location]()
    own, last = dict[str, int](), ""  # indices of lines that this function wrote; the section at the end
    for row, line, section, name, location in lines_of_names(decode(path, data)):
        last = section
        if name and _COMMENT.search(line):
            own.setdefault(name, row)
        elif name and location is not None:
            others.setdefault(name, location)
    fresh = list[str]()
    for name, number in numbers.items():
        check_name(name)
        location = location_of(number)
        if name in others and not _is_same(others[name], location):
            raise ConfigError(f"name {name!r:.60} is {others[name]} in {path}, not {location}: give another name")
        text = _line(name, location, number, (notes or {}).get(name, "")) + end
        if name in own:
            lines[own[name]] = text.encode()
        else:
            fresh.append(text)
    if fresh and lines and not lines[-1].endswith((b"\n", b"\r")):
        lines[-1] += end.encode()
    if fresh and last not in SECTIONS_OF_ADDRESSES:
        fresh.insert(0, f"[labels]{end}")
    whole = b"".join(lines) + "".join(fresh).encode()
    if len(whole) > LARGEST_FILE:
        raise ConfigError(f"symbols {path}: more than {LARGEST_FILE:,} bytes: give another file")
    write_bytes(path, whole)


def numbers_in(path: StrPath) -> dict[str, Number]:
    """The numbers that `save_symbols` named in a file, in its order; lines that are not understood are left out.

    Raises: ConfigError for a file that is missing, too large or not text.
    """
    found = dict[str, Number]()
    text = decode(path, read_bytes(path, SYMBOL_FILE, LARGEST_FILE))
    for _, line, _, name, location in lines_of_names(text):
        match = _COMMENT.search(line)
        if match is None or location is None:
            continue
        bank = bank_of(location.bank, location.address)
        where = location.address if bank is None else (bank, location.address)
        try:
            found[name] = number_of(match[1], where)
        except ConfigError:
            continue
    return found


def location_of(number: Number) -> Location:
    """The bank and the address that a symbol file has for a number.

    Raises: ConfigError for a number at a symbol.
    """
    bank, address = number.where if isinstance(number.where, tuple) else (None, number.where)
    if isinstance(address, str):
        raise ConfigError(f"{number.where!r:.60} is a symbol already: give an address")
    usual = 1 if hw.BANKED_WRAM <= address < hw.ECHO else 0
    return Location(usual if bank is None else bank, address)


def _is_same(one: Location, other: Location) -> bool:
    """True for two locations of one byte, such as 00:D000 and 01:D000."""
    return one.address == other.address and bank_of(one.bank, one.address) == bank_of(other.bank, other.address)


def _line(name: str, location: Location, number: Number, note: str) -> str:
    """A line of a symbol file; a note has no control characters there."""
    short = textwrap.shorten(note, LONGEST_NOTE, placeholder=" ...")
    plain = "".join(each if each.isprintable() else " " for each in short)
    return f"{location} {name} ; {MARK} {word_of(number)}{f', {plain}' if plain else ''}"
