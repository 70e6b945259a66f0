"""PyBoy as the oracle: registers, memory and picture of a machine, read out so that two can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.references import HRAM, KINDS, WRAM, GameReference
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine

# PyBoy's save state, version 29, as core/mb.py save_state writes it for a DMG: reading it has no side effects, while a
# bus read of OAM or STAT through pyboy.memory can move the machine.
STATE_VERSION = 29
CPU_AT = 6
OAM_DMA_AT = CPU_AT + 27
VRAM_AT = OAM_DMA_AT + 12
OAM_AT = VRAM_AT + 0x2000
LCD_REGISTERS_AT = OAM_AT + 0xA0
LCD_REGISTERS = (0xFF40, 0xFF47, 0xFF48, 0xFF49, 0xFF41, 0xFF44, 0xFF45, 0xFF42, 0xFF43, 0xFF4A, 0xFF4B)

CART_RAM = (0xA000, 0x2000)
PURE_IO = (0xFF00, 0xFF01, 0xFF02, 0xFF04, 0xFF05, 0xFF06, 0xFF07, 0xFF0F, 0xFFFF)


@dataclass
class MachineView:
    """What two machines are compared by."""

    registers: dict[str, int]
    memory: dict[str, tuple[int, np.ndarray]]
    """Region name to (first address, bytes uint8)."""
    io: dict[int, int]
    """IO register address to the value that a read gives."""
    picture: np.ndarray | None
    """Shades 0..3, shape (144, 160), uint8."""


class PyBoyOracle(PyBoyMachine):
    """PyBoy with everything visible read out, without disturbing it."""

    def registers(self) -> dict[str, int]:
        """The CPU registers and the interrupt state."""
        return _cpu_registers(self._state(OAM_DMA_AT))

    def cpu(self) -> dict[str, int]:
        """The CPU's registers of 8 and 16 bits, a hundred times as fast as PyBoy's whole state."""
        file = self.pyboy.register_file
        registers = {name: int(getattr(file, name.upper())) for name in "afbcde"}
        return registers | {"h": file.HL >> 8, "l": file.HL & 0xFF, "sp": int(file.SP), "pc": int(file.PC)}

    def memory(self, address: int, length: int) -> np.ndarray:
        """Bytes of RAM that a bus read does not disturb: not OAM, not the LCD registers."""
        return np.array(self.pyboy.memory[address : address + length], dtype=np.uint8)

    def view(self) -> MachineView:
        """Everything that lockstep compares, read without disturbing the machine."""
        state = self._state(LCD_REGISTERS_AT + len(LCD_REGISTERS))
        io_values = dict(zip(LCD_REGISTERS, state[LCD_REGISTERS_AT:], strict=False))
        memory = {
            "VRAM": (0x8000, np.frombuffer(state, np.uint8, 0x2000, VRAM_AT)),
            "cartridge RAM": (CART_RAM[0], self.memory(*CART_RAM)),
            "WRAM": (WRAM[0], self.memory(*WRAM)),
            "OAM": (0xFE00, np.frombuffer(state, np.uint8, 0xA0, OAM_AT)),
            "HRAM": (HRAM[0], self.memory(*HRAM)),
        }
        io_values |= {address: int(self.pyboy.memory[address]) for address in PURE_IO}
        return MachineView(_cpu_registers(state), memory, io_values, self.picture())

    def _state(self, size: int | None = None) -> bytes:
        """PyBoy's state, or its first `size` bytes."""
        state = self.state() if size is None else self.begin_of_state(size)
        if state[0] != STATE_VERSION:
            raise RuntimeError(
                f"PyBoy writes save states of version {state[0]}, not {STATE_VERSION}: install PyBoy 2.8.1"
            )
        return state


def _cpu_registers(state: bytes) -> dict[str, int]:
    cpu = state[CPU_AT:OAM_DMA_AT]
    word = [int.from_bytes(cpu[at : at + 2], "little") for at in (6, 8, 10)]
    return {
        **dict(zip("afbcde", cpu[:6], strict=True)),
        "h": word[0] >> 8,
        "l": word[0] & 0xFF,
        "sp": word[1],
        "pc": word[2],
        "ime": cpu[12],
        "halted": cpu[14],
    }


def differing_steps(reference: GameReference, found: list[dict[str, int]]) -> str:
    """One line for each kind of hash that differs, with the first step and how many; empty where all agree."""
    assert len(found) == len(reference.buttons)
    lines = []
    for kind in KINDS:
        steps = [t for t, hashes in enumerate(found) if hashes[kind] != int(reference.hashes[kind][t])]
        if steps:
            lines.append(f"{kind}: {len(steps)} of {len(found)} steps differ, first step {steps[0]}, all {steps}")
    return "\n".join(lines)
