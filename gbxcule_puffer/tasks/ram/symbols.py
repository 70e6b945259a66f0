"""Symbol files: the names that a disassembly gives to addresses, as RGBDS and no$gmb write them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, StrPath, read_text

SYMBOL_FILE = Kind("symbols", ConfigError, "give the .sym file that RGBDS (rgblink -n) or no$gmb's tools write")
LARGEST_FILE = 8 * 2**20  # bytes; the largest disassemblies have 2 MiB
LONGEST = 200  # characters of a name
MOST_SUGGESTIONS, MOST_COMPARED = 3, 50_000  # names: comparing one takes some microseconds
_LINE = re.compile(r"(?:([0-9A-Fa-f]{1,4}):)?([0-9A-Fa-f]{4})\s+(\S+)")
_WITH_OFFSET = re.compile(r"(.+?)\s*\+\s*(0[xX][0-9A-Fa-f]+|\d+)")
_OTHER_LINES = re.compile(r"\[.*\]|BOOT:.*", re.IGNORECASE)  # sections of WLA's files, the boot ROM


@dataclass(frozen=True)
class Location:
    """A place in the cartridge's address space. bank: of ROM or RAM, as the file says; 0 where it says none."""

    bank: int
    address: int


class Symbols(Mapping[str, Location]):
    """Names to locations. `source` is the file, for errors."""

    def __init__(self, names: Mapping[str, Location], source: StrPath = "symbols") -> None:
        self._names, self.source = dict(names), source

    @classmethod
    def load(cls, path: StrPath) -> Symbols:
        """The symbols of a file: lines `BANK:ADDRESS NAME` in hexadecimal, with comments from a semicolon on.

        Raises: ConfigError for a missing file, a line of another kind, and a name with two locations.
        """
        names: dict[str, Location] = {}
        for number, line in enumerate(read_text(path, SYMBOL_FILE, LARGEST_FILE).splitlines(), 1):
            text = line.partition(";")[0].strip()
            if not text or _OTHER_LINES.fullmatch(text):
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                raise SYMBOL_FILE.bad(path, f"line {number} is not a symbol ({text!r:.40})")
            if len(match[3]) > LONGEST:
                raise SYMBOL_FILE.bad(path, f"line {number} has a name of more than {LONGEST} characters")
            location = Location(int(match[1] or "0", 16), int(match[2], 16))
            if names.setdefault(match[3], location) != location:
                raise SYMBOL_FILE.bad(path, f"line {number} gives {match[3]!r:.40} a second address")
        if not names:
            raise SYMBOL_FILE.bad(path, "has no symbols")
        return cls(names, path)

    def find(self, text: str) -> Location:
        """The location of a name, or of one with an offset: `wParty + 4`.

        Raises: ConfigError for an unknown name; the message has the nearest ones.
        """
        if len(text) > LONGEST:
            raise ConfigError(f"symbol {text!r:.60}... is longer than {LONGEST} characters: give a name of the file")
        if text in self._names:
            return self._names[text]
        match = _WITH_OFFSET.fullmatch(text)
        if match is not None and match[1] in self._names:
            base, offset = self._names[match[1]], int(match[2], 0)
            if base.address + offset <= 0xFFFF:
                return Location(base.bank, base.address + offset)
            raise ConfigError(f"symbol {text!r:.60} is beyond FFFF: give a smaller offset")
        name = text if match is None else match[1]
        near = difflib.get_close_matches(name, islice(self._names, MOST_COMPARED), MOST_SUGGESTIONS)
        near = near or [known for known in self._names if known.lower() == name.lower()][:MOST_SUGGESTIONS]
        remedy = f"did you mean {' or '.join(near)}?" if near else "give one of its names"
        raise ConfigError(f"symbol {name!r:.60} is not in {self.source}: {remedy}")

    def __getitem__(self, name: str) -> Location:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
