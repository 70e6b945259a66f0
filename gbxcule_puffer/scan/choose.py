"""Candidates from the confidences of bytes: copies become aliases, bytes of one number become that number."""

from __future__ import annotations

import torch

from gbxcule_puffer.scan.evidence import evidence_of
from gbxcule_puffer.scan.numbers import Carries, number_of
from gbxcule_puffer.scan.pokes import Causes
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.scan.result import KINDS, Candidate
from gbxcule_puffer.scan.statistics import wrapped

LEAST, MOST, LOOKED_AT = 0.08, 5, 32  # confidence and number of the candidates of a kind; bytes that are compared
SAMPLES = 60_000  # transitions that are compared
ALIKE = 0.9  # correlation of the changes of copies
MOMENTS = 6


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
        chance = chances[kind]
        order = [int(i) for i in chance.argsort(descending=True)[:LOOKED_AT] if chance[i] >= LEAST]
        like = _alike(recording, order)
        used: set[int] = set()
        for place, byte in enumerate(order):
            if byte in used or sum(each.kind == kind for each in found) == MOST:
                continue
            number, members = number_of(byte, recording, stats, carries)
            copies = [other for row, other in enumerate(order) if like[place, row] and other not in members]
            used |= {*members, *copies}
            index = sum(each.kind == kind for each in found)
            found.append(
                Candidate(
                    kind, kind if index == 0 else f"{kind}{index + 1}", number, float(chance[byte]),
                    evidence_of(kind, byte, stats, causes, len(recording.values[0])),
                    tuple(recording.where[i] for i in copies), _moments(recording, byte),
                )
            )  # fmt: skip
    return found


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
