"""A search for numbers in RAM: all addresses at first, then only those that changed as the number on the screen did."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.narrowing import COMPARISONS, LOOK, Narrowing, parse_narrowing
from gbxcule_puffer.tasks.ram.number import BASES, TOP_BIT, Number
from gbxcule_puffer.tasks.ram.readings import number_of
from gbxcule_puffer.tasks.ram.view import Ram, Where

# The readings of a search for any number: of those that read the same, the first is listed.
ANY = (
    "u8", "s8", "bcd1", "u16", "u16be", "bcd2", "bcd2le", "digits2", "digits2le", "s16", "s16be",
    "u24", "u24be", "bcd3", "bcd3le", "digits3", "digits3le", "u32", "u32be", "bcd4", "bcd4le", "digits4", "digits4le",
    *(f"digits{size}{order}" for size in range(5, 9) for order in ("", "le")),
)  # fmt: skip
MOST_UNDONE = 100  # narrowings
MOST_LISTED = 5_000  # numbers among which equal readings are found
PART = 2**22  # numbers that are read at once
MOST_ZERO = 0xFF - 9  # the highest byte of the digit 0


@dataclass(frozen=True)
class Area:
    """Addresses of RAM that a search looks at; bank: None where there is one only, or the usual one is meant."""

    bank: int | None
    address: int
    length: int

    def where(self, offset: int) -> Where:
        """The byte at an offset, as Ram takes it."""
        address = self.address + offset
        return address if self.bank is None else (self.bank, address)


def areas_of(cartridge: Cartridge) -> list[Area]:
    """WRAM and HRAM of a Game Boy, and all banks of its cartridge's RAM, unless that has half bytes (MBC2)."""
    areas = [Area(None, hw.WRAM, hw.ECHO - hw.WRAM)]
    if cartridge.model == "cgb":
        half = hw.BANKED_WRAM - hw.WRAM
        areas = [Area(None, hw.WRAM, half), *(Area(bank, hw.BANKED_WRAM, half) for bank in (None, *range(2, 8)))]
    whole = cartridge.mapper.has_plain_ram
    banks = [Area(bank, hw.CART_RAM, hw.RAM_BANK_SIZE) for bank in range(cartridge.ram_banks) if whole]
    return [*areas, Area(None, hw.HRAM, hw.IE - hw.HRAM), *banks]


@dataclass(frozen=True)
class Match:
    """A number that is left, and its value now, at the last look and at the first."""

    number: Number
    now: int
    last: int
    first: int


@dataclass(frozen=True)
class _Left:
    """What is left of one reading: columns of a look where a number starts, (n,) int64; for 'digits' also the lowest
    and the highest byte that can be the digit 0 there."""

    starts: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor

    def only(self, keep: torch.Tensor) -> _Left:
        return _Left(self.starts[keep], self.low[keep], self.high[keep])


class Search:
    """A search over the RAM of all Game Boys of `ram`; a number stays while every narrowing holds in each of them.

    A look is the RAM at one moment, (num_envs, bytes) uint8: `narrow` takes one, or is given one that `look` returned.
    Digits may be stored as the numbers of their tiles: the byte of the digit 0 is found, too.

    Raises: ConfigError for an unknown reading, and for one that can be no number of a search.
    """

    def __init__(self, ram: Ram, readings: Sequence[str] = ANY, look: torch.Tensor | None = None) -> None:
        self.ram, self.areas = ram, areas_of(ram.cartridge)
        self._readings = {word: number_of(word) for word in dict.fromkeys(readings)}
        for word, number in self._readings.items():
            if number.size > (8 if number.read == "digits" else 4) or number.read == "bits":
                raise ConfigError(f"reading {word} is too long for a search: give up to 4 bytes, or up to digits8")
        self.first = self.last = self.look() if look is None else look
        self._left = {word: self._everywhere(number.size) for word, number in self._readings.items()}
        self._undo: deque[tuple[dict[str, _Left], torch.Tensor]] = deque(maxlen=MOST_UNDONE)

    def look(self) -> torch.Tensor:
        """The RAM as it is now, a tensor of its own."""
        return torch.cat([self.ram.view(area.where(0), area.length) for area in self.areas], 1)

    def narrow(self, condition: str | Narrowing, look: torch.Tensor | None = None) -> int:
        """Keeps the numbers for which a condition holds; returns how many are left.

        Raises: ConfigError for a text that is not a condition, and values that are not one for each Game Boy.
        """
        narrowing = parse_narrowing(condition) if isinstance(condition, str) else condition
        value = self._value(narrowing)
        now = self.look() if look is None else look
        before = self.first if narrowing.since_start else self.last
        self._undo.append((self._left, self.last))
        if narrowing.test != LOOK:
            self._left = {
                word: self._kept(self._readings[word], left, narrowing.test, value, now, before)
                for word, left in self._left.items()
            }
        self.last = now
        return self.count

    def undo(self) -> bool:
        """Takes the last narrowing back; False if there is none."""
        if not self._undo:
            return False
        self._left, self.last = self._undo.pop()
        return True

    @property
    def count(self) -> int:
        """The number of matches that are left, over all readings."""
        return sum(len(left.starts) for left in self._left.values())

    def matches(self, look: torch.Tensor | None = None, env: int = 0, most: int = MOST_LISTED) -> list[Match]:
        """The first `most` numbers that are left, the shortest first, with their values in one Game Boy. A number that
        equals a shorter one at the same lowest byte, as 5 in two bytes and in one, is left out."""
        now = (self.look() if look is None else look)[env : env + 1]
        looks = (now, self.last[env : env + 1], self.first[env : env + 1])
        found: list[Match] = []
        seen: set[tuple[int, int, int, int]] = set()
        for word, left in self._left.items():
            number = self._readings[word]
            left = left.only(slice(0, most))  # pyright: ignore[reportArgumentType]
            zeros = [_likely_zero(*pair) for pair in zip(left.low.tolist(), left.high.tolist(), strict=True)]
            shift = torch.tensor(zeros, device=left.starts.device) * _ones(number)
            columns = [(_values(each, number, left.starts)[0] - shift).tolist() for each in looks]
            for start, zero, *values in zip(left.starts.tolist(), zeros, *columns, strict=True):
                lowest = start + (0 if number.order == "little" else number.size - 1)
                if (lowest, *values) not in seen and len(found) < most:
                    found.append(Match(self._number_at(number, start, zero), *values))
                seen.add((lowest, *values))
        return found

    def _everywhere(self, size: int) -> _Left:
        """All starts of numbers of `size` bytes, none of which leaves its area."""
        ends = torch.tensor([area.length for area in self.areas]).cumsum(0).tolist()
        starts = torch.cat([
            torch.arange(end - area.length, end - size + 1) for area, end in zip(self.areas, ends, strict=True)
        ]).to(self.ram.device)  # fmt: skip
        low = torch.zeros_like(starts)
        return _Left(starts, low, low + MOST_ZERO)

    def _number_at(self, number: Number, start: int, zero: int) -> Number:
        """The reading at a column of a look; a digit 0 such as 30 needs no naming, since its lower half is 0."""
        for area in self.areas:
            if start < area.length:
                where = area.where(start)
                zero = 0 if zero % 16 == 0 or number.read != "digits" else zero
                return Number(where, number.size, number.read, number.order, zero=zero)
            start -= area.length
        raise AssertionError(start)

    def _value(self, narrowing: Narrowing) -> torch.Tensor | None:
        """The condition's number, (1, 1) or (num_envs, 1) int64."""
        if narrowing.value is None:
            return None
        values = [narrowing.value] if isinstance(narrowing.value, int) else list(narrowing.value)
        if not isinstance(narrowing.value, int) and len(values) != self.ram.num_envs:
            raise ConfigError(f"{len(values)} values for {self.ram.num_envs} Game Boys: give one each")
        return torch.tensor(values, dtype=torch.int64, device=self.ram.device)[:, None]

    def _kept(
        self,
        number: Number,
        left: _Left,
        test: str,
        value: torch.Tensor | None,
        now: torch.Tensor,
        before: torch.Tensor,
    ) -> _Left:
        """What is left of a reading after a narrowing, some Game Boys at a time."""
        envs = max(1, PART // max(1, len(left.starts)))
        for first in range(0, len(now), envs):
            part = slice(first, first + envs)
            its = value if value is None or len(value) == 1 else value[part]
            looks = [now[part]] if test in COMPARISONS else [now[part], before[part]]
            if number.read == "digits":
                left = _with_zeros(number, left, looks)
            elif number.read == "bcd":
                left = left.only(_are_decimal(number, left.starts, looks))
            values = [_values(look, number, left.starts) for look in looks]
            if test not in COMPARISONS:
                left = left.only(_moved(test, its, values[0] - values[1]).all(0))
            elif number.read == "digits":
                assert its is not None
                left = _compared_digits(number, left, test, its, values[0])
            else:
                assert its is not None
                left = left.only(_compared(test, its, values[0]).all(0))
        return left


def _likely_zero(low: int, high: int) -> int:
    """The byte of the digit 0 that is most likely where several can be: a multiple of 16, such as 0 or ASCII's 30."""
    return next(iter(range(-(-low // 16) * 16, high + 1, 16)), high)


def _bytes(look: torch.Tensor, number: Number, starts: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """(power of the base, bytes (num_envs, n) int64) of all bytes of the numbers."""
    for byte in range(number.size):
        power = byte if number.order == "little" else number.size - 1 - byte
        yield power, look[:, starts + byte].to(torch.int64)


def _values(look: torch.Tensor, number: Number, starts: torch.Tensor) -> torch.Tensor:
    """The numbers at `starts`, (num_envs, n) int64; of digits with 0 as the byte of the digit 0."""
    total = torch.zeros((len(look), len(starts)), dtype=torch.int64, device=look.device)
    for power, column in _bytes(look, number, starts):
        if number.read == "bcd":
            column = column - 6 * (column >> 4)
        if number.read == "signed" and power == number.size - 1:
            column = (column ^ TOP_BIT) - TOP_BIT
        total += column * BASES[number.read] ** power
    return total


def _ones(number: Number) -> int:
    """By how much a number of digits falls if the byte of its digit 0 rises by 1: 111 for three digits."""
    return sum(10**power for power in range(number.size)) if number.read == "digits" else 0


def _are_decimal(number: Number, starts: torch.Tensor, looks: Sequence[torch.Tensor]) -> torch.Tensor:
    """True where all bytes are two decimal digits, in all looks, (n,) bool."""
    keep = torch.ones_like(starts, dtype=torch.bool)
    for look in looks:
        for _, column in _bytes(look, number, starts):
            keep &= (((column & 15) < 10) & (column < 0xA0)).all(0)
    return keep


def _with_zeros(number: Number, left: _Left, looks: Sequence[torch.Tensor]) -> _Left:
    """Digits whose bytes, in all looks, lie in a range of ten that begins at one and the same byte."""
    low, high = left.low, left.high
    for look in looks:
        for _, column in _bytes(look, number, left.starts):
            low = torch.maximum(low, column.amax(0) - 9)
            high = torch.minimum(high, column.amin(0))
    return _Left(left.starts, low, high).only(low <= high)


def _moved(test: str, by: torch.Tensor | None, change: torch.Tensor) -> torch.Tensor:
    """Where a change is that of one of MOVES, (num_envs, n) bool."""
    if test == "unchanged":
        return change == 0
    if test == "changed":
        return change != 0 if by is None else change.abs() == by
    change = change if test == "rose" else -change
    return change > 0 if by is None else change == by


def _compared(test: str, value: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Where one of COMPARISONS holds, (num_envs, n) bool."""
    compare = {"=": torch.eq, "!=": torch.ne, "<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge}
    return compare[test](now, value)


def _compared_digits(number: Number, left: _Left, test: str, value: torch.Tensor, now: torch.Tensor) -> _Left:
    """Digits for which a comparison holds with one of the bytes that can be their digit 0; = leaves one byte."""
    ones = _ones(number)
    if test == "=":
        rest = now - value
        zero = torch.div(rest, ones, rounding_mode="floor")
        same = (zero == zero[:1]) & (zero * ones == rest) & (zero >= left.low) & (zero <= left.high)
        return _Left(left.starts, zero[0], zero[0]).only(same.all(0))
    if test == "!=":
        return left.only(((left.low < left.high) | (now - left.low * ones != value)).all(0))
    zero = left.high if test in ("<", "<=") else left.low
    return left.only(_compared(test, value, now - zero * ones).all(0))
