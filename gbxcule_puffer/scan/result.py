"""The result of a scan: candidates for what the bytes of RAM mean."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.tasks.ram.number import Number
from gbxcule_puffer.tasks.ram.view import Where

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
    evidence: why, in words; aliases: locations that change with it; moments: looks and envs at which it changed."""

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


@dataclass(frozen=True)
class Start:
    """A state, and the actions of one step each that lead there from power-on; none if it was given as a state."""

    state: Snapshot
    actions: tuple[str, ...] | None


@dataclass(frozen=True)
class ScanResult:
    """Candidates, best first in each kind, and the state that they were measured from."""

    start: Start
    candidates: list[Candidate]
    facts: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[Candidate]:
        """The candidates of a kind, best first."""
        return [each for each in self.candidates if each.kind == kind]

    def as_json(self) -> str:
        """The result as a JSON text."""
        start = None if self.start.actions is None else list(self.start.actions)
        return json.dumps(
            {**self.facts, "start_actions": start, "candidates": [each.as_json() for each in self.candidates]}, indent=2
        )


def text_of(where: Where) -> str:
    """A location as people write it: C0A5, or 01:A000 with a bank."""
    if isinstance(where, tuple):
        return f"{where[0]:02X}:{where[1]:04X}"
    return f"{where:04X}"
