"""Variants of a game: bytes of RAM that are written, and patches of its ROM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.roms import Patch
from gbxcule_puffer.games.table import Table
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.view import Where

ORIGINAL = "original"  # the game as it is
MOST_OFFSET = 2**23 - 1
START, ALWAYS = "start", "always"


@dataclass(frozen=True)
class Poke:
    """Bytes that are written from `where` on: when an episode starts, and if `always` also after each step."""

    where: Where
    data: tuple[int, ...]
    always: bool = False


@dataclass(frozen=True)
class Variant:
    """A game with pokes and patches; none of either in the original."""

    name: str = ORIGINAL
    pokes: tuple[Poke, ...] = ()
    patches: tuple[Patch, ...] = ()

    def with_(self, other: Variant) -> Variant:
        """Both at once: what `other` writes comes later."""
        name = f"{self.name}+{other.name}"
        return Variant(name, self.pokes + other.pokes, self.patches + other.patches)


def read_variant(
    name: str, table: Table, number: Callable[[str, object], Number], file: Callable[..., Path]
) -> Variant:
    """The variant of a table. number: returns what an address means, of a number its bytes; file: the path of a file.

    Raises: ConfigError.
    """
    pokes, patches = [], []
    for field, row in _rows(table, "poke"):
        where = number(f"{field} address", row.take("address", meaning="the name of a number, or an address"))
        value, when = row.take("value"), row.take_choice("when", (START, ALWAYS), START)
        row.done()
        try:
            data = _bytes(value) if isinstance(value, list) else where.encode(value)
        except ConfigError as error:
            raise row.error("value", str(error)) from None
        pokes.append(Poke(where.where, tuple(data), when == ALWAYS))
    for field, row in _rows(table, "patch"):
        source = f"{table.source}: [{table.name}] {field}"
        if "ips" in row:
            patches.append(Patch(source, ips=file(row, "ips")))
        else:
            offset = row.take_whole("offset", 0, MOST_OFFSET)
            patches.append(Patch(source, offset, _hexadecimal(row, row.take_text("bytes", meaning='e.g. "00 FF"'))))
        row.done()
    table.done()
    if not pokes and not patches:
        raise table.error("", "changes nothing: give poke or patch")
    return Variant(name, tuple(pokes), tuple(patches))


def _rows(table: Table, field: str) -> list[tuple[str, Table]]:
    """The tables in a list."""
    rows = table.take(field, [])
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or len(rows) > 256:
        raise table.error(
            field,
            "is not a list of at most 256 tables: give e.g. "
            + ('[{address = "lives", value = 9}]' if field == "poke" else '[{offset = 0x1234, bytes = "00"}]'),
        )
    return [(f"{field}[{i}]", Table(table.source, f"{table.name}.{field}[{i}]", row)) for i, row in enumerate(rows)]


def _bytes(values: list[object]) -> list[int]:
    found = [value for value in values if type(value) is int and 0 <= value <= 255]
    if not found or len(found) < len(values) or len(found) > 256:
        raise ConfigError("has something other than bytes: give 1 to 256 numbers from 0 to 255")
    return found


def _hexadecimal(row: Table, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise row.error("bytes", f'{text!r:.40} is not hexadecimal: give e.g. "00 FF"') from None
