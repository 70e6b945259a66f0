"""A game's folder, written from what was found out about a ROM."""

from __future__ import annotations

import json
import os
import re
import shutil
import string
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import StrPath, check_output_folder, make_folder, write_text
from gbxcule_puffer.games.folder import load_game
from gbxcule_puffer.games.parts import FILE, FORMAT, VERSION
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.symbol_writing import save_symbols
from gbxcule_puffer.tasks.ram.view import Where

LEAST_TITLE = 3  # letters of a header that are taken for a title


@dataclass
class Draft:
    """The content of a game.toml. sha256, model, header: of the ROM; numbers: by name, with a note each; reward, end
    and statistics: terms by name, of `end` a list; levels: fields of its table; env: options; comments: lines above
    all."""

    sha256: str
    name: str
    title: str
    model: str = "dmg"
    header: str = "strict"
    goal: str = ""
    kind: str = "other"
    state: Snapshot | None = None
    start_actions: Sequence[str] = ()
    env: Mapping[str, object] = field(default_factory=dict)
    numbers: dict[str, Number] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    reward: dict[str, str] = field(default_factory=dict)
    end: dict[str, list[str]] = field(default_factory=dict)
    statistics: dict[str, str] = field(default_factory=dict)
    levels: Mapping[str, object] = field(default_factory=dict)
    comments: Sequence[str] = ()

    def toml(self) -> str:
        """The text of game.toml."""
        lines = [*(f"# {_printable(line)}" for line in self.comments), *_pairs({"format": FORMAT, "version": VERSION})]
        lines += _pairs({"name": self.name, "title": self.title, "goal": self.goal, "kind": self.kind})
        usual = {"model": "dmg", "header": "strict"}
        rom = {name: value for name in usual if (value := getattr(self, name)) != usual[name]}
        lines += ["", "[rom]", *_pairs({"sha256": self.sha256} | rom)]
        start = {"states": ["start.state"]} if self.state is not None else {}
        start = start or ({"actions": list(self.start_actions)} if self.start_actions else {})
        lines += ["", "[start]", *_pairs(start)] if start else []
        lines += ["", "[env]", *_pairs(self.env)] if self.env else []
        if self.numbers:
            lines += ["", "[numbers]"]
            for name, number in self.numbers.items():
                note = f"  # {_printable(self.notes[name])}" if name in self.notes else ""
                lines.append(f"{_key(name)} = {_number(number)}{note}")
        for table in ("reward", "end", "statistics", "levels"):
            terms = getattr(self, table)
            lines += ["", f"[{table}]", *_pairs(terms)] if terms else []
        return "\n".join(lines) + "\n"


def game_name(path: StrPath) -> str:
    """A name for a game from the name of a file or folder: small letters, digits, _ and -."""
    return re.sub(r"[^a-z0-9_-]+", "-", Path(path).stem.lower()).strip("-")[:64] or "game"


def game_title(header: str, path: StrPath) -> str:
    """A title for a game, from its ROM's header and file: the words of the file's name where they are the header's
    letters, which has no room for spaces, or where the header has fewer than LEAST_TITLE letters."""
    words = re.sub(r"[\W_]+", " ", Path(path).stem).strip()
    letters = [re.sub(r"[\W\d_]+", "", each).lower() for each in (header, words)]
    fits = len(letters[0]) < LEAST_TITLE or letters[0] == letters[1]
    return string.capwords(words if fits and words else header) or "Game"


def check_new_folder(path: StrPath) -> Path:
    """The path of a folder that is to be made.

    Raises: ConfigError where something is there already, or no folder can be made there.
    """
    if os.path.lexists(path):
        raise ConfigError(f"{path} is there already: give another folder with --out, or move it away")
    return check_output_folder(path)


def write_game(draft: Draft, out: StrPath, symbols: bool = True) -> Path:
    """Writes the folder whole or not at all: game.toml, start.state, and a symbol file with the numbers' names.

    Raises: ConfigError where something is there already, or the draft is not a game that can be loaded; StorageError.
    """
    path = check_new_folder(out)
    make_folder(path.absolute().parent)
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:40]}.", dir=path.absolute().parent) as scratch:
        folder = make_folder(Path(scratch) / "game")
        if draft.state is not None:
            draft.state.to_file(folder / "start.state")
        if symbols and draft.numbers:
            save_symbols(folder / f"{draft.name}.sym", draft.numbers, draft.notes)
            draft.env = {**draft.env, "symbols": f"{draft.name}.sym"}
        write_text(folder / FILE, draft.toml())
        try:
            load_game(folder)
        except GBxCuLEError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None
        shutil.move(folder, path)
    return path


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(_printable(str(value)), ensure_ascii=False)


def _pairs(content: Mapping[str, object]) -> list[str]:
    return [f"{_key(name)} = {_value(value)}" for name, value in content.items() if value != ""]


def address_text(where: Where) -> str:
    """An address as game.toml has it: C0A5, 1:A000, or a symbol."""
    if isinstance(where, tuple):
        return f"{where[0]:X}:{where[1]:04X}" if isinstance(where[1], int) else f"{where[0]:X}:{where[1]}"
    return where if isinstance(where, str) else f"{where:04X}"


def _number(number: Number) -> str:
    fields: dict[str, object] = {"address": address_text(number.where)}
    plain_values = {"size": 1, "read": "number", "order": "little", "mask": 0xFF, "zero": 0, "every": 1, "of": 0}
    for name, plain in plain_values.items():
        if (value := getattr(number, name)) != plain and not (name == "order" and number.size == 1):
            fields[name] = value
    if len(fields) == 1:
        return _value(fields["address"])
    return f"{{{', '.join(_pairs(fields))}}}"
