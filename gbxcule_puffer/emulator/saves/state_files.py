"""Machine state from and to files of both kinds, and the cartridge's save RAM."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.saves import pyboy_state
from gbxcule_puffer.emulator.snapshot import MAGIC, MAX_ENV_SIZE, Snapshot, power_on
from gbxcule_puffer.emulator.state import row_size
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, StrPath, read_bytes, write_bytes

STATE_FILE = Kind("state", StateError, "give a .state file")
RAM_FILE = Kind("save RAM", StateError, "give this game's .sav file")
MAX_START_ENVS = 1024  # envs in a file of start states
LARGEST_RAM_FILE = 2**20  # bytes: 16 banks have 2**17, flash carts pad
STATE_FILES, RAM_FILES = (".state",), (".sav", ".srm", ".ram")


def load_state_file(path: StrPath, cartridge: Cartridge) -> Snapshot:
    """The state in a snapshot file (Snapshot.to_file) or a PyBoy .state file, distinguished by their first bytes; for a
    .sav file, the machine at power-on with that save RAM.

    Raises: StateError if it cannot be read, is damaged, or is of another format version or ROM.
    """
    if Path(path).suffix.lower() in RAM_FILES:
        return _switched_on(path, cartridge)
    data = read_bytes(path, STATE_FILE, MAX_START_ENVS * MAX_ENV_SIZE)
    if not data.startswith(MAGIC[:8]):
        return pyboy_state.from_bytes(data, cartridge, f"state {path}")
    snapshot = Snapshot.from_file(path, MAX_START_ENVS)
    if snapshot.rom_sha256 != cartridge.sha256:
        raise StateError(
            f"state {path}: was saved with another ROM, {snapshot.rom_sha256[:12]}..., not with "
            f"{cartridge.sha256[:12]}... ({cartridge.title}); make it again with `puffer stage`"
        )
    snapshot = replace(snapshot, source=f"state {path}")
    snapshot.check(cartridge)
    return snapshot


def start_files(path: StrPath) -> list[StrPath]:
    """The states and save RAM in a folder, sorted by name; or a single file.

    Raises: StateError for a folder without any.
    """
    if not os.path.isdir(path):
        return [path]
    found = sorted(each for each in Path(path).iterdir() if each.suffix.lower() in STATE_FILES + RAM_FILES)
    if not found:
        raise StateError(f"folder {path} has no start states: give one with .state or .sav files")
    return [*found]


def _switched_on(path: StrPath, cartridge: Cartridge) -> Snapshot:
    """The machine at power-on with the save RAM of a file."""
    source = f"save RAM {path}"
    snapshot = replace(power_on(cartridge), source=source)
    banks = save_ram_banks(read_bytes(path, RAM_FILE, LARGEST_RAM_FILE), cartridge, source)
    row = snapshot.memory[0]
    if len(banks):
        row[hw.CART_RAM - hw.ROW_BASE :][: hw.RAM_BANK_SIZE] = banks[: hw.RAM_BANK_SIZE]
        row[hw.ROW_SIZE : row_size(cartridge.ram_banks)] = banks[hw.RAM_BANK_SIZE :]
    return snapshot


def write_pyboy_state(path: StrPath, snapshot: Snapshot, cartridge: Cartridge, env: int = 0) -> None:
    """One env as a PyBoy .state file of version 29; the file is written completely or not at all.

    Raises: StateError if PyBoy's format cannot store it.
    """
    write_bytes(path, pyboy_state.to_bytes(snapshot, cartridge, env))


def save_ram_banks(data: bytes, cartridge: Cartridge, source: str = "the save RAM") -> np.ndarray:
    """All banks of cartridge RAM from a .sav or .ram file, shape (8192 * banks,), uint8.

    The file may have only MBC2's 512 half bytes, or the 2 KiB of RAM size code 1. Of a longer file the first bytes
    count, as PyBoy reads them: flash carts pad, and other emulators append the clock (44 or 48 bytes).
    Raises: StateError, which calls the file `source`, if it is shorter.
    """
    size = cartridge.ram_banks * hw.RAM_BANK_SIZE
    found = min(len(data), size)
    if found not in cartridge.ram_file_sizes:
        owner = cartridge.title or "this cartridge"
        raise StateError(f"{source} has {len(data)} bytes, {owner} has {size}: give this game's")
    banks = np.zeros(size, np.uint8)
    banks[:found] = np.frombuffer(data, np.uint8)[:found]
    return banks
