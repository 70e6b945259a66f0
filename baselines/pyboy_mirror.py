"""Memory rows of PyBoys, kept up to date where somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.snapshot import Snapshot

# Ranges of the memory row that PyBoy shows without side effects: with a bank, or as the CPU sees them.
BANKED = ((hw.VRAM, hw.CART_RAM), (hw.CART_RAM, hw.WRAM))
PLAIN = ((hw.WRAM, hw.ECHO), (hw.HRAM, hw.IE))
COLOR_PLAIN = ((hw.WRAM, hw.WRAM + hw.WRAM_BANK_SIZE), (hw.HRAM, hw.IE))  # the rest of WRAM has banks


class PyBoyMirror:
    """A MirrorLike: `memory` (num_envs, row) uint8 has the rows that Emulator.memory has; `rows` is the same as an
    array. A load brings all of a row, a step what is watched. row: bytes of a row; save: the state of one of the
    machines."""

    def __init__(self, machines: Sequence[PyBoyMachine], row: int, save: Callable[[int], Snapshot]) -> None:
        self._machines, self._save = machines, save
        self._plain = PLAIN if machines[0].model == "dmg" else COLOR_PLAIN
        shape = (len(machines), row)
        self.memory = torch.zeros(shape, dtype=torch.uint8)
        self.rows = self.memory.numpy()
        self._watched: set[tuple[int, int]] = set()

    def watch(self, first: int, end: int) -> None:
        """Keeps these places up to date from now on; they lie in one area of memory and one bank."""
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
        """Stores what stands at these places in the PyBoys, where it differs."""
        bank, address = _place(first)
        for env, machine in enumerate(self._machines):
            wanted = self.rows[env, first:end].copy()
            self.read(env, first, end)
            memory: Any = machine.pyboy.memory
            for index in np.flatnonzero(wanted != self.rows[env, first:end]).tolist():
                # VRAM through the bus, since PyBoy keeps decoded tiles.
                is_banked = bank is not None and address >= hw.CART_RAM
                if machine.model == "cgb" and hw.WRAM + hw.WRAM_BANK_SIZE <= address < hw.ECHO:
                    is_banked, bank = True, 1
                memory[(bank, address + index) if is_banked else address + index] = int(wanted[index])
            self.rows[env, first:end] = wanted

    def read(self, env: int, first: int, end: int) -> np.ndarray:
        """The memory row of one env, with these places as they are now."""
        bank, address = _place(first)
        last, memory = address + end - first - 1, self._machines[env].pyboy.memory
        if bank is not None:
            # PyBoy refuses ranges that end where the bank does.
            if end - first > 1:
                self.rows[env, first : end - 1] = memory[bank, address:last]
            self.rows[env, end - 1] = memory[bank, last]
        elif any(begin <= address < stop for begin, stop in self._plain):
            self.rows[env, first:end] = memory[address : last + 1]
        else:  # OAM, which a look through the bus may change while a DMA is under way
            self.rows[env, first:end] = self._save(env).memory[0, first:end]
        return self.rows[env]


def _place(first: int) -> tuple[int | None, int]:
    """(bank, address) of a place in the memory row; the bank is None where the CPU's bus shows it."""
    if first >= hw.ROW_SIZE:
        bank, offset = divmod(first - hw.ROW_SIZE, hw.RAM_BANK_SIZE)
        return bank + 1, hw.CART_RAM + offset
    address = first + hw.ROW_BASE
    return (0 if any(begin <= address < stop for begin, stop in BANKED) else None), address
