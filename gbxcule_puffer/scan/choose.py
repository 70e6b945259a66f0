"""Candidates from the confidences of bytes: copies become aliases, bytes of one number become that number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from gbxcule_puffer.scan.evidence import evidence_of
from gbxcule_puffer.scan.numbers import MOST_BYTES, Carries, number_of
from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.result import KINDS, Candidate
from gbxcule_puffer.scan.statistics import wrapped
from gbxcule_puffer.tasks.ram.number import BASES, Number

LEAST, MOST, LOOKED_AT = 0.2, 4, 32  # confidence and number of the candidates of a kind; bytes that are compared
LEAST_SURE = 0.1  # of all but the best candidate of a kind
SAMPLES = 60_000  # transitions that are compared
ALIKE = 0.9  # correlation of the changes of copies
MOMENTS = 6
# What is left of the confidence in all but the best candidate: a game has one score, and often two positions.
RUNNER_UP = {
    "x": 0.75, "y": 0.75, "map": 0.5, "score": 0.6, "lives": 0.6, "timer": 0.9, "random": 0.9, "menu": 0.5,
    "flags": 0.7,
}  # fmt: skip
# How confident the rules are of a kind, and how often they are right then, on the games of benchmarks/scan_truth.json.
POSITION_SURE = ((0.0, 0.0), (0.35, 0.15), (0.5, 0.4), (0.7, 0.6), (0.8, 0.9), (0.9, 0.97), (1.0, 1.0))
SURE = {
    "x": POSITION_SURE,
    "y": POSITION_SURE,
    "score": ((0.0, 0.0), (0.4, 0.1), (0.6, 0.25), (0.8, 0.5), (0.9, 0.9), (1.0, 0.97)),
    "lives": ((0.0, 0.0), (0.3, 0.1), (0.45, 0.25), (0.55, 0.7), (0.7, 0.9), (1.0, 1.0)),
}
OTHERS_SURE = ((0.0, 0.0), (0.3, 0.15), (0.6, 0.4), (0.8, 0.88), (1.0, 0.95))
COUNTED = ("score", "lives", "timer")  # kinds of numbers that may be decimal
CARRIED_DOUBT = 0.5  # what is left of the doubt in a score of several bytes


def choose(
    recording: Recording,
    chances: dict[str, torch.Tensor],
    stats: dict[str, torch.Tensor],
    causes: Causes,
    carries: Carries,
) -> list[Candidate]:
    """The candidates of all kinds, best first in each."""
    found: list[Candidate] = []
    for kind in KINDS:
        several = sorted(
            _candidates(kind, recording, chances[kind], stats, causes, carries), key=lambda each: -each.confidence
        )
        for index, each in enumerate(several[:MOST]):
            name, doubt = (kind, 1.0) if index == 0 else (f"{kind}{index + 1}", RUNNER_UP[kind])
            sure = sure_of(kind, each.confidence * doubt)
            if index == 0 or sure >= LEAST_SURE:
                found.append(replace(each, name=name, confidence=sure))
    return found


def sure_of(kind: str, confidence: float) -> float:
    """The share of candidates of a kind that are right, of those for which the rules have that confidence, 0 to 1: on
    lines between the points of SURE."""
    points = np.array(SURE.get(kind, OTHERS_SURE))
    return float(np.interp(confidence, points[:, 0], points[:, 1]))


def _candidates(
    kind: str,
    recording: Recording,
    chance: torch.Tensor,
    stats: dict[str, torch.Tensor],
    causes: Causes,
    carries: Carries,
) -> Iterator[Candidate]:
    """The candidates of a kind, with what changes with them as aliases."""
    order = [int(i) for i in chance.argsort(descending=True)[:LOOKED_AT] if chance[i] >= LEAST]
    like = _alike(recording, order).cpu()
    used: set[int] = set()
    for row, byte in enumerate(order):
        root = _root(byte, chance, carries)
        number, members = number_of(root, recording, stats, carries, kind in COUNTED)
        if used & {*members}:
            continue
        sure = float(chance[members].max())
        if len(members) > 1 and kind == "score":
            sure = (1 - (1 - sure) * CARRIED_DOUBT) * never_falls(recording, number, members)
        if sure < LEAST:
            continue
        copies = [other for column, other in enumerate(order) if like[row, column] and other not in members]
        used |= {*members, *copies}
        evidence = evidence_of(kind, byte, stats, causes, recording.values.shape[1])
        aliases = tuple(recording.where[i] for i in copies)
        yield Candidate(kind, kind, number, sure, evidence, aliases, _moments(recording, byte))


def never_falls(recording: Recording, number: Number, members: list[int]) -> float:
    """1 for a number of several bytes that falls only to what it was at the start, or to 0; 0 from one fall in ten."""
    base, zero = BASES[number.read], number.zero
    value = torch.zeros(recording.valid.shape, dtype=torch.int64, device=recording.values.device)
    for power, byte in enumerate(members):
        part = recording.values[:, :, byte].long() - zero
        value += (part - (part >> 4) * 6 if number.read == "bcd" else part) * base**power
    step, after = (value[1:] - value[:-1]), value[1:]
    rises = (step > 0) & recording.valid[1:]
    falls = (step < 0) & recording.valid[1:] & (after != 0) & (after != value[0, 0])
    share = float(falls.sum()) / max(1.0, float((rises | falls).sum()))
    leap = float((rises & (step > base)).sum()) / max(1.0, float(rises.sum()))  # random bytes rise by more than a byte
    return max(0.0, 1 - 10 * share) * max(0.0, 1 - leap)


def _root(byte: int, chance: torch.Tensor, carries: Carries) -> int:
    """The lowest byte of the number that a byte belongs to, as far down as bytes are likely ones, too."""
    for _ in range(MOST_BYTES):
        below = ((carries.into == byte) & (chance > 0.2 * chance[byte])).nonzero()[:, 0].tolist()
        if not below:
            return byte
        byte = max(below, key=lambda i: float(chance[i]))
    return byte


def _alike(recording: Recording, order: list[int]) -> torch.Tensor:
    """(bytes, bytes) true for bytes whose changes go together."""
    values = recording.values[:, :, order]
    before, after = values[:-1][recording.valid[1:]], values[1:][recording.valid[1:]]
    step = wrapped(after.short() - before.short())
    some = (step != 0).any(1).nonzero()[:, 0]
    some = some[torch.linspace(0, max(0, len(some) - 1), min(SAMPLES, len(some)), device=some.device).long()]
    part = step[some].float()
    scale = part.square().sum(0).sqrt().clamp(min=1e-6)
    by_size = (part.T @ part) / (scale[:, None] * scale)
    moves = (part != 0).float()
    number = moves.sum(0).sqrt().clamp(min=1e-6)
    by_time = (moves.T @ moves) / (number[:, None] * number)
    return (by_size.abs() > ALIKE) | (by_time > ALIKE)


def _moments(recording: Recording, byte: int) -> tuple[tuple[int, int], ...]:
    """Looks and witnesses at which a byte changed, spread over time."""
    values = recording.values[:, recording.witnesses, byte]
    changed = (values[1:] != values[:-1]) & recording.valid[1:, recording.witnesses]
    found = changed.nonzero()
    if not len(found):
        return ()
    some = torch.linspace(0, len(found) - 1, min(MOMENTS, len(found)), device=found.device).long()
    return tuple((look + 1, witness) for look, witness in found[some].tolist())
