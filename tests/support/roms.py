"""ROM images made for one test."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.generator import header


def tiny_rom(path: Path, code: bytes, cartridge_type: int = 0) -> str:
    """A ROM file of 32 KiB that runs `code` at 0150; returns its path."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])  # nop; jp 0150
    rom[0x147] = cartridge_type
    rom[0x150 : 0x150 + len(code)] = code
    rom[0x14D] = -(sum(rom[0x134:0x14D]) + 25) & 0xFF
    path.write_bytes(rom)
    return str(path)


LOOK = "3E 20 E0 00 F0 00 EA 01 C1  3E 10 E0 00 F0 00 EA 02 C1  18 EC"


def joypad_rom(loop: str = LOOK) -> bytes:
    """A game that counts joypad interrupts in C100, and, if it looks, has the directions in C101, the rest in C102."""
    rom = bytearray(0x8000)
    rom[0x60:0x69] = bytes.fromhex("F5 E5 21 00 C1 34 E1 F1 D9")
    rom[0x100:0x104] = bytes.fromhex("00 C3 50 01")
    code = bytes.fromhex("3E 10 E0 FF AF E0 0F EA 00 C1 FB " + loop)
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, 0x00, 0)
    return bytes(rom)
