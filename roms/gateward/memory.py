"""The memory of GATEWARD by its symbols, and the fighters in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.emulator import Emulator

MON_SIZE, MON_HP, MON_TYPE1, MON_MOVES, MON_LEVEL, MON_MAXHP = 44, 2, 5, 8, 33, 35
MON_ATTACK, MON_DEFENSE = 37, 39


class Memory:
    """The game's memory by its symbols."""

    def __init__(self, emulator: Emulator, symbols: Path) -> None:
        self.emulator = emulator
        self.symbols = {}
        for line in symbols.read_text().splitlines():
            address, name = line.split()
            self.symbols[name] = int(address[3:], 16)

    def bytes(self, name: str, size: int) -> bytes:
        """`size` bytes from a symbol on."""
        return self.emulator.read_memory(0, self.symbols[name], size).tobytes()

    def __getitem__(self, name: str) -> int:
        return self.bytes(name, 1)[0]


@dataclass
class Fighter:
    """A fighter as it is in memory."""

    species: int
    hp: int
    level: int
    maximum: int
    attack: int
    defense: int
    types: tuple[int, int]
    moves: list[int]

    @staticmethod
    def of(data: bytes) -> Fighter:
        """The fighter in 44 bytes."""
        moves = [move for move in data[MON_MOVES : MON_MOVES + 4] if move]
        types = (data[MON_TYPE1], data[MON_TYPE1 + 1])
        return Fighter(data[0], data[MON_HP], data[MON_LEVEL], data[MON_MAXHP], data[MON_ATTACK], data[MON_DEFENSE],
                       types, moves)  # fmt: skip
