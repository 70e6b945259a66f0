"""Hooks: counts of how often instructions of the ROM began in a step, by env, on the device.

A hooked instruction has a mark in Machine.code, as a loop has (loops/table.py), and its descriptor sends the data path
on a visit. So a hook costs nothing unless it is executed. Loops around it are no longer skipped.
"""

from __future__ import annotations

import numpy as np
import torch

from gbxcule_puffer.device import one_thread
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import fusion
from gbxcule_puffer.emulator.loops.codes import STAT_POLL, stat_polls
from gbxcule_puffer.emulator.loops.find import find_loops
from gbxcule_puffer.emulator.loops.table import FIRST_HOOK, LCD_POLL, LCD_POLL_JUMP, MARK_SHIFT, MOST_HOOKS
from gbxcule_puffer.errors import ConfigError


def rom_index(cartridge: Cartridge, bank: int | None, address: int) -> int:
    """Index in the ROM of an instruction that can be hooked. Below 4000 the bank may be None.

    Raises: ConfigError for code that is not in ROM, without a bank, or at the end of a bank.
    """
    if not 0 <= address < hw.VRAM:
        raise ConfigError(f"hook at {address:04X}: code there is in RAM, which cannot be hooked: give one in ROM")
    if bank is None and address >= hw.ROM_BANK_SIZE:
        raise ConfigError(f"hook at {address:04X}: the address has banks: give one (1 to {cartridge.rom_banks - 1})")
    if not 0 <= (bank or 0) < cartridge.rom_banks:
        raise ConfigError(f"hook at {bank}:{address:04X}: the ROM has banks 0 to {cartridge.rom_banks - 1}")
    if address % hw.ROM_BANK_SIZE >= hw.ROM_BANK_SIZE - 2:
        raise ConfigError(f"hook at {address:04X}: the last two bytes of a bank cannot be hooked: give one before")
    return (bank or 0) * hw.ROM_BANK_SIZE + address % hw.ROM_BANK_SIZE


class Hooks:
    """The hooks of an emulator, at most MOST_HOOKS. counts: executions in the last step, (hooks, num_envs) int32, with
    all MOST_HOOKS rows once there is a hook.

    Args: words, descriptors: Machine's `code` and `descriptors` (None without a data path); both are marked in place.
    """

    def __init__(
        self, cartridge: Cartridge, num_envs: int, words: torch.Tensor, descriptors: torch.Tensor | None
    ) -> None:
        self.cartridge, self.num_envs = cartridge, num_envs
        self.counts = torch.zeros((0, num_envs), dtype=torch.int32, device=words.device)
        self._words, self._descriptors = words, descriptors
        self._numbers: dict[int, int] = {}

    def add(self, bank: int | None, address: int) -> None:
        """Counts the instruction from the next step on; no effect if it is already counted.

        Raises: ConfigError as in rom_index, and if there are too many hooks.
        """
        index = rom_index(self.cartridge, bank, address)
        if index in self._numbers:
            return
        number = len(self._numbers)
        if number == MOST_HOOKS:
            raise ConfigError(f"hook at {address:04X}: there are {MOST_HOOKS} already, and no more can be counted")
        if not number:
            shape = (MOST_HOOKS, self.num_envs)
            self.counts = torch.zeros(shape, dtype=torch.int32, device=self._words.device)
        loops = {
            loop.begin for loop in find_loops(self.cartridge.data, self.cartridge.sound) if index in loop.instructions
        }
        loops -= set(self._numbers)
        self._mark_words(index, number, loops)
        if self._descriptors is not None:
            polls = set(stat_polls(self.cartridge.data, max(0, index - LCD_POLL_JUMP), index + len(STAT_POLL)))
            self._mark_descriptors(self._descriptors, index, loops | {poll for poll in polls if poll <= index})
        self._numbers[index] = number

    @property
    def indices(self) -> list[int]:
        """The ROM indices of the hooks, in their order."""
        return list(self._numbers)

    def executions(self, bank: int | None, address: int) -> torch.Tensor:
        """Counts of a hooked instruction in the last step, (num_envs,) int32; the next step changes them in place.

        Raises: ConfigError if it is not hooked.
        """
        index = rom_index(self.cartridge, bank, address)
        if index not in self._numbers:
            raise ConfigError(f"{address:04X} of bank {bank or 0} has no hook: set one before the step that it counts")
        return self.counts[self._numbers[index]]

    def clear(self) -> None:
        """Sets all counts to 0."""
        if self._numbers:
            with one_thread(self.counts.device):  # otherwise torch's threads would spin while the Game Boys run
                self.counts[: len(self._numbers)].zero_()

    def _mark_words(self, index: int, number: int, loops: set[int]) -> None:
        """Marks the instruction for the interpreter, which then does not skip the loops around it, nor a loop there
        that may poll the LCD."""
        first = max(0, index - LCD_POLL_JUMP)
        near = self._words[first : index + 1].tolist()
        polls = {first + i for i, word in enumerate(near) if word >> MARK_SHIFT == LCD_POLL}
        for begin in loops | polls:
            self._words[begin] &= 0xFFFFFF
        self._words[index] = near[-1] & 0xFFFFFF | (FIRST_HOOK + number) << MARK_SHIFT

    def _mark_descriptors(self, table: torch.Tensor, index: int, loops: set[int]) -> None:
        """Marks the instruction for the data path as a loop to visit, of which no round is skipped. It is no longer
        part of a group."""
        half = len(table) // 2
        for row in (row for begin in loops for row in self._rows(begin)):
            d0, d1, d2, d3 = table[half + row].tolist()
            if d2 & ds.LOOP:
                table[half + row] = _descriptor(d0, d1, d2 & ~(ds.LOOP | ds.WAIT), d3 & ~ds.RARE)
                table[row] = table[half + row]
        for row in self._rows(index):
            d0, d1, d2, d3 = table[half + row].tolist()
            if d3 & ds.RARE:  # the interpreter executes it, and counts it
                table[half + row] = _descriptor(*ds.rare_words(d2 & ds.HALT))
            else:
                table[half + row] = _descriptor(d0, d1, d2 & ~ds.LOOP | ds.WAIT, d3 | ds.RARE)
            first = max(0, row - fusion.MOST_BYTES)
            table[first : row + 1] = table[half + first : half + row + 1]

    def _rows(self, index: int) -> list[int]:
        """Rows of the data path's table for an index of the ROM: bank 0 has two."""
        bank, offset = divmod(index, hw.ROM_BANK_SIZE)
        return [base * ds.BANK_STRIDE + offset for base in [bank, self.cartridge.rom_banks][: 1 + (bank == 0)]]


def _descriptor(*words: int) -> torch.Tensor:
    """A row of the data path's table, (4,) int32."""
    return torch.from_numpy(np.array(words, np.int64).astype(np.uint32).view(np.int32))
