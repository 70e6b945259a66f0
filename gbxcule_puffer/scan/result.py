"""The result of a scan: candidates for what the bytes of RAM mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.scan.numbers import value_of
from gbxcule_puffer.scan.recording import Recording
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.symbol_writing import save_symbols
from gbxcule_puffer.tasks.ram.view import Where

DRAWN_LOOKS = 2  # until a change is on the screen
NAMED = 0.3  # confidence from which a candidate's name is written
KINDS = {  # in the order of the table; what each is, for people
    "x": "position from left to right",
    "y": "position from top to bottom",
    "map": "map or room",
    "score": "score",
    "lives": "lives or health",
    "timer": "timer",
    "random": "random numbers",
    "menu": "state in which directions do nothing",
    "flags": "bits that are set once",
}


@dataclass(frozen=True)
class Candidate:
    """A number in RAM that behaves like a `kind` of KINDS. confidence: how often such a candidate is right, 0 to 1;
    evidence: why, in words; aliases: locations that change with it; moments: looks and witnesses of the
    recording at which it changed."""

    kind: str
    name: str
    number: Number
    confidence: float
    evidence: str
    aliases: tuple[Where, ...] = ()
    moments: tuple[tuple[int, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        number = self.number
        return {
            "kind": self.kind, "name": self.name, "address": text_of(number.where), "size": number.size,
            "read": number.read, "order": number.order, "confidence": round(self.confidence, 3),
            "evidence": self.evidence, "aliases": [text_of(where) for where in self.aliases],
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Start:
    """A state, and the actions of one step each that lead there from power-on; none if it was given as a state.
    moves: false where scan looked for a state in which directions move something, and found none."""

    state: Snapshot
    actions: tuple[str, ...] | None
    moves: bool = True


@dataclass(frozen=True, eq=False)
class ScanResult:
    """Candidates, best first in each kind, the state that they were measured from, and the recording."""

    start: Start
    candidates: list[Candidate]
    recording: Recording
    facts: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[Candidate]:
        """The candidates of a kind, best first."""
        return [each for each in self.candidates if each.kind == kind]

    def write_symbols(self, path: StrPath, least: float = NAMED) -> list[Candidate]:
        """Writes the names of the candidates with at least that confidence into a .sym file; returns them.

        Raises: as save_symbols.
        """
        named = [each for each in self.candidates if each.confidence >= least]
        notes = {each.name: f"{each.confidence:.0%}, {each.evidence}" for each in named}
        save_symbols(path, {each.name: each.number for each in named}, notes)
        return named

    def strip(self, candidate: Candidate) -> tuple[np.ndarray, list[int | None]] | None:
        """Pictures of moments at which a candidate changed, shades (2 * moments, rows, columns) uint8, those before and
        then those after, and its value in each, None where that is not known; None where no witness saw a change."""
        if not candidate.moments:
            return None
        pictures, witnesses = self.recording.pictures, self.recording.witnesses
        before = [pictures[look - 1, witness] for look, witness in candidate.moments]
        after = [pictures[min(look + DRAWN_LOOKS, len(pictures) - 1), witness] for look, witness in candidate.moments]
        values = [
            value_of(self.recording, candidate.number, look - ago, witnesses[witness])
            for ago in (1, 0)
            for look, witness in candidate.moments
        ]
        return torch.stack([*before, *after]).cpu().numpy(), values

    def as_json(self) -> dict[str, Any]:
        """For scan.json."""
        start = None if self.start.actions is None else list(self.start.actions)
        return {**self.facts, "start_actions": start, "candidates": [each.as_json() for each in self.candidates]}


def text_of(where: Where) -> str:
    """A location as people write it: C0A5, or 01:A000 with a bank."""
    if isinstance(where, tuple):
        return f"{where[0]:02X}:{where[1]:04X}"
    return f"{where:04X}"
