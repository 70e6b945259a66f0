"""A game's memory as a task sees it: bytes and numbers by address or symbol, for all envs at once. Opt-in."""

from gbxcule_puffer.tasks.ram.bits import bit_count, bits_set
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.ram.view import Ram, RamWatch

__all__ = ["Ram", "RamWatch", "Symbols", "bit_count", "bits_set"]
