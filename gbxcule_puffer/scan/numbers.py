"""Numbers of several bytes: which neighbours carry into each other, and how their digits are stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.scan.recording import Recording, address_of
from gbxcule_puffer.scan.shown import READS as READS_SHOWN
from gbxcule_puffer.scan.tally import Tally
from gbxcule_puffer.tasks.ram.number import BASES, READS, Number
from gbxcule_puffer.tasks.ram.view import Where

Stats = dict[str, torch.Tensor]
DIGITS = {"bcd": 2, "digits": 1}  # of a byte
LEAST_CARRIES, CARRIED, MOST_BYTES = 3, 0.8, 6


@dataclass(frozen=True)
class Carries:
    """Of each byte, the index of the neighbour into which it carries (-1: none), and whether that is at the lower
    address."""

    into: torch.Tensor  # (bytes,) int64
    is_lower: torch.Tensor  # (bytes,) bool


def find_carries(tally: Tally, stats: Stats) -> Carries:
    """Finds neighbours that rise where a byte falls from high to low, and fall where it does the opposite. Adds to the
    statistics `carries`: of the falls, those that carried."""
    rate = stats["rate"]
    into = torch.full((len(rate),), -1, dtype=torch.int64, device=rate.device)
    is_lower = torch.zeros_like(into, dtype=torch.bool)
    best, carries = torch.zeros_like(rate), torch.zeros_like(rate)
    for neighbour, found, lower in zip(tally.neighbours.long(), tally.carries, (False, True), strict=True):
        share = found["rose"] / found["fell"].clamp(min=1)
        wraps = found["made_good"] / found["wide"].clamp(min=1)
        events = torch.maximum(found["rose"], found["made_good"])
        rarer = rate[neighbour.clamp(min=0)] < rate
        good = (neighbour >= 0) & (events >= LEAST_CARRIES) & rarer & (torch.maximum(share, wraps) > CARRIED)
        better = good & (events > best)
        into = torch.where(better, neighbour, into)
        is_lower = torch.where(better, lower, is_lower)
        best, carries = torch.where(better, events, best), torch.where(better, share, carries)
    stats["carries"] = carries
    return Carries(into.cpu(), is_lower.cpu())


def number_of(
    byte: int, recording: Recording, stats: Stats, carries: Carries, counts: bool
) -> tuple[Number, list[int]]:
    """The number whose lowest byte this is, and the indices of its bytes. counts: it may be decimal, as positions are
    not."""
    members, at = [byte], byte
    lower = bool(carries.is_lower[byte])
    while len(members) < MOST_BYTES and int(carries.into[at]) >= 0 and bool(carries.is_lower[at]) == lower:
        at = int(carries.into[at])
        if at in members:
            break
        members.append(at)
    lows = [int(stats["lowest"][i]) for i in members]
    highest = max(int(stats["highest"][i]) for i in members)
    base = lows[0]
    read, zero = "number", 0
    if len(members) > 1 and set(lows) == {base} and highest - base <= 9 and int(stats["highest"][byte]) - base >= 8:
        read, zero = "digits", base
    elif counts and all(bool(stats["decimal"][i]) for i in members) and highest >= 0x10:
        is_shown = float(stats["shown"][byte]) > 0.6
        seen = READS_SHOWN[int(stats["shown_read"][byte])] if is_shown else None
        read = "bcd" if seen == "bcd" or (seen is None and int(stats["distinct"][byte]) > 10) else "number"
    members = members[: READS[read]]
    more = 0  # bytes above them that were 0 all the time
    if read in DIGITS and float(stats["shown"][byte]) > 0.6:
        wanted = -(-int(stats["shown_digits"][byte]) // DIGITS[read])
        sides = (lower,) if len(members) > 1 else (False, True)
        counts_of = [_zeros(recording, members[-1], -1 if side else 1, wanted - len(members), zero) for side in sides]
        more = max(counts_of)
        lower = sides[counts_of.index(more)] if more else lower
    where = recording.where[members[-1] if lower else byte]
    order = "big" if lower and len(members) + more > 1 else "little"
    return Number(moved(where, -more if lower else 0), len(members) + more, read, order, zero=zero), members


def _zeros(recording: Recording, byte: int, step: int, most: int, zero: int) -> int:
    """The number of bytes that are always a digit 0, next to a byte in one direction."""
    count = 0
    while count < most and recording.constant(moved(recording.where[byte], step * (count + 1))) == zero:
        count += 1
    return count


def value_of(recording: Recording, number: Number, look: int, env: int) -> int | None:
    """The value of a candidate's number at a look of an env; None where a byte of it changed too seldom to be kept."""
    total = 0
    for index in range(number.size):
        where = moved(number.where, index)
        kept = where in recording.index
        byte = int(recording.values[look, env, recording.index[where]]) if kept else recording.constant(where)
        if byte is None:
            return None
        digit = (byte - number.zero & 15) if number.read == "digits" else byte
        power = index if number.order == "little" else number.size - 1 - index
        total += (digit - (digit >> 4) * 6 if number.read == "bcd" else digit) * BASES[number.read] ** power
    return total


def values_of(recording: Recording, number: Number) -> torch.Tensor | None:
    """The values of a number at all looks, (looks, envs) int64; None where none of its bytes is recorded. A byte that
    changed too seldom to be kept counts as it was at the start."""
    if all(moved(number.where, index) not in recording.index for index in range(number.size)):
        return None
    total = torch.zeros(recording.values.shape[:2], dtype=torch.int64, device=recording.values.device)
    for index in range(number.size):
        where = moved(number.where, index)
        if where in recording.index:
            byte = recording.values[..., recording.index[where]].long()
        else:
            byte = torch.full_like(total, recording.constant(where) or number.zero)
        digit = (byte - number.zero & 15) if number.read == "digits" else byte
        power = index if number.order == "little" else number.size - 1 - index
        total += (digit - (digit >> 4) * 6 if number.read == "bcd" else digit) * BASES[number.read] ** power
    return total


def moved(where: Where, distance: int) -> Where:
    """A location some bytes on, in the same bank."""
    return (where[0], address_of(where) + distance) if isinstance(where, tuple) else address_of(where) + distance
