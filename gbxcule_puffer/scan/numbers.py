"""Numbers of several bytes: which neighbours carry into each other, and how their digits are stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.statistics import Changes, chunks, wrapped
from gbxcule_puffer.tasks.ram.number import READS, Number
from gbxcule_puffer.tasks.ram.view import Where

Stats = dict[str, torch.Tensor]
LEAST_CARRIES, CARRIED, MOST_BYTES = 3, 0.8, 6


@dataclass(frozen=True)
class Carries:
    """Of each byte, the index of the neighbour into which it carries (-1: none), and whether that is at the lower
    address."""

    into: torch.Tensor  # (bytes,) int64
    is_lower: torch.Tensor  # (bytes,) bool


def find_carries(recording: Recording, stats: Stats) -> Carries:
    """Finds neighbours that rise where a byte falls from high to low, and fall where it does the opposite. Adds to the
    statistics `carries`: of the falls, those that carried."""
    keys = [_key(where) for where in recording.where]
    index = {key: i for i, key in enumerate(keys)}
    total, device = len(keys), recording.values.device
    into = torch.full((total,), -1, dtype=torch.int64, device=device)
    is_lower = torch.zeros(total, dtype=torch.bool, device=device)
    best, carries = torch.zeros(total, device=device), torch.zeros(total, device=device)
    for lower in (False, True):
        near = [index.get((bank, address + (-1 if lower else 1)), -1) for bank, address in keys]
        neighbour = torch.tensor(near, device=device)
        share, wraps, events = _shares(recording, neighbour)
        rarer = stats["rate"][neighbour.clamp(min=0)] < stats["rate"]
        good = (neighbour >= 0) & (events >= LEAST_CARRIES) & rarer & (torch.maximum(share, wraps) > CARRIED)
        better = good & (events > best)
        into = torch.where(better, neighbour, into)
        is_lower = torch.where(better, lower, is_lower)
        best, carries = torch.where(better, events, best), torch.where(better, share, carries)
    stats["carries"] = carries
    return Carries(into.cpu(), is_lower.cpu())


def _shares(recording: Recording, neighbour: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of each byte: the part of its falls with which its neighbour rises; the part of its steps of half its range that
    the neighbour makes good; how often either happens. A fall of both is a game that begins again."""
    parts = []
    for part in chunks(recording):
        changes = Changes.of(recording, part)
        near = neighbour[part].clamp(min=0)[changes.byte]
        other = [recording.values[changes.look + i, changes.env, near].short() for i in (0, 1)]
        step, next_step = changes.after - changes.before, wrapped(other[1] - other[0])
        valid = ~((step < 0) & (next_step < 0))
        fell, wide = (step < 0) & valid, (step.abs() >= 128) & valid
        up = fell & (next_step > 0) & (next_step < 10)
        made_good = wide & (next_step.abs() == 1) & (next_step.sign() != step.sign())
        parts.append(torch.stack([changes.count(each) for each in (up, fell, made_good, wide)]).float())
    up, fell, made_good, wide = torch.cat(parts, 1)
    return up / fell.clamp(min=1), made_good / wide.clamp(min=1), torch.maximum(up, made_good)


def _key(where: Where) -> tuple[int, int]:
    bank, address = where if isinstance(where, tuple) else (-1, where)
    assert isinstance(address, int)
    return bank, address


def number_of(byte: int, recording: Recording, stats: Stats, carries: Carries) -> tuple[Number, list[int]]:
    """The number whose lowest byte this is, and the indices of its bytes."""
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
    elif all(bool(stats["decimal"][i]) for i in members) and highest >= 0x10 and int(stats["distinct"][byte]) > 10:
        read = "bcd"
    members = members[: READS[read]]
    where = recording.where[members[-1] if lower else byte]
    order = "big" if lower and len(members) > 1 else "little"
    return Number(where, len(members), read, order, zero=zero), members
