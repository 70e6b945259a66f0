"""Building blocks of the generator: a seeded source of choices, and a piece of machine code with its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


class Random:
    """Choices from one seed; the same on every machine."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.generator.integers(low, high + 1))

    def byte(self) -> int:
        """0 to 255."""
        return self.integer(0, 255)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.generator.random() < probability)

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.integer(0, len(items) - 1)]

    def weighted(self, weights: Mapping[Item, float]) -> Item:
        """One of the keys, by weight."""
        at = self.generator.random() * sum(weights.values())
        for item, weight in weights.items():
            at -= weight
            if at < 0:
                return item
        return next(iter(weights))


class Code:
    """Machine code from an address on."""

    def __init__(self, random: Random, start: int) -> None:
        self.random, self.start, self.data = random, start, bytearray()

    @property
    def here(self) -> int:
        """Address of the next byte."""
        return self.start + len(self.data)

    def emit(self, *values: int) -> None:
        """Append bytes."""
        self.data += bytes(value & 0xFF for value in values)

    def word(self, opcode: int, value: int) -> None:
        """An opcode with a 16-bit operand."""
        self.emit(opcode, value & 0xFF, value >> 8)

    def store(self, register: int, value: int) -> None:
        """Write a value to FF00 + register, in one of several ways."""
        way = self.random.integer(0, 5)
        register &= 0xFF
        if way <= 2:
            self.emit(0x3E, value, 0xE0, register)  # ld a,value; ldh [register],a
        elif way == 3:
            self.emit(0x3E, value, 0x0E, register, 0xE2)  # ld a,value; ld c,register; ldh [c],a
        elif way == 4:
            self.word(0x21, 0xFF00 | register)
            self.emit(0x36, value)  # ld [hl],value
        else:
            self.emit(0x3E, value, 0xEA, register, 0xFF)  # ld [imm16],a

    def nops(self, most: int) -> None:
        """Up to `most` NOPs."""
        self.emit(*([0] * self.random.integer(0, most)))

    def delay(self, most: int) -> None:
        """A short loop over register A or B, up to `most` turns, with up to 3 NOPs."""
        load, decrease = self.random.choice(((0x3E, 0x3D), (0x06, 0x05)))
        self.emit(load, self.random.integer(1, most), decrease, 0x20, 0xFD)
        self.nops(3)
