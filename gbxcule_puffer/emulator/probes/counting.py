"""An emulator that counts what its kernel does (hw/counters.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.build.variant import Variant
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.emulator.emulator import Emulator
from gbxcule_puffer.emulator.hw import counters


class CountingEmulator(Emulator):
    """An emulator whose slower kernel fills `counts`: int64, shape (counters.ROWS, ROM size + bytes of RAM).

    Args: rom, num_envs, device, and options of Emulator.
    Raises: as Emulator.
    """

    def __init__(self, rom: Rom, num_envs: int = 1, device: str = "cpu", **options: Any) -> None:
        # One thread, since on a CPU Warp's additions are not atomic
        super().__init__(rom, num_envs, device, num_threads=1, **options)

    def _allocate(self) -> None:
        super()._allocate()
        size = len(self.cartridge.data) + hw.ROW_SIZE
        self.counts = torch.zeros((counters.ROWS, size), dtype=torch.int64, device=self.device)
        self._marks = torch.zeros((self.num_envs, counters.MARKS), dtype=torch.int32, device=self.device)
        self.machine.counts, self.machine.marks = wp.from_torch(self.counts), wp.from_torch(self._marks)

    @property
    def _variant(self) -> Variant:
        return replace(super()._variant, counted=True)

    def step(self, buttons: torch.Tensor) -> None:
        """As Emulator.step."""
        self._marks.zero_()
        super().step(buttons)
