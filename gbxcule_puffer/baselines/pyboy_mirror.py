"""Memory rows of PyBoys, kept up to date where somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import hardware as hw

# Ranges of the memory row that PyBoy shows without side effects: with a bank, or as the CPU sees them.
BANKED = ((hw.VRAM, hw.CART_RAM), (hw.CART_RAM, hw.WRAM))
PLAIN = ((hw.WRAM, hw.ECHO), (hw.HRAM, hw.IE))


class PyBoyMirror:
    """A MirrorLike: `memory` (num_envs, row) uint8 has the rows that Emulator.memory has; `rows` is the same as an
    array. A load brings all of a row, a step what is watched. row: bytes of a row; color: where in it the banks of a
    Game Boy Color begin, or its end; oam_at: where in PyBoy's states OAM begins."""

    def __init__(self, machines: Sequence[PyBoyMachine], row: int, color: int, oam_at: int) -> None:
        self._machines, self._color, self._oam_at = machines, color, oam_at
        shape = (len(machines), row)
        self.memory = torch.zeros(shape, dtype=torch.uint8)
        self.rows = self.memory.numpy()
        self._watched: set[tuple[int, int]] = set()

    def watch(self, first: int, end: int) -> None:
        """Keeps the bytes at these offsets up to date from now on; they are in one area of memory and one bank."""
        if (first, end) not in self._watched:
            self._watched.add((first, end))
            for env in range(len(self.rows)):
                self.read(env, first, end)

    def update(self) -> None:
        """Reads what is watched."""
        for env in range(len(self.rows)):
            for first, end in self._watched:
                self.read(env, first, end)

    def write_back(self, first: int, end: int) -> None:
        """Writes the bytes at these offsets to the PyBoys, if they differ."""
        bank, address = self._bank_and_address(first)
        is_vram = address < hw.CART_RAM
        has_banks = is_vram and self._machines[0].model == "cgb"
        for env, machine in enumerate(self._machines):
            wanted = self.rows[env, first:end].copy()
            self.read(env, first, end)
            memory: Any = machine.pyboy.memory
            if has_banks:
                selected, memory[hw.VBK] = int(memory[hw.VBK]), bank
            for index in np.flatnonzero(wanted != self.rows[env, first:end]).tolist():
                # VRAM through the bus, since PyBoy keeps decoded tiles.
                is_banked = bank is not None and not is_vram
                memory[(bank, address + index) if is_banked else address + index] = int(wanted[index])
            if has_banks:
                memory[hw.VBK] = selected
            self.rows[env, first:end] = wanted

    def read(self, env: int, first: int, end: int) -> np.ndarray:
        """The memory row of one env, with current bytes at these offsets."""
        bank, address = self._bank_and_address(first)
        last, memory = address + end - first - 1, self._machines[env].pyboy.memory
        if bank is not None:
            # PyBoy refuses ranges that end where the bank does.
            if end - first > 1:
                self.rows[env, first : end - 1] = memory[bank, address:last]
            self.rows[env, end - 1] = memory[bank, last]
        elif any(begin <= address < stop for begin, stop in PLAIN):
            self.rows[env, first:end] = memory[address : last + 1]
        else:  # OAM, which a look through the bus may change while a DMA is under way
            end_at = self._oam_at + last + 1 - hw.OAM
            state = self._machines[env].begin_of_state(end_at)
            self.rows[env, first:end] = np.frombuffer(state, np.uint8)[first - end :]
        return self.rows[env]

    def _bank_and_address(self, first: int) -> tuple[int | None, int]:
        """(bank, address) of an offset in the memory row; the bank is None if the CPU's bus shows it."""
        if first >= self._color + hw.COLOR_WRAM:
            bank, offset = divmod(first - self._color - hw.COLOR_WRAM, hw.WRAM_BANK_SIZE)
            return bank + 2, hw.BANKED_WRAM + offset
        if first >= self._color:
            return 1, hw.VRAM + first - self._color
        if first >= hw.ROW_SIZE:
            bank, offset = divmod(first - hw.ROW_SIZE, hw.RAM_BANK_SIZE)
            return bank + 1, hw.CART_RAM + offset
        address = first + hw.ROW_BASE
        if self._machines[0].model == "cgb" and hw.BANKED_WRAM <= address < hw.ECHO:
            return 1, address
        return (0 if any(begin <= address < stop for begin, stop in BANKED) else None), address
