"""The place of a game's player: RAM of the map's number, the row and the column. It is for people who watch."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.ram.addresses import parse_address
from gbxcule_puffer.tasks.ram.symbols import Symbols

Place = tuple[int | str | tuple[int, int], ...]


def find_place(given: str | None, task: Any, rom_sha256: str, symbols: Symbols | None) -> Place | None:
    """Two or three bytes as `Ram` takes them, (map,) row, column: those `given`, else the task's, else of our own ROM.

    Raises: ConfigError for a text that is no list of RAM.
    """
    if given is not None:
        return parse_place(given, symbols)
    if task is not None and task.place is not None:
        return _place_of(task, symbols)
    own = _own_places().get(rom_sha256)
    return None if own is None else parse_place(own)


def parse_place(text: str, symbols: Symbols | None = None, source: str = "") -> Place:
    """The bytes of a text such as 'D35E,D361,D362', in hexadecimal or by their symbols.

    Raises: ConfigError, which begins with `source`.
    """
    words = text.split(",")
    where = f"{source}place {text!r:.80}"
    if len(words) not in (2, 3):
        raise ConfigError(f"{where} has {len(words)} parts: give MAP,ROW,COLUMN or ROW,COLUMN")
    return tuple(parse_address(word.strip(), where, symbols) for word in words)


def _place_of(task: Any, symbols: Symbols | None) -> Place:
    """A Task's `place`, as text or as what `Ram` takes. Where there are no symbols its names are not looked up: the
    place is only for those who watch.

    Raises: ConfigError.
    """
    place, source = task.place, f"task {type(task).__name__}: "
    if isinstance(place, str):
        return parse_place(place, symbols, source)
    if not isinstance(place, tuple | list) or len(place) not in (2, 3):
        raise ConfigError(f"{source}place {place!r:.80} is no (map, row, column) or (row, column) of RAM")
    for each in place:
        if isinstance(each, str) and symbols is not None:
            parse_address(each, f"{source}place", symbols)
    return tuple(place)


@cache
def _own_places() -> dict[str, str]:
    """Places of our own ROMs by the SHA-256 of their images."""
    manifest = ROMS / "manifest.json"
    rows = json.loads(manifest.read_text()) if manifest.is_file() else []
    return {row["sha256"]: row["place"] for row in rows if "place" in row}
