"""Tables of a game.toml with checked fields: each fault is one line that names file, table, field and what is
allowed."""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import PurePosixPath
from types import EllipsisType
from typing import Any, TypeVar, overload

from gbxcule_puffer.errors import ConfigError, GBxCuLEError

Found = TypeVar("Found")
Default = TypeVar("Default")
LONGEST_TEXT = 2_000  # characters
LONGEST_NAME = 100
MOST_ENTRIES = 1_024  # of a table or list whose names the author chooses
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Table:
    """A table of the file `source`; `name` is '' for the file itself, 'rom', or 'variants.easy'.

    Each `take_...` removes a field and returns its value, or the default where the field is absent; a field without a
    default is required. `done` refuses what is left.

    Raises: ConfigError, from every call.
    """

    def __init__(self, source: str, name: str, content: object) -> None:
        self.source, self.name = source, name
        if not isinstance(content, dict):
            raise ConfigError(f"{self._start()}is {_kind(content)}: write it as a table, [{name}]")
        self._content: dict[str, Any] = dict(content)
        self._known: list[str] = []

    def error(self, field: str, fault: str) -> ConfigError:
        """The error of a field, or of the table itself if `field` is ''."""
        return ConfigError(f"{self._start()}{f'{field}: ' if field else ''}{fault}")

    def checked(self, field: str, make: Callable[..., Found], *arguments: Any, **options: Any) -> Found:
        """The result of `make` with these arguments; its errors then name the field."""
        try:
            return make(*arguments, **options)
        except GBxCuLEError as error:
            text = str(error)
            raise type(error)(text if text.startswith(self.source) else str(self.error(field, text))) from None

    def _start(self) -> str:
        return f"{self.source}: [{self.name}] " if self.name else f"{self.source}: "

    def __contains__(self, field: str) -> bool:
        return field in self._content

    def is_table(self, field: str) -> bool:
        """True for a field that is a table itself."""
        return isinstance(self._content.get(field), dict)

    def names(self) -> list[str]:
        """The fields that are left; in tables whose names the author chooses, all of them.

        Raises: ConfigError for more than MOST_ENTRIES.
        """
        if len(self._content) > MOST_ENTRIES:
            raise self.error("", f"has {len(self._content):,} entries: give at most {MOST_ENTRIES:,}")
        return list(self._content)

    def take(self, field: str, default: object = ..., meaning: str = "") -> Any:
        """The field as TOML has it."""
        self._known.append(field)
        if field in self._content:
            return self._content.pop(field)
        if default is ...:
            raise self.error(field, f"is missing: give {meaning or 'it'}")
        return default

    def take_text(
        self,
        field: str,
        default: Default | EllipsisType = ...,
        meaning: str = "a text",
        longest: int = LONGEST_TEXT,
    ) -> str | Default:
        value = self.take(field, default, meaning)
        if value is default:
            return value
        if not isinstance(value, str) or not value.strip():
            raise self.error(field, f"is {_kind(value)}: give {meaning}")
        if len(value) > longest:
            raise self.error(field, f"has {len(value):,} characters: give at most {longest:,}")
        return value

    def take_choice(self, field: str, choices: Collection[str], default: Default | EllipsisType = ...) -> str | Default:
        listed = f"one of {', '.join(choices)}"
        value = self.take(field, default, listed)
        if value is not default and not (isinstance(value, str) and value in choices):
            raise self.error(field, f"{_kind(value)} is unknown: give {listed}")
        return value

    def take_whole(self, field: str, least: int, most: int, default: Default | EllipsisType = ...) -> int | Default:
        allowed = f"a whole number from {least:,} to {most:,}"
        value = self.take(field, default, allowed)
        if value is not default and not (type(value) is int and least <= value <= most):
            raise self.error(field, f"is {_kind(value)}: give {allowed}")
        return value

    def take_number(self, field: str, most: float, default: Default | EllipsisType = ...) -> float | Default:
        allowed = f"a number from {-most:,.0f} to {most:,.0f}"
        value = self.take(field, default, allowed)
        if value is not default and not (type(value) in (int, float) and abs(value) <= most):
            raise self.error(field, f"is {_kind(value)}: give {allowed}")
        return value

    def take_texts(
        self, field: str, default: Default | EllipsisType = ..., meaning: str = "a text or a list of texts"
    ) -> tuple[str, ...] | Default:
        """A tuple of texts, of a text or a list of them."""
        value = self.take(field, default, meaning)
        if value is default:
            return value
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
            raise self.error(field, f"is {_kind(value)}: give {meaning}")
        if len(listed) > MOST_ENTRIES or any(len(each) > LONGEST_TEXT for each in listed):
            raise self.error(field, f"is too long: give at most {MOST_ENTRIES:,} texts of {LONGEST_TEXT:,} characters")
        return tuple(listed)

    @overload
    def take_table(self, field: str) -> Table: ...

    @overload
    def take_table(self, field: str, default: None) -> Table | None: ...

    def take_table(self, field: str, default: EllipsisType | None = ...) -> Table | None:
        """A table inside of this one, as a Table; None where the default is None and the field absent."""
        value = self.take(field, default, f"the table [{self._inner(field)}]")
        return None if value is None else Table(self.source, self._inner(field), value)

    def take_path(
        self, field: str, default: Default | EllipsisType = ..., meaning: str = "a file in the game's folder"
    ) -> str | Default:
        """The relative path of a file in the game's folder."""
        value = self.take_text(field, default, meaning)
        if isinstance(value, str) and value is not default:
            check_inside(self, field, value)
        return value

    def _inner(self, field: str) -> str:
        return f"{self.name}.{field}" if self.name else field

    def done(self) -> None:
        """Raises: ConfigError for a field that nobody has taken."""
        for field in self._content:
            kind = "table" if not self.name and isinstance(self._content[field], Mapping) else "field"
            near = nearest(field, self._known)
            remedy = f"did you mean {near[:-2]}?" if near else f"give some of {', '.join(self._known)}"
            raise self.error(field, f"is not a known {kind}: {remedy}")


def check_name(table: Table, name: str, kind: str) -> None:
    """Raises: ConfigError for a name that no term can have."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise table.error(
            name[:LONGEST_NAME], f"is not a name of a {kind}: give letters, digits and _, not a digit first"
        )
    if keyword.iskeyword(name):
        raise table.error(name, f"is a word of terms: call the {kind} something else")


def check_inside(table: Table, field: str, path: str) -> None:
    """Raises: ConfigError for a path that leads out of the game's folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path or "\0" in path:
        raise table.error(field, f"{path!r:.80} leads out of the game's folder: give a file in it")


def nearest(name: object, known: Collection[str]) -> str:
    """The known name that is nearest and a comma, or nothing."""
    close = difflib.get_close_matches(str(name)[:100], list(known)[:2_000], 1)
    return f"{close[0]}, " if close else ""


def _kind(value: object) -> str:
    """A value of TOML for an error: itself if it is short."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an empty list" if not value else f"a list ({value!r:.60})"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value!r:.60}" if isinstance(value, str | int | float) else f"a {type(value).__name__}"
