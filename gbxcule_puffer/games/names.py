"""The names that a game's terms may use: its [numbers] and [terms], and the symbols of its ROM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.table import Table, check_name
from gbxcule_puffer.games.terms.nodes import BOOL, WHOLE, Tape
from gbxcule_puffer.games.terms.parse import TermParser
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.number import MOST_EVERY, READS, Number
from gbxcule_puffer.tasks.ram.symbols import AnySymbols
from gbxcule_puffer.tasks.ram.view import ORDERS, Where

MOST_BYTES = 8_192  # that terms read in every step
MOST_BIT = 2**16 - 1
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class Names:
    """Numbers by name, and the columns of those that terms have asked for.

    symbols: those of the ROM; AnySymbols where the ROM that will be played is not known yet: then an address may be any
    name, and stays a name until the env looks it up. terms: nodes of [terms] by name.
    """

    def __init__(self, table: Table | None, symbols: Symbols | None) -> None:
        """Raises: ConfigError for a wrong entry of [numbers]."""
        self.symbols = symbols
        self.terms: dict[str, int] = {}
        self.numbers = {} if table is None else {name: self._read(table, name) for name in table.names()}
        self.columns: dict[Number, int] = {}

    def _read(self, table: Table, name: str) -> Number:
        check_name(table, name, "number")
        value = table.take(name)
        if not isinstance(value, dict):
            return Number(self._locate(table, name, value))
        row = Table(table.source, f"{table.name}.{name}", value)
        where = self._locate(row, "address", row.take("address", meaning='a symbol or an address such as "C0A5"'))
        read = row.take_choice("read", READS, "number")
        number = Number(
            where,
            row.take_whole("size", 1, READS[read], 1),
            read,
            row.take_choice("order", ORDERS, "little"),
            row.take_whole("mask", 0, 255, 0xFF),
            row.take_whole("zero", 0, 255 if read == "digits" else 0, 0),
            row.take_whole("every", 1, MOST_EVERY, 1),
            row.take_whole("of", 0, 255 if read == "count" else 0, 0),
        )
        row.done()
        return number

    def _locate(self, table: Table, field: str, value: object) -> Where:
        if type(value) is int and 0 <= value <= 0xFFFF:
            value = f"{value:04X}"
        try:
            if not isinstance(value, str):
                raise ConfigError(f'{value!r:.40} is not an address: give a symbol or an address such as "C0A5"')
            return self._where(value.strip(), "")
        except ConfigError as error:
            raise table.error(field, str(error).removeprefix(": ")) from None

    def _where(self, text: str, source: str) -> Where:
        """The location of an address or a symbol; the symbol itself where the ROM's are not known yet."""
        found = parse_address(text, source, self.symbols)
        return text if isinstance(self.symbols, AnySymbols) and self.symbols.is_name(text) else found

    def number(self, table: Table, field: str, value: object) -> Number:
        """The number that an address in a field means: the one of this name, or a byte.

        Raises: ConfigError.
        """
        if isinstance(value, str) and value in self.numbers:
            return self.numbers[value]
        return Number(self._locate(table, field, value))

    def apart(self) -> Names:
        """The same names for terms that are not read in every step: no columns, and no [terms]."""
        found = Names(None, self.symbols)
        found.numbers = self.numbers
        return found

    def find(self, name: str) -> Number | None:
        """The number of a name; None for an unknown one. Raises: ConfigError for a symbol that is not in RAM."""
        if name in self.numbers:
            return self.numbers[name]
        if self.symbols is None or not self.symbols.knows(name):
            return None
        if isinstance(self.symbols, AnySymbols) and not _PLAIN.fullmatch(name):
            return None  # x.delta is not a local label there
        return Number(self._where(name, f"symbol {name}"))

    def bit(self, name: str, index: int) -> Number | None:
        """The byte of a name's bytes that has bit `index`, and only this bit; None for an unknown name.

        Raises: ConfigError for a bit beyond the number's bytes.
        """
        number = self.find(name)
        if number is None:
            return None
        size = number.size if name in self.numbers and number.size > 1 else (MOST_BIT + 1) // 8
        if not 0 <= index < 8 * size:
            raise ConfigError(f"bit {index} of {name} is not there: give 0 to {8 * size - 1}")
        return Number(later(number.where, index // 8 * number.every), mask=1 << index % 8)

    def known(self) -> list[str]:
        """All names, those of [numbers] first; of symbols only those in RAM."""
        symbols: Mapping[str, object] = {} if self.symbols is None else self.symbols
        found = [name for name in symbols if getattr(symbols[name], "address", 0) >= hw.VRAM]
        return [*self.numbers, *self.terms, *found]

    def parser(self, tape: Tape) -> TermParser:
        """A parser whose names are columns."""

        def column(number: Number | None) -> int | None:
            if number is None:
                return None
            if sum(each.size for each in {*self.columns, number}) > MOST_BYTES:
                raise ConfigError(f"the terms read more than {MOST_BYTES:,} bytes: leave some out")
            return tape.add("number", (), WHOLE, self.columns.setdefault(number, len(self.columns)))

        def named(name: str) -> int | None:
            return self.terms[name] if name in self.terms else column(self.find(name))

        def bits(name: str) -> int | None:
            number = None if name in self.terms else self.find(name)
            return None if number is None else column(replace(number, read="bits", zero=0, of=0))

        def bit(name: str, index: int) -> int | None:
            found = None if name in self.terms else column(self.bit(name, index))
            return None if found is None else tape.add("unequal", (found, tape.constant(0)), BOOL)

        return TermParser(tape, named, bits, bit, self.known, self.instruction)

    def instruction(self, text: str) -> Where:
        """The address of an instruction in ROM, or (bank, address), of a symbol or of a text such as 0150 or 1:4A20;
        the symbol itself where the ROM's are not known yet.

        Raises: ConfigError.
        """
        if isinstance(self.symbols, AnySymbols) and self.symbols.is_name(text):
            self.symbols.find(text)
            return text
        if self.symbols is not None and self.symbols.knows(text.partition("+")[0].strip()):
            found = self.symbols.find(text)
            bank, address = found.bank, found.address
        else:
            first, colon, second = text.partition(":")
            try:
                bank, address = (int(first, 16), int(second, 16)) if colon else (None, int(text, 16))
            except ValueError:
                if self.symbols is not None:
                    self.symbols.find(text)
                raise ConfigError(f"executions({text!r:.60}): give an address such as 1:4A20, or a symbol") from None
        banked = hw.ROM_BANK_SIZE <= address < hw.VRAM
        if not 0 <= address < hw.VRAM or (banked and bank is None) or (bank is not None and not 0 <= bank < 512):
            raise ConfigError(f"executions({text!r:.60}) is not of code in ROM: give e.g. 0150, or BANK:4A20")
        return (bank, address) if banked and bank is not None else address


def later(where: Where, distance: int) -> Where:
    """The byte at a distance after another one."""
    if not distance:
        return where
    if isinstance(where, tuple):
        bank, address = where
        return bank, later(address, distance)  # pyright: ignore[reportReturnType]
    if isinstance(where, int):
        return where + distance
    name, _, offset = where.partition("+")
    return f"{name.strip()}+{int(offset, 0) + distance if offset.strip() else distance}"
