"""Numbers of several bytes: which neighbours carry into each other, and how their digits are stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.statistics import chunks, wrapped
from gbxcule_puffer.tasks.ram.number import READS, Number
from gbxcule_puffer.tasks.ram.view import Where

Stats = dict[str, torch.Tensor]
LEAST_CARRIES, MOST_BYTES = 2, 6


@dataclass(frozen=True)
class Carries:
    """Of each byte, the index of the neighbour into which it carries (-1: none), and whether that is at the lower
    address."""

    into: torch.Tensor  # (bytes,) int64
    is_lower: torch.Tensor  # (bytes,) bool


def find_carries(recording: Recording, stats: Stats) -> Carries:
    """Finds neighbours that rise by one where a byte falls from high to low, and fall by one where it does the
    opposite. Adds to the statistics `carries`: of the falls, those that carried."""
    keys = [_key(where) for where in recording.where]
    index = {key: i for i, key in enumerate(keys)}
    total, device = len(keys), recording.values.device
    into = torch.full((total,), -1, dtype=torch.int64, device=device)
    is_lower = torch.zeros(total, dtype=torch.bool, device=device)
    share = torch.zeros(total, device=device)
    for lower in (False, True):
        near = [index.get((bank, address + (-1 if lower else 1)), -1) for bank, address in keys]
        neighbour = torch.tensor(near, device=device)
        carried, changed, fell = _count(recording, neighbour)
        part = carried / changed.clamp(min=1)
        good = (neighbour >= 0) & (carried >= LEAST_CARRIES) & (part > 0.8)
        good &= stats["distinct"] > 4
        better = good & (carried / fell.clamp(min=1) > share)
        into = torch.where(better, neighbour, into)
        is_lower = torch.where(better, lower, is_lower)
        share = torch.where(better, carried / fell.clamp(min=1), share)
    stats["carries"] = share.clamp(max=1)
    return Carries(into, is_lower)


def _count(recording: Recording, neighbour: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of each byte: changes of its neighbour with a carry, changes of the neighbour, and its own falls."""
    looks, envs, total = recording.values.shape
    parts = []
    for part in chunks(total, 2 * looks * envs):
        own = recording.values[:, :, part].short()
        other = recording.values[:, :, neighbour[part].clamp(min=0)].short()
        step, next_step = own[1:] - own[:-1], wrapped(other[1:] - other[:-1])
        valid = recording.valid[1:, :, None]
        up = (step < 0) & (next_step == 1) & valid
        down = (step > 0) & (next_step == -1) & valid & (step > 4)
        changed = (next_step != 0) & valid
        restart = (next_step.abs() > 1) & valid
        parts.append(
            torch.stack(
                [(up | down).sum((0, 1)), (changed & ~restart).sum((0, 1)), ((step < 0) & valid & ~restart).sum((0, 1))]
            )
        )
    carried, changed, fell = torch.cat(parts, 1)
    return carried, changed, fell


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
    highest = max(int(stats["highest"][i]) for i in members)
    lowest_high = int(stats["highest"][byte])
    decimal = all(bool(stats["decimal"][i]) for i in members)
    read = "number"
    if len(members) > 1 and highest <= 9:
        read = "digits"
    elif decimal and lowest_high >= 0x10 and int(stats["distinct"][byte]) > 10:
        read = "bcd"
    size = min(len(members), READS[read])
    members = members[:size]
    where = recording.where[members[-1] if lower and size > 1 else byte]
    order = "big" if lower and size > 1 else "little"
    return Number(where, size, read, order), members
