"""PyBoy for `puffer verify`: with a time limit for every answer, and a clock that may differ from ours."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType
from typing import Any

import torch

from gbxcule_puffer.apps.watchdog import limit, patience
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import BOOT_FRAMES
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX

CLOCK_FIELDS = ("t_cycles", "seconds", "minutes", "hours", "day_low", "day_high", "day_carry")


class Oracle:
    """One PyBoy. Args: as of PyBoyEmulator."""

    def __init__(self, rom: Cartridge, **options: Any) -> None:
        self._began = time.monotonic()
        with limit(patience(BOOT_FRAMES)):
            self._emulator = PyBoyEmulator(rom, 1, **options)
        self._seconds = patience(self._emulator.frames_per_step)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._emulator.close()

    def load(self, snapshot: Snapshot) -> None:
        """As PyBoyEmulator.load."""
        with limit(self._seconds):
            self._emulator.load(snapshot)

    def step(self, buttons: torch.Tensor) -> None:
        """As PyBoyEmulator.step."""
        with limit(self._seconds):
            self._emulator.step(buttons)

    def save(self) -> Snapshot:
        """As PyBoyEmulator.save."""
        with limit(self._seconds):
            return self._emulator.save(0)

    def host_time(self, expected: Snapshot, found: Snapshot) -> int:
        """T-cycles of host time in PyBoy's clock chip. If a game reads the chip twice within a cycle, PyBoy adds the
        host time that has passed, so two runs of PyBoy differ. 0 unless it is ahead of `found` by that."""
        lead = clock(expected) - clock(found)
        return lead if 0 < lead <= (time.monotonic() - self._began) * hw.CLOCK_HZ else 0


def clock(snapshot: Snapshot) -> int:
    """The count of a single env's clock chip, in T-cycles."""
    fields = {name: snapshot.fields()[f"rtc_{name}"] for name in CLOCK_FIELDS}
    days = fields["day_high"] << 8 | fields["day_low"]
    minutes = (days * 24 + fields["hours"]) * 60 + fields["minutes"]
    return (minutes * 60 + fields["seconds"]) * hw.CLOCK_HZ + fields["t_cycles"]


def with_clock(snapshot: Snapshot, other: Snapshot) -> Snapshot:
    """`snapshot` with the clock of `other`."""
    state = snapshot.state.copy()
    for name in CLOCK_FIELDS:
        state[INDEX[f"rtc_{name}"]] = other.state[INDEX[f"rtc_{name}"]]
    return replace(snapshot, state=state)
