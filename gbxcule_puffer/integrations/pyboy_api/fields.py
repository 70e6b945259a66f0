"""The state of all machines as tensors, and registers by address."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.registers import REGISTERS
from gbxcule_puffer.emulator.state import INDEX

KEPT = {row.address: row for row in REGISTERS if row.field}


class Fields:
    """The scalar fields of all machines (state.py), as tensors (num_envs,) int32 on the device."""

    def __init__(self, emulator: Emulator) -> None:
        machine: Any = emulator.machine
        self._state = wp.to_torch(machine.state)
        self.is_color = emulator.model == "cgb"

    def __getitem__(self, name: str) -> torch.Tensor:
        """The field itself, which changes as the game continues."""
        return self._state[INDEX[name]]

    def oam_reads(self, values: torch.Tensor) -> torch.Tensor:
        """Bytes of OAM, (num_envs, length), as reads return them: FF during an OAM DMA."""
        copies = (self["dma_active"] != 0) & (self["dma_start"] <= 0)
        return torch.where(copies[:, None], 0xFF, values)

    def register(self, address: int) -> torch.Tensor | None:
        """A register as a read returns it now, (num_envs,) int32; None for one that is not stored."""
        if address == hw.DIV:
            return (-self["div_zero"] >> 8) & 0xFF
        if address == hw.STAT:
            return self["stat"] & torch.where(self["stat_mode_hidden"] != 0, 0xFC, 0xFF)
        row = KEPT.get(address)
        if row is None or (row.model != "dmg" and not self.is_color):
            return None
        value = self[row.field] | row.ones
        return torch.where(self["color_mode"] != 0, value, 0xFF) if row.model == "color" else value
