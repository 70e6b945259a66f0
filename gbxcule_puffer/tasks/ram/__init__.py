"""A game's memory for a task: bytes and numbers by address or symbol, for all envs at once. Opt-in."""

from typing import TYPE_CHECKING

from gbxcule_puffer.lazily import door

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.ram.bits import bit_count, bits_set
    from gbxcule_puffer.tasks.ram.number import Number, Numbers
    from gbxcule_puffer.tasks.ram.symbols import Symbols
    from gbxcule_puffer.tasks.ram.view import Ram, RamWatch

__all__ = ["Number", "Numbers", "Ram", "RamWatch", "Symbols", "bit_count", "bits_set"]
FILES = {
    "Number": "tasks.ram.number",
    "Numbers": "tasks.ram.number",
    "Ram": "tasks.ram.view",
    "RamWatch": "tasks.ram.view",
    "Symbols": "tasks.ram.symbols",
    "bit_count": "tasks.ram.bits",
    "bits_set": "tasks.ram.bits",
}

# Addresses and symbols need no torch
__getattr__ = door(__name__, FILES)
