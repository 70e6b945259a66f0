"""Conditions that narrow a search, as people type them: = 120, < 5, changed, rose by 10, fell since start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gbxcule_puffer.errors import ConfigError

MOST = 2**32 - 1  # the largest number that a search finds, in four bytes
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
MOVES = ("changed", "unchanged", "rose", "fell")
LOOK = "look"
FORMS = "= 120, != 120, < 5, <= 5, > 5, >= 5, changed, unchanged, rose, fell, rose by 10, fell since start, look"
FLAGS = re.IGNORECASE | re.ASCII
_NUMBER = r"(-?(?:\d+|(?:0x|\$)[0-9a-f]+))"
_COMPARED = re.compile(rf"(==?|!=|<=|>=|<|>)?\s*{_NUMBER}", FLAGS)
_MOVED = re.compile(rf"(changed|unchanged|rose|fell|look)(?:\s+by\s+{_NUMBER})?(\s+since\s+start)?", FLAGS)


@dataclass(frozen=True)
class Narrowing:
    """A condition on a number as it is now.

    test: one of COMPARISONS with `value`, or one of MOVES against the last look, or, with `since_start`, the first one;
    there a `value` is the distance. LOOK is true for every number. value: for several Game Boys also one each.
    """

    test: str
    value: int | Sequence[int] | None = None
    since_start: bool = False


def is_narrowing(text: str) -> bool:
    """True for a text that begins as a condition does, whether it is right or not."""
    return re.match(r"[=!<>\d]|-\d|(changed|unchanged|rose|fell|look)\b", text.strip(), re.IGNORECASE) is not None


def parse_narrowing(text: str) -> Narrowing:
    """The condition of a text.

    Raises: ConfigError for another text, and for a number that no search finds.
    """
    words = text.strip()
    if match := _COMPARED.fullmatch(words):
        test = (match[1] or "=").replace("==", "=")
        return Narrowing(test, _found(match[2], text))
    match = _MOVED.fullmatch(words)
    if match is None:
        raise ConfigError(f"condition {text!r:.60} is not understood: give one such as {FORMS}")
    test, by, since = match[1].lower(), match[2], match[3] is not None
    if (by is not None and test in ("unchanged", LOOK)) or (since and test == LOOK):
        raise ConfigError(f"condition {text!r:.60}: {test} stands alone: give {test}, or rose by 10")
    distance = None if by is None else _found(by, text)
    if distance is not None and distance < 1:
        raise ConfigError(f"condition {text!r:.60}: a distance is at least 1: give e.g. {test} by 1")
    return Narrowing(test, distance, since)


def parse_number(text: str) -> int | None:
    """A number in decimal, or in hexadecimal with 0x or $ before it; None for another text, or a longer one."""
    if len(text) > 19 or re.fullmatch(_NUMBER, text, FLAGS) is None:
        return None
    digits = text.lstrip("-").lower()
    hexadecimal = digits.startswith(("0x", "$"))
    value = int(digits.removeprefix("0x").lstrip("$"), 16) if hexadecimal else int(digits)
    return -value if text.startswith("-") else value


def _found(digits: str, text: str) -> int:
    """Raises: ConfigError for a number that does not fit into four bytes."""
    value = parse_number(digits)
    if value is None or not -(2**31) <= value <= MOST:
        raise ConfigError(f"condition {text!r:.60}: a search finds numbers of up to four bytes: give {MOST:,} at most")
    return value
