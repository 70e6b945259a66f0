"""Numbers that `puffer scan --where` leaves, for a terminal, for programs and for a symbol file."""

from __future__ import annotations

from typing import Any

from gbxcule_puffer.scan.film import Film, Seen
from gbxcule_puffer.scan.result import text_of
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.readings import word_of
from gbxcule_puffer.tasks.ram.search import Match

SHOWN, NAMED = 20, 4  # numbers


class Leftovers:
    """The numbers that did what was seen, and their values at the start and at each condition's picture."""

    def __init__(self, film: Film, texts: tuple[str, ...], conditions: list[Seen]) -> None:
        self._texts = texts
        search, self._left = film.search(conditions)
        looks = [film.look(0), *(film.look(each.picture) for each in conditions)]
        columns = [search.matches(look) for look in looks]
        self._rows: list[tuple[Match, list[int]]] = [
            (match, [column[i].now for column in columns]) for i, match in enumerate(columns[-1])
        ]

    def numbers(self, name: str) -> dict[str, Number]:
        """The first numbers by names: `name`, then with 2, 3 and 4 after it."""
        return {f"{name}{i + 1 if i else ''}": match.number for i, (match, _) in enumerate(self._rows[:NAMED])}

    def table(self) -> str:
        """A line for each condition, then one for each number that is left."""
        lines = [f"{text}: {left:,} left" for text, left in zip(self._texts, self._left, strict=True)]
        if self._rows:
            lines.append(f"{'address':8} {'reading':9} values at the start, and in each picture")
        for match, values in self._rows[:SHOWN]:
            head = f"{text_of(match.number.where):8} {word_of(match.number):9}"
            lines.append(f"{head} {' '.join(f'{value:,}' for value in values)}")
        if len(self._rows) > SHOWN:
            lines.append(f"and {len(self._rows) - SHOWN:,} more: look at another picture, and say what it shows")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "left": dict(zip(self._texts, self._left, strict=True)),
            "numbers": [
                {"address": text_of(match.number.where), "reading": word_of(match.number), "values": values}
                for match, values in self._rows
            ],
        }
