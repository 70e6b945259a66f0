"""ROM images made for one test."""

from __future__ import annotations

from pathlib import Path


def tiny_rom(path: Path, code: bytes, cartridge_type: int = 0) -> str:
    """A ROM file of 32 KiB that runs `code` at 0150; returns its path."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])  # nop; jp 0150
    rom[0x147] = cartridge_type
    rom[0x150 : 0x150 + len(code)] = code
    rom[0x14D] = -(sum(rom[0x134:0x14D]) + 25) & 0xFF
    path.write_bytes(rom)
    return str(path)
