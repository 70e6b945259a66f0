"""The RAM of a person's game: searches, live values, pokes, frozen values and names, all by one line of text each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import ROMS, find_own, find_rom
from gbxcule_puffer.tasks.ram.addresses import bank_of, parse_address
from gbxcule_puffer.tasks.ram.narrowing import FORMS, is_narrowing, parse_narrowing, parse_number
from gbxcule_puffer.tasks.ram.number import Number, Numbers
from gbxcule_puffer.tasks.ram.readings import number_of, stored, word_of
from gbxcule_puffer.tasks.ram.search import ANY, MOST_LISTED, Match, Search
from gbxcule_puffer.tasks.ram.symbol_files import files_beside
from gbxcule_puffer.tasks.ram.symbol_writing import check_name, numbers_in, save_symbols
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.ram.view import Ram, Where

MOST_SHOWN, MOST_WATCHED = 50, 64
LONGEST_COMMAND = 300  # characters
COMMANDS = {  # usage, meaning
    "search": ("search [READING ...]", "start a new search: for any number, or as u8, u16be, bcd3, digits6 ..."),
    "undo": ("undo", "take the last condition back"),
    "list": ("list", "the numbers that are watched and those that are left"),
    "watch": ("watch WHERE [READING]", "show a number"),
    "unwatch": ("unwatch WHERE", "show it no more"),
    "poke": ("poke WHERE VALUE [READING]", "write it once"),
    "freeze": ("freeze WHERE [VALUE [READING]]", "write it after every step"),
    "thaw": ("thaw WHERE", "leave it to the game again"),
    "name": ("name WHERE NAME [READING]", "write its name into the symbol file"),
    "help": ("help", "these lines"),
}
HELP = "\n".join(
    [
        f"{FORMS}: keep the numbers of which this is true now, against the last look, or the first (since start)",
        *(f"{usage:<32}{meaning}" for usage, meaning in COMMANDS.values()),
        "WHERE: #1 of the list, an address such as C0A5 or 1:A000, or a symbol",
    ]
)


@dataclass
class Watch:
    """A number that is shown, and the value that is written after every step, if it is frozen."""

    number: Number
    frozen: int | None = None


class Memory:
    """Searches and watched numbers of one Game Boy.

    symbols: a file of symbols. Names are written to it if it is a .sym, which need not be there yet; else to the one
    beside the ROM, and for our own ROMs to one in the folder `out`. may_write: called before the game's RAM is written,
    raises a ConfigError where it cannot be; wrote: called after that, and where a value is not frozen any more.
    """

    def __init__(
        self,
        emulator: Emulator,
        rom: StrPath,
        out: Path | None,
        symbols: StrPath | None,
        may_write: Callable[[], None],
        wrote: Callable[[], None],
    ) -> None:
        """Raises: ConfigError for a file of symbols that cannot be read."""
        self._rom, self._may_write, self._wrote = find_rom(rom), may_write, wrote
        self._given = None if symbols is None else find_own(symbols, ".sym")
        self.target = self._find_target(out)
        self.ram = Ram(emulator)
        self.search: Search | None = None
        self.matches: list[Match] = []
        self.conditions: list[str] = []
        self.watches: dict[str, Watch] = {}
        self.message, self.failed, self.answered = "", False, 0
        self._numbers: Numbers | None = None
        self._load_symbols()
        self.watches = {name: Watch(number) for name, number in [*self._named.items()][:MOST_WATCHED]}

    def command(self, text: str) -> str:
        """Carries out a line of HELP; returns the `message`, one line or some, also of what is wrong (`failed`)."""
        self.failed, self.answered = False, self.answered + 1
        try:
            self.message = self._command(text.strip())
        except GBxCuLEError as error:
            self.message, self.failed = str(error), True
        return self.message

    @property
    def frozen(self) -> bool:
        """True if a value is frozen."""
        return any(watch.frozen is not None for watch in self.watches.values())

    def write_frozen(self) -> None:
        """Writes the frozen values."""
        for watch in self.watches.values():
            if watch.frozen is not None:
                self._write(watch.number, watch.frozen)

    def state(self) -> dict[str, Any]:
        """Everything that a display shows, with values as they are now."""
        values = self._values()
        watches = [
            {"name": name, **_described(watch.number), "value": value, "frozen": watch.frozen is not None}
            for (name, watch), value in zip(self.watches.items(), values, strict=False)
        ]
        matches = [
            {
                "name": self._symbols.get(match.number.where, ""),
                **_described(match.number),
                "value": value,
                "last": match.last,
                "first": match.first,
            }
            for match, value in zip(self.matches[:MOST_SHOWN], values[len(watches) :], strict=True)
        ]
        state = {"watches": watches, "matches": matches, "left": self.left, "conditions": self.conditions}
        about = {"message": self.message, "failed": self.failed, "answered": self.answered, "target": self.target.name}
        return state | about

    @property
    def left(self) -> int | None:
        """The number of matches that are left; None without a search. Equal readings count once where they are few."""
        if self.search is None:
            return None
        return len(self.matches) if self.search.count <= MOST_LISTED else self.search.count

    @property
    def names(self) -> list[str]:
        """Symbols of RAM, for a display that completes them."""
        pairs = () if self.ram.symbols is None else self.ram.symbols.items()
        return [name for name, location in pairs if 0x8000 <= location.address < 0xFF00 or location.address >= 0xFF80]

    @property
    def title(self) -> str:
        """The first watched numbers, for the title of a window."""
        return "  ".join(f"{name} {value:,}" for name, value in zip([*self.watches][:6], self._values(), strict=False))

    def lines(self, most: int = MOST_SHOWN) -> list[str]:
        """The watched numbers and what is left of the search, as at most `most` lines of text."""
        state = self.state()
        rows = [
            f"{each['name']:<12.24} {each['value']:>6} {'frozen' if each['frozen'] else each['reading']}"
            for each in state["watches"]
        ]
        if self.search is not None:
            rows.append(f"{self.left:,} left")
        for i, each in enumerate(state["matches"], 1):
            rows.append(f"#{i:<3} {each['where']:<6} {each['value']:>6} {each['reading']} {each['name']}".rstrip())
        return rows[:most]

    def _command(self, text: str) -> str:
        if len(text) > LONGEST_COMMAND:
            raise ConfigError(f"a command has at most {LONGEST_COMMAND} characters, not {len(text)}")
        if is_narrowing(text):
            return self._narrow(text)
        word, *rest = text.split() or ["help"]
        functions: dict[str, tuple[Callable[..., str], int, int]] = {
            "search": (self._begin, 0, len(ANY)), "undo": (self._undo, 0, 0), "list": (self._list, 0, 0),
            "watch": (self._watch, 1, 2), "unwatch": (self._unwatch, 1, 1), "poke": (self._poke, 2, 3),
            "freeze": (self._freeze, 1, 3), "thaw": (self._thaw, 1, 1), "name": (self._name, 2, 3),
            "help": (lambda: HELP, 0, 0),
        }  # fmt: skip
        word = word.lower()
        if word not in functions:
            others = ", ".join(functions)
            raise ConfigError(f"{word!r:.40} is not a command: give a condition such as = 120 or rose, or {others}")
        function, least, most = functions[word]
        if not least <= len(rest) <= most:
            raise ConfigError(f"{text!r:.60} is not complete, or too long: give {COMMANDS[word][0]}")
        return function(*rest)

    # -- the search --

    def _begin(self, *readings: str) -> str:
        self.search = Search(self.ram, readings or ANY)
        self.conditions = []
        self._list_matches()
        return f"a new search: {self.left:,} numbers; give a condition, or play on and say what the number did"

    def _narrow(self, text: str) -> str:
        narrowing = parse_narrowing(text)
        if self.search is None:
            self._begin()
        assert self.search is not None
        self.search.narrow(narrowing)
        self.conditions = [*self.conditions, text]
        self._list_matches()
        return f"{text}: {self.left:,} left" + ("" if self.left else ": undo takes the condition back")

    def _undo(self) -> str:
        if self.search is None or not self.search.undo():
            raise ConfigError("there is no condition to take back")
        self.conditions = self.conditions[:-1]
        self._list_matches()
        return f"{self.left:,} left"

    def _list(self) -> str:
        rows = self.lines()
        return "\n".join(rows) if rows else "nothing is watched, and no search has begun: help lists the commands"

    def _list_matches(self) -> None:
        assert self.search is not None
        self.matches = self.search.matches(most=MOST_LISTED if self.search.count <= MOST_LISTED else MOST_SHOWN)
        self._numbers = None

    # -- numbers --

    def _watch(self, where: str, reading: str | None = None) -> str:
        name, number = self._find(where, reading)
        self._add(name, number)
        return f"{name} is {self._read(number):,}"

    def _unwatch(self, where: str) -> str:
        name, _ = self._find(where)
        if name not in self.watches:
            raise ConfigError(f"{where!r:.60} is not watched")
        self._thaw_watch(self.watches[name])
        del self.watches[name]
        self._numbers = None
        return f"{name} is not shown any more"

    def _poke(self, where: str, value: str, reading: str | None = None) -> str:
        name, number = self._find(where, reading)
        wanted = self._parse(value)
        stored(number, wanted, [0] * number.size)
        self._may_write()
        if name in self.watches and self.watches[name].frozen is not None:
            self.watches[name].frozen = wanted
        self._write(number, wanted)
        self._wrote()
        return f"{name} is {wanted:,} now"

    def _freeze(self, where: str, value: str | None = None, reading: str | None = None) -> str:
        name, number = self._find(where, reading)
        wanted = self._read(number) if value is None else self._parse(value)
        stored(number, wanted, [0] * number.size)
        self._may_write()
        watch = self._add(name, number)
        self._write(number, wanted)
        watch.frozen = wanted
        self._wrote()
        return f"{name} stays {wanted:,}: thaw {name} lets it go"

    def _thaw(self, where: str) -> str:
        name, _ = self._find(where)
        if name not in self.watches or self.watches[name].frozen is None:
            raise ConfigError(f"{where!r:.60} is not frozen")
        self._thaw_watch(self.watches[name])
        return f"{name} is the game's again"

    def _name(self, where: str, name: str, reading: str | None = None) -> str:
        old, number = self._find(where, reading)
        check_name(name)
        symbols = self.ram.symbols
        if (
            symbols is not None
            and name in symbols
            and name not in self._named
            and parse_address(name, name, symbols) != number.where
        ):
            raise ConfigError(f"name {name!r:.60} is {symbols[name]} in {symbols.source}: give another name")
        save_symbols(self.target, {name: number})
        frozen = self.watches.pop(old).frozen if old in self.watches else None
        self._load_symbols()
        self._add(name, number).frozen = frozen
        return f"{name} is {_where(number)}, {word_of(number)}: written to {self.target}"

    def _find(self, where: str, reading: str | None = None) -> tuple[str, Number]:
        """The label and the number of a WHERE.

        Raises: ConfigError.
        """
        if where.startswith("#"):
            index = parse_number(where[1:])
            if index is None or not 1 <= index <= min(len(self.matches), MOST_SHOWN):
                raise ConfigError(
                    f"{where!r:.40} is not in the list of what is left: it has {len(self.matches)} numbers"
                )
            number = self.matches[index - 1].number
            name = next((each for each, known in self._named.items() if known == number), _where(number))
        elif where in self.watches:
            name, number = where, self.watches[where].number
        elif where in self._named:
            name, number = where, self._named[where]
        else:
            number = Number(self._locate(where))
            name = where if self.ram.symbols is not None and where in self.ram.symbols else _where(number)
            if name in self.watches:
                number = self.watches[name].number
        if reading is not None:
            number = number_of(reading, number.where)
        self.ram.view(number.where, number.size)  # all of it is in one area
        return name, number

    def _locate(self, where: str) -> int | tuple[int, int]:
        try:
            return parse_address(where, "", self.ram.symbols)
        except ConfigError as error:
            raise ConfigError(str(error).removeprefix(": ")) from None

    def _parse(self, text: str) -> int:
        value = parse_number(text)
        if value is None:
            raise ConfigError(f"value {text!r:.40} is not a number: give one such as 99, -1 or 0x1F")
        return value

    def _add(self, name: str, number: Number) -> Watch:
        if name not in self.watches and len(self.watches) >= MOST_WATCHED:
            raise ConfigError(f"{MOST_WATCHED} numbers are watched: unwatch one first")
        if name not in self.watches or self.watches[name].number != number:
            if name in self.watches:
                self._thaw_watch(self.watches[name])
            self.watches[name] = Watch(number)
            self._numbers = None
        return self.watches[name]

    def _thaw_watch(self, watch: Watch) -> None:
        if watch.frozen is not None:
            watch.frozen = None
            self._wrote()

    def _read(self, number: Number) -> int:
        return int(Numbers(self.ram, [number]).read()[0, 0])

    def _write(self, number: Number, value: int) -> None:
        old = self.ram.view(number.where, number.size)[0].tolist()
        self.ram.poke(number.where, stored(number, value, old))

    def _values(self) -> list[int]:
        """The watched numbers and those of the list that are shown."""
        if self._numbers is None:
            shown = [match.number for match in self.matches[:MOST_SHOWN]]
            numbers = [*(watch.number for watch in self.watches.values()), *shown]
            self._numbers = Numbers(self.ram, numbers) if numbers else None
        return [] if self._numbers is None else self._numbers.read()[0].tolist()

    # -- symbols --

    def _find_target(self, out: Path | None) -> Path:
        """The file that names are written to: the given one, if it is a .sym that is not ours, else beside the ROM."""
        if self._given is not None and self._given.lower().endswith(".sym") and not _is_ours(self._given):
            return Path(self._given)
        if _is_ours(self._rom):
            return (out or Path("play")) / Path(self._rom).with_suffix(".sym").name
        beside = [each for each in files_beside(self._rom) if each.endswith(".sym")]
        return Path(beside[0]) if beside else Path(self._rom).with_suffix(".sym")

    def _load_symbols(self) -> None:
        """Reads the names of all files, and the numbers that were named here before. What is wrong with a file beside
        the ROM is a message.

        Raises: ConfigError for a given file that cannot be read.
        """
        there, beside = os.path.lexists(self.target), files_beside(self._rom)
        given = self._given if self._given != os.fspath(self.target) or there else None
        if there and os.fspath(self.target) not in beside:
            given = os.fspath(self.target)
        self.ram.symbols = Symbols.find_files(given, self._rom)
        self._named, self._symbols = {}, {}  # names of bytes
        for name, location in () if self.ram.symbols is None else self.ram.symbols.items():
            bank = bank_of(location.bank, location.address)
            self._symbols.setdefault(location.address if bank is None else (bank, location.address), name)
        try:
            self._named = numbers_in(self.target) if there else {}
        except ConfigError as error:
            if given == os.fspath(self.target):
                raise
            self.message, self.failed = str(error), True


def _is_ours(path: str) -> bool:
    """True for a file that comes with the package."""
    return Path(path).resolve().is_relative_to(ROMS.resolve())


def _where(number: Number) -> str:
    """An address as people write it: C0A5, or 1:A000."""
    where: Where = number.where
    return f"{where[0]}:{where[1]:04X}" if isinstance(where, tuple) else f"{where:04X}"


def _described(number: Number) -> dict[str, str]:
    return {"where": _where(number), "reading": word_of(number)}
