"""Numbers in RAM as games store them: of one or more bytes, signed, decimal, or as set bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.bits import bit_count
from gbxcule_puffer.tasks.ram.view import ORDERS, Ram, RamWatch, Where

# How bytes become a number, and the most bytes that one may have, so that it fits an int64.
READS = {"number": 7, "signed": 7, "bcd": 9, "digits": 18, "bits": 512, "count": 512}
BASES = {"number": 256, "signed": 256, "bcd": 100, "digits": 10, "bits": 1, "count": 1}
MOST_EVERY = 256
TOP_BIT = 0x80


@dataclass(frozen=True)
class Number:
    """A number of `size` bytes from `where` on, as Ram takes it: an address, a symbol or (bank, address).

    read: 'number' (unsigned), 'signed' (two's complement), 'bcd' (two decimal digits a byte), 'digits' (one decimal
    digit a byte, in its lower half), 'bits' (how many are set) or 'count' (how many bytes equal `of`); order: 'little'
    has the lowest byte first, 'big' the highest; mask: the bits that count of each byte; zero: the byte of the digit 0
    for 'digits', e.g. the number of its tile; every: the distance of two bytes, e.g. 2 for the items of a list of items
    and amounts.

    Raises: ConfigError for a value that a field does not accept.
    """

    where: Where
    size: int = 1
    read: str = "number"
    order: str = "little"
    mask: int = 0xFF
    zero: int = 0
    every: int = 1
    of: int = 0

    def __post_init__(self) -> None:
        if self.read not in READS:
            raise ConfigError(f"read {self.read!r:.40} must be one of {', '.join(READS)}")
        if self.order not in ORDERS:
            raise ConfigError(f"order {self.order!r:.40} must be one of {', '.join(ORDERS)}")
        if type(self.size) is not int or not 1 <= self.size <= READS[self.read]:
            raise ConfigError(
                f"size {self.size!r:.40} must be from 1 to {READS[self.read]} bytes with read {self.read!r}"
            )
        if type(self.mask) is not int or not 0 <= self.mask <= 0xFF:
            raise ConfigError(f"mask {self.mask!r:.40} must be from 0 to 255")
        if type(self.zero) is not int or not 0 <= self.zero <= (0xFF if self.read == "digits" else 0):
            raise ConfigError(f"zero {self.zero!r:.40} must be from 0 to 255, and 0 unless read is 'digits'")
        if type(self.every) is not int or not 1 <= self.every <= MOST_EVERY:
            raise ConfigError(f"every {self.every!r:.40} must be from 1 to {MOST_EVERY} bytes")
        if type(self.of) is not int or not 0 <= self.of <= (0xFF if self.read == "count" else 0):
            raise ConfigError(f"of {self.of!r:.40} must be from 0 to 255, and 0 unless read is 'count'")

    @property
    def length(self) -> int:
        """The bytes from the first to the last one."""
        return (self.size - 1) * self.every + 1

    @property
    def least(self) -> int:
        """The lowest value that the bytes can give."""
        return -(TOP_BIT << 8 * (self.size - 1)) if self.read == "signed" else 0

    @property
    def most(self) -> int:
        """The highest value that the bytes can give, also with digits that are not decimal."""
        if self.read == "bits":
            return self.size * self.mask.bit_count()
        if self.read == "count":
            return self.size
        highest = {"bcd": 165, "digits": 15}.get(self.read, 255)  # of a byte
        most = sum(highest * BASES[self.read] ** i for i in range(self.size))
        return most + self.least if self.read == "signed" else most

    def encode(self, value: int) -> list[int]:
        """The bytes from `where` on that store a value.

        Raises: ConfigError for a value that they cannot store.
        """
        if self.read in ("bits", "count") or self.mask != 0xFF or self.every != 1:
            raise ConfigError(
                "a number of set bits or of equal bytes, or with a mask or gaps, cannot be written: name its bytes one "
                "by one"
            )
        most = BASES[self.read] ** self.size - 1 + self.least
        if type(value) is not int or not self.least <= value <= most:
            raise ConfigError(f"{value!r:.40} must be a whole number from {self.least:,} to {most:,}")
        rest, found = value % (1 << 8 * self.size) if value < 0 else value, list[int]()
        for _ in range(self.size):
            rest, part = divmod(rest, BASES[self.read])
            found.append(part // 10 * 16 + part % 10 if self.read == "bcd" else (part + self.zero) & 0xFF)
        return found if self.order == "little" else found[::-1]


class Numbers:
    """Several numbers, by one read of their bytes. Allocates what lasts only here."""

    def __init__(self, ram: Ram, numbers: Sequence[Number]) -> None:
        where: list[Where] = []
        owner, mask, weight, sign, decimal, bits, zero, of = ([] for _ in range(8))  # of each byte
        for i, number in enumerate(numbers):
            bank, address = ram.locate(number.where)
            for byte in range(number.size):
                at = address + byte * number.every
                where.append(at if bank is None else (bank, at))
                power = byte if number.order == "little" else number.size - 1 - byte
                owner.append(i)
                mask.append(number.mask & (0x0F if number.read == "digits" else 0xFF))
                weight.append(BASES[number.read] ** power)
                sign.append(TOP_BIT if number.read == "signed" and power == number.size - 1 else 0)
                decimal.append(6 if number.read == "bcd" else 0)
                bits.append(number.read == "bits")
                zero.append(number.zero)
                of.append(number.of if number.read == "count" else -1)

        def row(values: Sequence[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype, device=ram.device)

        self._watch = RamWatch(ram, where, halves=True)
        halves = [ram.half_of(each) for each in where]
        self._ones = row(halves, torch.uint8) if any(halves) else None
        self._is_bytes = not any(halves) and all(each == Number(each.where) for each in numbers)
        self._owner, self._weight, self._mask = row(owner), row(weight), row(mask, torch.uint8)
        self._sign = row(sign) if any(sign) else None
        self._decimal = row(decimal) if any(decimal) else None
        self._bits = row(bits, torch.bool) if any(bits) else None
        self._zero = row(zero, torch.uint8) if any(zero) else None
        self._of = row(of) if any(each >= 0 for each in of) else None
        self._bytes = torch.zeros((ram.num_envs, len(where)), dtype=torch.int64, device=ram.device)
        self.values = torch.zeros((ram.num_envs, len(numbers)), dtype=torch.int64, device=ram.device)

    def read(self) -> torch.Tensor:
        """The current numbers, (num_envs, numbers) int64; valid until the next read."""
        if self._is_bytes:
            return self.values.copy_(self._watch.read())
        found = self._watch.read()
        if self._ones is not None:
            found.bitwise_or_(self._ones)
        if self._zero is not None:
            found.sub_(self._zero)
        found.bitwise_and_(self._mask)
        values = self._bytes.copy_(found)
        if self._bits is not None:
            values.copy_(torch.where(self._bits, bit_count(found).to(torch.int64), values))
        if self._of is not None:
            values.copy_(torch.where(self._of >= 0, (values == self._of).to(torch.int64), values))
        if self._decimal is not None:
            values.sub_((values >> 4) * self._decimal)
        if self._sign is not None:
            values.bitwise_xor_(self._sign).sub_(self._sign)
        return self.values.zero_().index_add_(1, self._owner, values.mul_(self._weight))
