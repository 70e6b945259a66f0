"""The state of all machines as tensors, and registers by address."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import INDEX

# Registers by address: the field of the state, and the bits that read 1
REGISTERS = {
    hw.P1: ("p1", 0), hw.SC: ("serial_control", 0), hw.TMA: ("tma", 0), hw.TAC: ("tac", 0xF8),
    hw.IF: ("interrupt_flag", 0xE0), hw.LCDC: ("lcdc", 0), hw.SCY: ("scy", 0), hw.SCX: ("scx", 0), hw.LY: ("ly", 0),
    hw.LYC: ("lyc", 0), hw.DMA: ("dma_source", 0), hw.BGP: ("bgp", 0), hw.OBP0: ("obp0", 0), hw.OBP1: ("obp1", 0),
    hw.WY: ("wy", 0), hw.WX: ("wx", 0), hw.IE: ("interrupt_enable", 0),
}  # fmt: skip
# Of a Game Boy Color; the second ones read FF without a cartridge for it
COLOR_REGISTERS = {hw.VBK: ("vram_bank", 0xFE), hw.BCPS: ("bg_index", 0x40), hw.OCPS: ("obj_index", 0x40)}
COLOR_MODE_REGISTERS = {
    hw.KEY1: ("key1", 0), hw.HDMA5: ("hdma5", 0), hw.OPRI: ("object_priority", 0xFE), hw.SVBK: ("wram_bank", 0xF8),
}  # fmt: skip


class Fields:
    """The scalar fields of all machines (state.py), as tensors (num_envs,) int32 on the device."""

    def __init__(self, emulator: Emulator) -> None:
        machine: Any = emulator.machine
        self._state = wp.to_torch(machine.state)
        self.is_color = emulator.model == "cgb"

    def __getitem__(self, name: str) -> torch.Tensor:
        """The field itself, which changes as the game goes on."""
        return self._state[INDEX[name]]

    def oam_reads(self, values: torch.Tensor) -> torch.Tensor:
        """Bytes of OAM, (num_envs, length), as a read gives them: FF while an OAM DMA is under way."""
        copies = (self["dma_active"] != 0) & (self["dma_start"] <= 0)
        return torch.where(copies[:, None], 0xFF, values)

    def register(self, address: int) -> torch.Tensor | None:
        """A register as a read gives it now, (num_envs,) int32; None for one that is not kept."""
        if address == hw.DIV:
            return (-self["div_zero"] >> 8) & 0xFF
        if address == hw.STAT:
            return self["stat"] & torch.where(self["stat_mode_hidden"] != 0, 0xFC, 0xFF)
        if self.is_color and address in COLOR_MODE_REGISTERS:
            name, ones = COLOR_MODE_REGISTERS[address]
            return torch.where(self["color_mode"] != 0, self[name] | ones, 0xFF)
        found = REGISTERS.get(address) or (COLOR_REGISTERS.get(address) if self.is_color else None)
        return None if found is None else self[found[0]] | found[1]
