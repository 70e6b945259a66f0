"""The position of a game's player: RAM of map number, row and column, one byte each."""

from __future__ import annotations

import json
import warnings
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Symbols

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.task import Task

Position = tuple[int | str | tuple[int, int], ...]


def find_position(given: str | None, task: Task | None, rom_sha256: str, symbols: Symbols | None) -> Position | None:
    """Two or three bytes as `Ram` takes them, (map,) row, column: the `given` ones, else the task's, else those of our
    own ROM.

    Raises: ConfigError for a text that is not a list of RAM addresses.
    """
    if given is not None:
        return parse_position(given, symbols)
    if task is not None and task.position is not None:
        return _position_of(task, symbols)
    own = _own_positions().get(rom_sha256)
    return None if own is None else parse_position(own)


def parse_position(text: str, symbols: Symbols | None = None, source: str = "") -> Position:
    """The bytes of a text such as 'D35E,D361,D362', in hexadecimal or by their symbols.

    Raises: ConfigError, which begins with `source`.
    """
    words = text.split(",")
    where = f"{source}position {text!r:.80}"
    if len(words) not in (2, 3):
        raise ConfigError(f"{where} has {len(words)} parts: give MAP,ROW,COLUMN or ROW,COLUMN")
    return tuple(parse_address(_byte(word.strip(), where, symbols), where, symbols) for word in words)


def _position_of(task: Task, symbols: Symbols | None) -> Position:
    """A Task's `position`, as text or in a form that `Ram` takes. Without symbols, its names are not looked up: then
    the position is only for viewers.

    Raises: ConfigError.
    """
    position, source = task.position, f"task {type(task).__name__}: "
    if isinstance(position, str):
        return parse_position(position, symbols, source)
    if not isinstance(position, tuple | list) or len(position) not in (2, 3):
        raise ConfigError(f"{source}position {position!r:.80} is not (map, row, column) or (row, column) of RAM")
    source += "position"
    named = [_byte(each, source, symbols) if isinstance(each, str) else each for each in position]
    for each in named:
        if isinstance(each, str) and symbols is not None:
            parse_address(each, source, symbols)
        elif not isinstance(each, str | Integral) and not _has_bank(each):
            raise ConfigError(
                f"{source}: {each!r:.60} is not a byte of RAM: give an address, a symbol or (bank, address)"
            )
    return tuple(named)


def _has_bank(part: object) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and all(isinstance(number, Integral) for number in part)


def _byte(text: str, source: str, symbols: Symbols | None) -> str:
    """The name or address of a byte, also with its length, `player_x:1`. Symbols have no lengths: if the next symbol is
    two bytes later, a warning asks for the length.

    Raises: ConfigError for another length.
    """
    name, colon, length = text.rpartition(":")
    if colon and length.isdecimal() and len(length) < 4:  # an address has four digits
        if int(length) != 1:
            raise ConfigError(
                f"{source}: {text!r:.60} has {int(length)} bytes, but map, row and column have one each: "
                "give the byte that distinguishes cells, such as NAME+1"
            )
        return name
    if symbols is not None and text in symbols:
        own = symbols[text]
        later = [each.address for each in symbols.values() if each.bank == own.bank and each.address > own.address]
        if min(later, default=0) == own.address + 2:
            warnings.warn(
                f"{source}: {text} may have two bytes, and only the first counts: "
                f"give {text}:1 if that is right, else the byte that distinguishes cells, such as {text}+1",
                stacklevel=2,
            )
    return text


@cache
def _own_positions() -> dict[str, str]:
    """Positions of our own ROMs by the SHA-256 of their images."""
    manifest = ROMS / "manifest.json"
    rows = json.loads(manifest.read_text()) if manifest.is_file() else []
    return {row["sha256"]: row["position"] for row in rows if "position" in row}
