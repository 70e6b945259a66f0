"""Cartridge header: mapper, ROM and RAM sizes, title, checksum, with a clear error for each thing that can be wrong."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.errors import RomError
from gbxcule_puffer.files import Kind, read_bytes

MIN_ROM_SIZE = 2 * hw.ROM_BANK_SIZE
MAX_ROM_SIZE = 512 * hw.ROM_BANK_SIZE
ROM_FILE = Kind("ROM", RomError, "give the path of a .gb file")

# Cartridge type 0147h -> (mapper, RAM readable at the start, real-time clock). Pan Docs, "The Cartridge Header".
CARTRIDGE_TYPES = {
    0x00: (hw.MAPPER_NONE, False, False),
    0x01: (hw.MAPPER_MBC1, False, False),
    0x02: (hw.MAPPER_MBC1, False, False),
    0x03: (hw.MAPPER_MBC1, False, False),
    0x05: (hw.MAPPER_MBC2, False, False),
    0x06: (hw.MAPPER_MBC2, False, False),
    0x08: (hw.MAPPER_NONE, True, False),
    0x09: (hw.MAPPER_NONE, True, False),
    0x0F: (hw.MAPPER_MBC3, False, True),
    0x10: (hw.MAPPER_MBC3, False, True),
    0x11: (hw.MAPPER_MBC3, False, False),
    0x12: (hw.MAPPER_MBC3, False, False),
    0x13: (hw.MAPPER_MBC3, False, False),
    0x19: (hw.MAPPER_MBC5, False, False),
    0x1A: (hw.MAPPER_MBC5, False, False),
    0x1B: (hw.MAPPER_MBC5, False, False),
    0x1C: (hw.MAPPER_MBC5, False, False),
    0x1D: (hw.MAPPER_MBC5, False, False),
    0x1E: (hw.MAPPER_MBC5, False, False),
}
# RAM size 0149h -> 8 KiB banks. Codes 0 and 1 get a whole bank as well, as in PyBoy.
RAM_BANKS = {0: 1, 1: 1, 2: 1, 3: 4, 4: 16, 5: 8}
MAPPER_NAMES = {
    hw.MAPPER_NONE: "none", hw.MAPPER_MBC1: "MBC1", hw.MAPPER_MBC2: "MBC2", hw.MAPPER_MBC3: "MBC3",
    hw.MAPPER_MBC30: "MBC30", hw.MAPPER_MBC5: "MBC5", hw.MAPPER_MBC1_MULTICART: "MBC1 multicart",
}  # fmt: skip


@dataclass(frozen=True)
class Cartridge:
    """A parsed ROM image; `data` is the image itself, sizes count banks of 16 KiB (ROM) and 8 KiB (RAM)."""

    data: bytes
    title: str
    mapper: int
    ram_enabled_at_start: bool
    has_rtc: bool
    rom_banks: int
    ram_banks: int
    sha256: str

    @property
    def mapper_name(self) -> str:
        """The mapper in words."""
        return MAPPER_NAMES[self.mapper]


def load_cartridge(rom: bytes | str | os.PathLike[str]) -> Cartridge:
    """Read and check a ROM image, given as bytes or as a path.

    Raises: RomError where the file is missing, truncated, oversized, damaged or needs an unsupported mapper.
    """
    if isinstance(rom, bytes | bytearray):
        name, data = "ROM", bytes(rom)
    else:
        name, data = os.fspath(rom), read_bytes(rom, ROM_FILE, MAX_ROM_SIZE)
    _check_size(name, data)
    checksum = 0
    for byte in data[0x134:0x14D]:
        checksum = (checksum - byte - 1) & 0xFF
    if checksum != data[0x14D]:
        raise RomError(
            f"{name}: header checksum is {data[0x14D]:02X}, should be {checksum:02X}; the image is damaged or not a "
            "Game Boy ROM (if it runs elsewhere, `rgbfix -f h` mends the header)"
        )
    kind = data[0x147]
    if kind not in CARTRIDGE_TYPES:
        supported = "none, MBC1, MBC2, MBC3 and MBC5"
        raise RomError(f"{name}: cartridge type {kind:02X} is not supported (supported mappers: {supported})")
    mapper, ram_enabled, has_rtc = CARTRIDGE_TYPES[kind]
    if data[0x149] not in RAM_BANKS:
        raise RomError(f"{name}: RAM size code {data[0x149]:02X} in the header is not defined (00 to 05 are)")
    rom_banks, ram_banks = len(data) // hw.ROM_BANK_SIZE, RAM_BANKS[data[0x149]]
    if mapper == hw.MAPPER_MBC3 and (ram_banks > 4 or rom_banks > 128):
        mapper = hw.MAPPER_MBC30
    if mapper == hw.MAPPER_MBC1 and _is_multicart(data, rom_banks):
        mapper = hw.MAPPER_MBC1_MULTICART
    end = 0x142 if data[0x143] & 0x80 else 0x143
    title = data[0x134:end].split(b"\0")[0].decode("latin-1").strip()
    digest = hashlib.sha256(data).hexdigest()
    return Cartridge(data, title, mapper, ram_enabled, has_rtc, rom_banks, ram_banks, digest)


def _check_size(name: str, data: bytes) -> None:
    """Refuse an image whose length no cartridge has or differs from what its header says is the least."""
    size = len(data)
    if size < MIN_ROM_SIZE:
        raise RomError(f"{name}: {size} bytes is too short for a ROM (at least {MIN_ROM_SIZE}); the file is truncated")
    if size > MAX_ROM_SIZE:
        raise RomError(f"{name}: {size} bytes is larger than any cartridge (at most {MAX_ROM_SIZE})")
    if size % hw.ROM_BANK_SIZE:
        raise RomError(
            f"{name}: {size} bytes is no multiple of the bank size {hw.ROM_BANK_SIZE}; the file is truncated or padded"
        )
    code = data[0x148]
    if code <= 8 and size < MIN_ROM_SIZE << code:
        raise RomError(
            f"{name}: truncated, the header promises {MIN_ROM_SIZE << code} bytes and the file has {size}; get a "
            "complete image"
        )


def _is_multicart(data: bytes, rom_banks: int) -> bool:
    """MBC1 multicarts have 64 banks and the logo in each (mooneye, emulator-only/mbc1/multicart_rom_8Mb)."""
    logo = data[0x104:0x134]
    return rom_banks == 64 and all(data[bank * 0x4000 + 0x104 : bank * 0x4000 + 0x134] == logo for bank in range(64))
