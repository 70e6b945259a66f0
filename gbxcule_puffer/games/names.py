"""The names that a game's terms may use: its [numbers], and the symbols of its ROM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.table import Table, check_name
from gbxcule_puffer.games.terms.nodes import WHOLE, Tape
from gbxcule_puffer.games.terms.parse import TermParser
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.number import READS, Number
from gbxcule_puffer.tasks.ram.view import ORDERS

MOST_BYTES = 8_192  # that terms read in every step


class Names:
    """Numbers by name, and the columns of those that terms have asked for."""

    def __init__(self, table: Table | None, symbols: Symbols | None) -> None:
        """Raises: ConfigError for a wrong entry of [numbers]."""
        self.symbols = symbols
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
        )
        row.done()
        return number

    def _locate(self, table: Table, field: str, value: object) -> int | tuple[int, int]:
        if type(value) is int and 0 <= value <= 0xFFFF:
            value = f"{value:04X}"
        try:
            if not isinstance(value, str):
                raise ConfigError(f'{value!r:.40} is not an address: give a symbol or an address such as "C0A5"')
            return parse_address(value.strip(), "", self.symbols)
        except ConfigError as error:
            raise table.error(field, str(error).removeprefix(": ")) from None

    def number(self, table: Table, field: str, value: object) -> Number:
        """The number that an address in a field means: the one of this name, or a byte.

        Raises: ConfigError.
        """
        if isinstance(value, str) and value in self.numbers:
            return self.numbers[value]
        return Number(self._locate(table, field, value))

    def find(self, name: str) -> Number | None:
        """The number of a name; None for an unknown one. Raises: ConfigError for a symbol that is not in RAM."""
        if name in self.numbers:
            return self.numbers[name]
        if self.symbols is None or not self.symbols.knows(name):
            return None
        return Number(parse_address(name, f"symbol {name}", self.symbols))

    def known(self) -> list[str]:
        """All names, those of [numbers] first; of symbols only those in RAM."""
        symbols: Mapping[str, object] = {} if self.symbols is None else self.symbols
        found = [name for name in symbols if getattr(symbols[name], "address", 0) >= hw.VRAM]
        return [*self.numbers, *found]

    def parser(self, tape: Tape) -> TermParser:
        """A parser whose names are columns."""

        def column(number: Number | None) -> int | None:
            if number is None:
                return None
            if sum(each.size for each in {*self.columns, number}) > MOST_BYTES:
                raise ConfigError(f"the terms read more than {MOST_BYTES:,} bytes: leave some out")
            return tape.add("number", (), WHOLE, self.columns.setdefault(number, len(self.columns)))

        def bits(name: str) -> int | None:
            number = self.find(name)
            return None if number is None else column(replace(number, read="bits", zero=0))

        return TermParser(tape, lambda name: column(self.find(name)), bits, self.known, self.instruction)

    def instruction(self, text: str) -> int | tuple[int, int]:
        """The address of an instruction in ROM, or (bank, address), of a symbol or of a text such as 0150 or 1:4A20.

        Raises: ConfigError.
        """
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
