"""The end of an object: each of its public methods says from then on that it is closed."""

from __future__ import annotations

from typing import NoReturn

from gbxcule_puffer.errors import ConfigError

CLOSED = "_is_closed"


def close_for_good(thing: object, keep: tuple[str, ...] = ("close",)) -> None:
    """Replaces the public methods of `thing`, but for those to `keep`, by one that raises ConfigError. What is open
    pays nothing for it."""
    line = closed_line(thing)

    def closed(*_: object, **__: object) -> NoReturn:
        raise ConfigError(line)

    kind = type(thing)
    for name in dir(kind):
        if not name.startswith("_") and name not in keep and callable(getattr(kind, name, None)):
            thing.__dict__[name] = closed
    thing.__dict__[CLOSED] = True


def closed_line(thing: object) -> str:
    """The error's line for what is closed."""
    return f"this {type(thing).__name__} is closed: make another one"


def is_closed(thing: object) -> bool:
    """True after close_for_good."""
    return CLOSED in thing.__dict__


def check_open(thing: object) -> None:
    """Raises: ConfigError after close_for_good."""
    if is_closed(thing):
        raise ConfigError(closed_line(thing))


class ClosedPart:
    """Stands for a part of what is closed: every use of it raises ConfigError."""

    def __init__(self, owner: object) -> None:
        self.__dict__["_line"] = closed_line(owner)

    def _raise(self, *_: object) -> NoReturn:
        raise ConfigError(self.__dict__["_line"])

    __getattr__ = __setattr__ = __getitem__ = __setitem__ = __len__ = __iter__ = __call__ = _raise
