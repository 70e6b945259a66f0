"""The state in which a cartridge starts, at PC=0100 after the boot ROM."""

from __future__ import annotations

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX, NUM_FIELDS, row_size


def power_on(cartridge: Cartridge, accuracy: str = "pyboy") -> Snapshot:
    """One env at PC=0100, as PyBoy's boot ROM leaves it, or a DMG's (accuracy 'hardware')."""
    fields = dict(hw.POST_BOOT)
    fields |= {"bank1": 1, "ram_enabled": int(cartridge.has_open_ram)}
    fields |= {"ram_offset": hw.CART_RAM - hw.ROW_BASE, "rom_high": (1 % cartridge.rom_banks - 1) * hw.ROM_BANK_SIZE}
    bytes_at = {**hw.POST_BOOT_MAP, **hw.POST_BOOT_HRAM}
    if accuracy == "hardware":
        fields |= hw.HARDWARE_POST_BOOT
        bytes_at |= hw.HARDWARE_POST_BOOT_IO
    state = np.zeros((NUM_FIELDS, 1), np.int32)
    for name, value in fields.items():
        state[INDEX[name]] = value
    row = np.zeros(row_size(cartridge.ram_banks), np.uint8)
    row[0x10 : 0x10 + len(hw.POST_BOOT_TILES)] = np.frombuffer(hw.POST_BOOT_TILES, np.uint8)
    for address, value in bytes_at.items():
        row[address - hw.ROW_BASE] = value
    return Snapshot(cartridge.sha256, state, row[None], _picture()[None], accuracy)


def _picture() -> np.ndarray:
    """What the boot ROM leaves on the screen, shades, shape (144, 160), uint8."""
    picture = np.zeros((hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH), np.uint8)
    for address, tile in hw.POST_BOOT_MAP.items():
        row, column = divmod(address - hw.VRAM - 0x1800, 32)
        planes = np.frombuffer(hw.POST_BOOT_TILES[16 * (tile - 1) :][:16], np.uint8).reshape(8, 2)
        bits = np.unpackbits(planes[:, 0] | planes[:, 1]).reshape(8, 8)
        picture[8 * row :, 8 * column :][:8, :8] = 3 * bits
    return picture
