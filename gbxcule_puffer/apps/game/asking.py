"""The questions of `puffer game new`, and the answers to them."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from gbxcule_puffer.errors import ConfigError

Answer = TypeVar("Answer")
ENDED = "the answers have ended: give one line for each question, or --yes"


class Ask(Protocol):
    """Asks for what `read` makes of an answer. An empty answer is the default; read raises ConfigError for a wrong
    one."""

    def __call__(self, text: str, default: str, read: Callable[[str], Answer]) -> Answer: ...


class Ended(ConfigError):
    """No answer is left."""


def question(text: str, default: str, read: Callable[[str], Answer]) -> Answer:
    """A person's answer; `again` where it is wrong.

    Raises: ConfigError.
    """
    return again(lambda: read(_line(f"{text} ({default}): ") or default))


def again(work: Callable[[], Answer]) -> Answer:
    """The result of `work`, which asks questions. On a terminal it asks again after a wrong answer, because the scan
    before it took minutes.

    Raises: ConfigError for a wrong answer that no terminal gave, or if the answers end.
    """
    while True:
        try:
            return work()
        except Ended:
            raise
        except ConfigError as error:
            if not sys.stdin.isatty():
                raise
            print(error, flush=True)


def _line(prompt: str) -> str:
    """A line of stdin. Raises: Ended."""
    print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
        raise Ended(ENDED)
    return line.strip()


def propose(text: str, default: str, read: Callable[[str], Answer]) -> Answer:
    """The default, shown after the question's first line."""
    print(f"{text.splitlines()[0].removesuffix(':')}: {default}", flush=True)
    return read(default)


def check_answers() -> None:
    """Raises: Ended where stdin is at its end, so that no question will be answered."""
    if _is_at_end():
        raise Ended(ENDED)


def _is_at_end() -> bool:
    """True where stdin is closed, or could be read and has nothing left."""
    if sys.stdin is None or sys.stdin.isatty():
        return sys.stdin is None
    try:
        ready = bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # no file that can be looked at before it is read
        return False
    return ready and isinstance(sys.stdin.buffer, io.BufferedReader) and not sys.stdin.buffer.peek(1)


def whole(what: str, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to `most`."""

    def read(answer: str) -> int:
        if not answer.isdecimal() or not 1 <= int(answer) <= most:
            raise ConfigError(f"{what} {answer!r:.40} must be a whole number from 1 to {most:,}")
        return int(answer)

    return read
