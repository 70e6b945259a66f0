"""Symbols: the names that a disassembly or a linker gives to addresses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import find_own
from gbxcule_puffer.tasks.ram.symbol_files import LONGEST, SYMBOL_FILE, Location, files_beside, read_symbol_file

MOST_SUGGESTIONS, MOST_COMPARED = 3, 50_000  # names: comparing one takes some microseconds
MOST_LOCATIONS = 4  # of one name, in an error
_NAME = re.compile(r"(?![0-9A-Fa-f]+$)[A-Za-z_][\w.#@$]*")  # not a hexadecimal address
ANYWHERE = Location(0, 0xC000)
_WITH_OFFSET = re.compile(r"(.+?)\s*\+\s*(0[xX][0-9A-Fa-f]+|\d+)")


class Symbols(Mapping[str, Location]):
    """Names to locations. `source` is the file or files, for errors; names that have no address, or several, are not in
    the mapping, and an error where they are asked for."""

    def __init__(self, names: Mapping[str, Location] | None = None, source: StrPath = "") -> None:
        self._names, self.source = dict(names or {}), str(source)
        self._locations = {name: [location] for name, location in self._names.items()}
        self._others: dict[str, str] = {}  # names that have no address, and why
        self._faults: list[str] = []  # of files that could not be read

    @classmethod
    def load(cls, path: StrPath) -> Symbols:
        """The symbols of a file.

        Raises: ConfigError for a file that is missing, too large, not text, or has no symbols.
        """
        symbols = cls()
        path = find_own(path, ".sym")
        symbols._add(path)
        if not symbols._locations:
            raise SYMBOL_FILE.bad(path, "has no symbols")
        return symbols

    @classmethod
    def find_files(cls, given: StrPath | None, rom: str | None) -> Symbols | None:
        """The symbols of the file that is given, and of those beside the ROM at `rom` for names that it does not have;
        None where there are none. A file beside the ROM that cannot be read counts only when a name is not found.

        Raises: ConfigError, as `load`.
        """
        symbols = cls() if given is None else cls.load(given)
        for path in [] if rom is None else files_beside(rom):
            try:
                symbols._add(path)
            except ConfigError as error:
                symbols._faults.append(str(error))
        return symbols if symbols._locations or symbols._faults else None

    def find(self, text: str) -> Location:
        """The location of a name, or of one with an offset: `wParty + 4`.

        Raises: ConfigError for a name that is unknown, with the nearest ones, and for one that has no address or
        several.
        """
        if len(text) > LONGEST:
            raise ConfigError(f"symbol {text!r:.60}... is longer than {LONGEST} characters: give a name of the file")
        match = None if self.knows(text) else _WITH_OFFSET.fullmatch(text)
        name, offset = (text, 0) if match is None else (match[1], int(match[2], 0))
        if name in self._names:
            base = self._names[name]
            if base.address + offset <= 0xFFFF:
                return Location(base.bank, base.address + offset)
            raise ConfigError(f"symbol {text!r:.60} is beyond FFFF: give a smaller offset")
        raise ConfigError(f"symbol {name!r:.60} {self._fault(name)}")

    def knows(self, name: str) -> bool:
        """True for a name of the files, whatever they say of it."""
        return name in self._locations or name in self._others

    def pairs(self) -> Iterator[tuple[str, Location]]:
        """Every name with each of its locations."""
        for name, locations in self._locations.items():
            for location in locations:
                yield name, location

    def _add(self, path: StrPath) -> None:
        """Takes the names of a file that are new."""
        file = read_symbol_file(path)
        locations = {name: each for name, each in file.locations.items() if not self.knows(name)}
        self._others |= {name: why for name, why in file.others.items() if not self.knows(name)}
        self._locations |= locations
        self._names |= {name: each[0] for name, each in locations.items() if len(each) == 1}
        self.source += f" and {path}" if self.source else str(path)

    def _fault(self, name: str) -> str:
        """Why a name has no location, as an error ends."""
        locations = self._locations.get(name, [])
        if locations:
            further = f" and {len(locations) - MOST_LOCATIONS} more" if len(locations) > MOST_LOCATIONS else ""
            listed = ", ".join(map(str, locations[:MOST_LOCATIONS]))
            return f"has several addresses in {self.source} ({listed}{further}): give the one that you mean"
        if name in self._others:
            return self._others[name]
        near = difflib.get_close_matches(name, islice(self._names, MOST_COMPARED), MOST_SUGGESTIONS)
        near = near or [known for known in self._names if known.lower() == name.lower()][:MOST_SUGGESTIONS]
        remedy = f"did you mean {' or '.join(near)}?" if near else "give one of its names"
        return "; ".join([f"is not in {self.source}: {remedy}", *self._faults])

    def __getitem__(self, name: str) -> Location:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class AnySymbols(Symbols):
    """Symbols of a file that is not known yet: it has every name. `asked`: the names that were looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, None] = {}

    def is_name(self, text: str) -> bool:
        """True for a name, also with an offset, that is not a hexadecimal address."""
        return self.knows(text.partition("+")[0].strip())

    def knows(self, name: str) -> bool:
        return _NAME.fullmatch(name) is not None

    def find(self, text: str) -> Location:
        """A location in RAM that stands for the later one."""
        self.asked[text.partition("+")[0].strip()] = None
        return ANYWHERE
