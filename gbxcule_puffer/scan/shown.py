"""Numbers that the picture shows: digits in the maps of background and window that change as a number's digits do."""

from __future__ import annotations

from dataclasses import dataclass

import torch

READS = ("number", "bcd", "digits")  # how a byte is shown: as two decimal digits, as its two halves, or as one digit
LEAST_EVENTS, LEAST_STEPS = 4, 2  # changes of the lowest digit between two pictures, and different ones among all
LEAST_VALUES = 4  # different ones: a tile that another one replaces has two
MOST_STILL = 4  # last digits of a number that never change
MOST_DIGITS, COLUMNS = 8, 32  # of a number; cells of a row of the maps
MOST_EVENTS = 120  # changes that are compared
FIELDS = 3  # the fewest of a board of which this is seen
LIKELY = 0.6  # part of the changes that a cell shows, from which it likely shows the byte
BASES = {"number": 10, "bcd": 16}  # of a byte's two digits


def find_shown(
    values: torch.Tensor, tiles: torch.Tensor, worth: torch.Tensor, into: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """Looks for the digits of bytes in the maps of filmed Game Boys.

    values: (pictures, Game Boys, bytes) uint8; tiles: (pictures, Game Boys, cells) uint8, the maps; worth: (bytes,)
    bool, bytes that are looked for; into: (bytes,) int64, the byte that each carries into, -1 for none: the two are one
    binary number.

    Returns, of each byte, (bytes,), shown: the part of its digits' changes that a cell shows, 0 where too few are seen;
    shown_read: the reading that is shown, an index of READS; shown_cell: the cell of the lowest digit that changes;
    shown_digits: the digits of the whole number, with those of other bytes and zeros in front.
    """
    shown = torch.zeros(len(worth), device=values.device)
    read, cell, digits = (torch.zeros_like(shown, dtype=torch.int64) for _ in range(3))
    zero = torch.full_like(read, -1)  # the tile of 0, of bytes with one digit
    steps = (tiles[1:] - tiles[:-1]).flatten(0, 1)  # uint8, of each cell from a picture to the next one
    for byte in worth.nonzero()[:, 0].tolist():
        own = values[:, :, byte].int()
        if into is not None and (upper := int(into[byte])) >= 0 and _readings(own) == [READS.index("number")]:
            own += 256 * values[:, :, upper].int()
        for index in _readings(own):
            share, where = _share(steps, own, READS[index])
            if share > shown[byte]:
                shown[byte], read[byte], cell[byte] = share, index, where
        if shown[byte] > 0:
            base = BASES.get(READS[int(read[byte])], 256)
            shows = _Digit.of(tiles[:, :, int(cell[byte])].int(), own, base)
            shown[byte] *= shows.steady
            if shows.is_copy:
                read[byte] = READS.index("digits")
            elif int(own.max()) <= 9 and shown[byte] > LIKELY:
                zero[byte] = shows.zero
            digits[byte] = shows.still + _digits(tiles, int(cell[byte]), shows)
    read[_boards(cell, zero)] = READS.index("digits")
    return {"shown": shown, "shown_read": read, "shown_cell": cell, "shown_digits": digits}


def _boards(cell: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """(bytes,) bool, bytes of one digit that are fields of a board, whose tiles only look like digits: FIELDS or more,
    in several rows and columns of the map. zero: (bytes,), the tile of 0, -1 for other bytes."""
    found = torch.zeros_like(zero, dtype=torch.bool)
    for tile in zero[zero >= 0].unique():
        alike = zero == tile
        fields = cell[alike].unique()
        if len(fields) >= FIELDS and len((fields // COLUMNS).unique()) > 1 and len((fields % COLUMNS).unique()) > 1:
            found |= alike
    return found


@dataclass(frozen=True)
class _Digit:
    """A cell that shows a digit: the tile of 0, the part of the digit's changes with this tile of 0, the digits behind
    it that never change, and whether the byte stands for the tile, as ASCII does, not for a number."""

    zero: int
    steady: float
    still: int
    is_copy: bool
    seen: torch.Tensor  # (pictures, Game Boys) bool: pictures with a digit in the cell

    @classmethod
    def of(cls, tiles: torch.Tensor, values: torch.Tensor, base: int) -> _Digit:
        """Of the tiles in the cell and the bytes, (pictures, Game Boys) each."""
        still = _still(values, base)
        digit = values // base**still % base
        zeros = (tiles - digit) % 256
        changes = zeros[1:][(digit[1:] != digit[:-1]) & (zeros[1:] == zeros[:-1])]
        zero = int(changes.mode().values) if len(changes) else 0
        steady = float((changes == zero).float().mean()) if len(changes) else 0.0
        moves = values[1:] != values[:-1]
        apart = (tiles - values)[1:] % 256
        high = moves & (values[1:] > 9)  # up to 9, a number's tile is as far from it as a tile's
        is_copy = bool(high.any()) and float((apart[high] == apart[moves].mode().values).float().mean()) > 0.8
        return cls(zero, steady, still, is_copy, (tiles - zero) % 256 <= 9)


def _digits(tiles: torch.Tensor, cell: int, digit: _Digit) -> int:
    """The digits in a row up to a cell, those in front nearly always there; 1 where there are more than MOST_DIGITS:
    then the background has a digit's tile."""
    for front in range(1, MOST_DIGITS + 1):
        if front > cell % COLUMNS:
            return front
        other = (tiles[:, :, cell - front].int() - digit.zero) % 256 <= 9
        if float(other[digit.seen].float().mean()) < 0.9:
            return front
    return 1


def _readings(values: torch.Tensor) -> list[int]:
    """The readings that a byte with these values may have, as indices of READS."""
    different = values.unique()
    if len(different) < LEAST_VALUES:
        return []
    decimal = bool(((different & 15 <= 9) & (different <= 0x99)).all())
    may = {"number": True, "bcd": decimal, "digits": int(different[-1] - different[0]) <= 9}
    return [index for index, reading in enumerate(READS) if may[reading]]


def _share(steps: torch.Tensor, values: torch.Tensor, reading: str) -> tuple[float, int]:
    """The part of a byte's changes that the best cell shows, and that cell."""
    base = BASES.get(reading, 256)
    values = values // base ** _still(values, base)
    parts = [values] if reading == "digits" else [values, values // base]  # without the lower digits
    moved = [(part[1:] % base - part[:-1] % base).flatten() for part in parts]
    # A zero in front may be left out: what follows or precedes it says less.
    is_digit = reading == "digits"
    blank = [(torch.minimum(part[1:], part[:-1]).flatten() == 0) & (not is_digit) for part in parts]
    changes = torch.cat(moved)
    counted = int(((changes != 0) & ~torch.cat(blank)).sum())
    if counted < LEAST_EVENTS or int(changes.abs().max()) > 9 or len(changes.unique()) <= LEAST_STEPS:
        return 0.0, 0
    hits, events, sure = (torch.zeros(steps.shape[1], dtype=torch.int64, device=steps.device) for _ in range(3))
    for place, (each, empty) in enumerate(zip(moved, blank, strict=True)):
        some = _spread((each != 0).nonzero()[:, 0])
        equal, empty = steps[some] == each[some].to(torch.uint8)[:, None], empty[some]
        # The cell of a digit is before that of the next lower one.
        hits += equal.sum(0).roll(place)
        events += (equal | ~empty[:, None]).sum(0).roll(place)
        sure += equal[~empty].sum(0).roll(place)
    still = _spread((moved[0] == 0).nonzero()[:, 0])
    quiet = (steps[still] != 0).sum(0) <= len(still) // 2
    best, where = (hits * (quiet & (sure >= LEAST_EVENTS)) / events.clamp(min=1)).max(0)
    return float(best), int(where)


def _still(values: torch.Tensor, base: int) -> int:
    """The number of last digits that never change, as in a score that rises by 100."""
    for digit in range(MOST_STILL):
        part = values // base**digit % base
        if bool((part[1:] != part[:-1]).any()):
            return digit
    return 0


def _spread(several: torch.Tensor) -> torch.Tensor:
    """At most MOST_EVENTS of them, evenly spread."""
    return several[:: -(-len(several) // MOST_EVENTS) or 1]
