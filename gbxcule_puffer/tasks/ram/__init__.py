"""A game's memory for a task: bytes and numbers by address or symbol, for all envs at once. Opt-in."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.ram.bits import bit_count, bits_set
    from gbxcule_puffer.tasks.ram.number import Number, Numbers
    from gbxcule_puffer.tasks.ram.symbols import Symbols
    from gbxcule_puffer.tasks.ram.view import Ram, RamWatch

__all__ = ["Number", "Numbers", "Ram", "RamWatch", "Symbols", "bit_count", "bits_set"]
FILES = {"Ram": "view", "RamWatch": "view", "Symbols": "symbols", "bit_count": "bits", "bits_set": "bits"} | {
    name: "number" for name in ("Number", "Numbers")
}


def __getattr__(name: str) -> object:
    """A name of FILES, imported when it is asked for: addresses and symbols need no torch."""
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{FILES[name]}"), name)
