"""Registers, memory, save RAM and serial output of single envs, from the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.probes.until import ByteTest, Until
from gbxcule_puffer.emulator.saves.pyboy_state import cartridge_ram
from gbxcule_puffer.emulator.saves.state_files import save_ram_banks
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX, first_fault, part_of, row_size
from gbxcule_puffer.errors import ConfigError


class HostAccess:
    """The part of Emulator that reads and writes single envs; each call copies from or to the device."""

    cartridge: Cartridge
    num_envs: int
    device: str
    _state: torch.Tensor
    _memory: torch.Tensor
    save: Callable[[], Snapshot]
    _until: Until

    @property
    def until(self) -> tuple[ByteTest, ...]:
        """The tests that end a step early (`end_steps_when`)."""
        return self._until.tests

    def _part(self, env: int | None) -> slice:
        return part_of(env, self.num_envs)

    def registers(self, env: int = 0) -> dict[str, int]:
        """All scalar state fields of one env by name (state.py)."""
        column = self._state[:, self._part(env)].cpu().numpy()[:, 0]
        return {name: int(column[index]) for name, index in INDEX.items() if index < len(column)}

    def set_registers(self, env: int = 0, **values: int) -> None:
        """Set scalar state fields of one env by name.

        Raises: ConfigError for an unknown name or an impossible value (docs/state.md); then nothing is changed.
        """
        state = self._state[:, self._part(env)].cpu().numpy().copy()
        for name, value in values.items():
            if INDEX.get(name, len(state)) >= len(state) or not -(2**31) <= value < 2**31:
                raise ConfigError(f"{name} {value}: there is no such field or value (docs/state.md)")
            state[INDEX[name]] = value
        if fault := first_fault(state, self.cartridge):
            raise ConfigError(f"{fault}, which no Game Boy has there (docs/state.md)")
        self._state[:, self._part(env)] = torch.from_numpy(state).to(self.device)

    def read_memory(self, env: int, address: int, length: int, bank: int | None = None) -> np.ndarray:
        """`length` bytes from `address` as the CPU's bus shows them, or from a bank of ROM or cartridge RAM; no side
        effects, uint8. IO registers read 0 here; use `registers`.

        Raises: ConfigError for an address or bank that does not exist.
        """
        row = self._memory[self._part(env)].cpu().numpy()[0]
        return address_space.read(self.cartridge, self.registers(env), row, address, length, bank)

    def save_ram(self, env: int = 0) -> bytes:
        """All banks of one env's cartridge RAM: the content of a .sav or .ram file."""
        return cartridge_ram(self._memory[self._part(env)].cpu().numpy()[0], self.cartridge).tobytes()

    def load_ram(self, data: bytes, env: int | None = None) -> None:
        """Write the content of a .sav or .ram file into the cartridge of one env, or of all, while the game runs.

        Raises: StateError if it does not fit the cartridge; then nothing is changed.
        """
        self._write_banks(save_ram_banks(data, self.cartridge), self._part(env))

    def _write_banks(self, banks: np.ndarray, part: slice) -> None:
        """Store all banks of cartridge RAM in some envs."""
        values = torch.from_numpy(banks).to(self.device)
        self._memory[part, hw.CART_RAM - hw.ROW_BASE : hw.WRAM - hw.ROW_BASE] = values[: hw.RAM_BANK_SIZE]
        self._memory[part, hw.ROW_SIZE : row_size(self.cartridge.ram_banks)] = values[hw.RAM_BANK_SIZE :]

    def write_memory(self, env: int, address: int, data: bytes, bank: int | None = None) -> None:
        """Write bytes to VRAM, cartridge RAM, WRAM, OAM or HRAM of one env, regardless of locks. Cartridge RAM: in a
        bank, or in the selected one.

        Raises: ConfigError if the range is not RAM or spans several areas, or the bank does not exist; then nothing is
        changed.
        """
        offsets, values = address_space.write(self.cartridge, self.registers(env), address, data, bank)
        self._memory[env, torch.from_numpy(offsets).to(self.device)] = torch.from_numpy(values).to(self.device)

    def read_serial(self, env: int = 0) -> bytes:
        """The last 1,024 bytes that the game wrote to the serial port."""
        count = self.registers(env)["serial_count"]
        ring = self._memory[env, hw.SERIAL_BUFFER : hw.SERIAL_BUFFER + hw.SERIAL_BUFFER_SIZE].cpu().numpy()
        start = max(0, count - hw.SERIAL_BUFFER_SIZE)
        return bytes(ring[index % hw.SERIAL_BUFFER_SIZE] for index in range(start, count))

    def state_hash(self) -> np.ndarray:
        """A hash of registers, memory and picture of each env, shape (num_envs,), uint64."""
        return self.save().hashes()
