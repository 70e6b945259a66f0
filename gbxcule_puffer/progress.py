"""Lines about what takes long; nobody reads them unless a command or a trainer listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

EVERY = 10.0  # seconds between two lines about a loop

_listeners: list[Callable[[str], None]] = []


def listen(say: Callable[[str], None] | None) -> None:
    """Has `say` be called with each line from now on, in place of who listened before; None: nobody listens."""
    _listeners[:] = [] if say is None else [say]


def say(line: str) -> None:
    """Tells who listens."""
    for listener in _listeners:
        listener(line)


def counted(total: int, what: str) -> Iterator[int]:
    """The numbers 0 to total - 1, of steps of a loop that may take long: says every ten seconds how many are done."""
    begin = said = time.perf_counter()
    for index in range(total):
        now = time.perf_counter()
        if index and now - said >= EVERY:
            left, said = (now - begin) / index * (total - index), now
            say(f"{index:,} of {total:,} {what}, at most {left:.0f} s left")
        yield index


class Work:
    """Pieces of work by name, of which each is said when all begin and when it is done; several threads may do them.

    verb: what is done, "compiling" and "compiled"; why: what a reader should know about it.
    """

    def __init__(self, verb: tuple[str, str], why: str) -> None:
        self._verb, self._why, self._lock = verb, why, threading.Lock()
        self._open: list[str] = []
        self._done = 0

    @contextmanager
    def announced(self, names: Sequence[str]) -> Iterator[None]:
        """Say what will be done, around it; what another process has done meanwhile is not said again."""
        with self._lock:
            self._open += names
            say(f"{self._verb[0]} {', '.join(names)} ({self._why})")
        try:
            yield
        finally:
            with self._lock:
                self._open = [name for name in self._open if name not in names]
                self._done *= bool(self._open)

    @contextmanager
    def doing(self, name: str) -> Iterator[None]:
        """Around one piece, which is announced where it is not yet."""
        begin = time.perf_counter()
        with nullcontext() if name in self._open else self.announced([name]):
            yield
            with self._lock:
                self._open.remove(name)
                self._done += 1
                seconds, total = time.perf_counter() - begin, self._done + len(self._open)
                say(f"{self._verb[1]} {name} in {seconds:.1f} s, {self._done} of {total}")
                self._done *= bool(self._open)
