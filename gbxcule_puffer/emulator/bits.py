"""Bit fields of packed words, declared once for the host that packs them and for the kernels that read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np

Word = TypeVar("Word", int, np.ndarray)


class Bits(type):
    """A field of a packed record: `width` bits from bit `shift` on, in word number `word`.

    Each field is a class, because Warp compiles attributes of classes and modules, but not of other objects, into
    constants. In a kernel: `(entry >> table.KIND.shift) & table.KIND.most`.
    """

    word: int
    shift: int
    width: int
    most: int  # the largest value
    mask: int  # most << shift

    def __new__(cls, name: str, word: int, shift: int, width: int) -> Bits:
        most = (1 << width) - 1
        values = {"word": word, "shift": shift, "width": width, "most": most, "mask": most << shift}
        return super().__new__(cls, name, (), values)

    def __init__(cls, name: str, word: int, shift: int, width: int) -> None:
        super().__init__(name, (), {})

    def put(cls, value: Word) -> Word:
        """`value`, an int or an array, shifted to the field.

        Raises: ValueError if it does not fit.
        """
        fits = 0 <= value <= cls.most if isinstance(value, int) else np.all((value >= 0) & (value <= cls.most))
        if not fits:
            raise ValueError(f"{cls.__name__} is {value}, but its {cls.width} bits hold 0 to {cls.most}")
        return value << cls.shift

    def get(cls, word: Word) -> Word:
        """The field's value in a word."""
        return (word >> cls.shift) & cls.most


def check(fields: Iterable[Bits]) -> None:
    """Raises: ValueError if two fields of a record share a bit, or a field leaves its 32-bit word."""
    used = dict[int, int]()
    for field in fields:
        if field.shift + field.width > 32 or used.get(field.word, 0) & field.mask:
            raise ValueError(f"{field.__name__} shares bits with another field, or leaves its word")
        used[field.word] = used.get(field.word, 0) | field.mask
