"""Cartridge header: mapper, ROM and RAM sizes, title, checksum; with a clear error for each possible fault."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass, field, replace

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.mappers import MAPPERS, Mapper, find_mapper
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.files import Kind, StrPath, read_bytes
from gbxcule_puffer.layout import find_rom

MIN_ROM_SIZE = 2 * hw.ROM_BANK_SIZE
MAX_ROM_SIZE = 512 * hw.ROM_BANK_SIZE
ROM_FILE = Kind("ROM", RomError, "give the path of a .gb file")

ARCHIVES = {b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar"}
COLOUR_ONLY = 0xC0  # of 0143

HEADERS = ("strict", "pyboy")
MODELS = ("dmg", "cgb", "auto")
LENIENT = " (header='pyboy', --header pyboy, runs it as PyBoy does)"

# RAM size 0149h -> 8 KiB banks. Codes 0 and 1 get a whole bank as well, as in PyBoy.
RAM_BANKS = {0: 1, 1: 1, 2: 1, 3: 4, 4: 16, 5: 8}
SMALL_RAM_CODE, SMALL_RAM_SIZE = 1, 2048


@dataclass(frozen=True)
class Cartridge:
    """A parsed ROM image; `data` is the image itself, sizes count banks of 16 KiB (ROM) and 8 KiB (RAM)."""

    data: bytes
    title: str
    mapper: Mapper
    rom_banks: int
    ram_banks: int
    sha256: str
    model: str = "dmg"
    """The Game Boy that it is put into: 'dmg' or 'cgb'."""
    sound: bool = False
    """True if that Game Boy's sound unit works; False: it is muted, as PyBoy with sound_emulated=False."""
    path: str | None = field(default=None, compare=False)
    """The file of the image, where it was read from one."""

    @property
    def type(self) -> int:
        """The header's cartridge type."""
        return self.data[0x147]

    @property
    def is_for_color(self) -> bool:
        """True if the header names the Game Boy Color, alone or with the DMG."""
        return self.data[0x143] >= 0x80

    @property
    def has_open_ram(self) -> bool:
        """True if the RAM can be read before it is enabled."""
        return self.type in self.mapper.open_ram_types

    @property
    def has_rtc(self) -> bool:
        """True if there is a real-time clock."""
        return self.type in self.mapper.rtc_types

    @property
    def has_rumble(self) -> bool:
        """True if there is a motor."""
        return self.type in self.mapper.rumble_types

    @property
    def ram_file_sizes(self) -> tuple[int, ...]:
        """Sizes that a .sav file may have, in bytes: all banks, or the RAM that really exists if it is less."""
        small = (SMALL_RAM_SIZE,) if self.data[0x149] == SMALL_RAM_CODE else ()
        return (self.ram_banks * hw.RAM_BANK_SIZE, *self.mapper.ram_file_sizes, *small)


Rom = Cartridge | bytes | StrPath


def load_cartridge(rom: Rom, header: str = "strict", model: str | None = None, sound: bool | None = None) -> Cartridge:
    """Read and check a ROM image, given as bytes, a path, or `homeward` (our own game). A Cartridge is returned as it
    is.

    header: 'strict'; or 'pyboy' for images of 16 KiB, which appear at 0000 and at 4000, and for images shorter than
    their header says. model: 'dmg' (default; for a Cartridge its own), 'cgb', or 'auto': the model that PyBoy chooses
    by the header. sound: whether its sound unit works, by default not; for a Cartridge as its own says.
    Raises: RomError if the file is missing, truncated, oversized, damaged or needs an unsupported mapper.
    """
    if header not in HEADERS:
        raise ConfigError(f"header is {header!r}; it must be 'strict' or 'pyboy'")
    if model not in (None, *MODELS):
        raise ConfigError(f"model is {model!r}; it must be 'dmg', 'cgb' or 'auto'")
    if isinstance(rom, Cartridge):
        found = rom if model is None else replace(rom, model=_model_of(model, rom.data))
        return found if sound is None else replace(found, sound=sound)
    if isinstance(rom, bytes | bytearray):
        path, name, data = None, "ROM", bytes(rom)
    elif not isinstance(rom, str | os.PathLike):
        raise RomError(f"rom is {rom!r:.60}; it must be a path, the image's bytes, or a Cartridge")
    else:
        path = name = find_rom(rom)
        data = read_bytes(name, ROM_FILE, MAX_ROM_SIZE)
    if archive := next((kind for start, kind in ARCHIVES.items() if data.startswith(start)), None):
        raise RomError(f"{name}: a {archive} archive, not a ROM: unpack it, and give the .gb file that is in it")
    _check_size(name, data, header)
    checksum = 0
    for byte in data[0x134:0x14D]:
        checksum = (checksum - byte - 1) & 0xFF
    if checksum != data[0x14D]:
        raise RomError(
            f"{name}: header checksum is {data[0x14D]:02X}, should be {checksum:02X}; the image is damaged or not a "
            "Game Boy ROM, and PyBoy refuses it, too (if it runs elsewhere, `rgbfix -f h` repairs the header)"
        )
    if data[0x149] not in RAM_BANKS:
        raise RomError(
            f"{name}: RAM size code {data[0x149]:02X} in the header is not defined (00 to 05 are), and PyBoy "
            "refuses it, too (`rgbfix -f h` repairs the header's checksum after a change)"
        )
    rom_banks, ram_banks = len(data) // hw.ROM_BANK_SIZE, RAM_BANKS[data[0x149]]
    mapper = find_mapper(data, rom_banks, ram_banks)
    if mapper is None:
        supported = ", ".join(row.name for row in MAPPERS if row.is_variant is None)
        raise RomError(
            f"{name}: cartridge type {data[0x147]:02X} is not supported: use a game of another type ({supported})"
        )
    model = _model_of(model or "dmg", data)
    if data[0x143] == COLOUR_ONLY and model == "dmg":
        warnings.warn(
            f"{name}: for the Game Boy Color only, and a DMG may just show a message: give model='cgb' (--model cgb)",
            stacklevel=2,
        )
    end = 0x142 if data[0x143] & 0x80 else 0x143
    title = data[0x134:end].split(b"\0")[0].decode("latin-1").strip()
    digest = hashlib.sha256(data).hexdigest()
    return Cartridge(data, title, mapper, rom_banks, ram_banks, digest, model, bool(sound), path)


def _model_of(model: str, data: bytes) -> str:
    """'dmg' or 'cgb'; 'auto' follows the header."""
    if model == "auto":
        return "cgb" if data[0x143] >= 0x80 else "dmg"
    return model


def _check_size(name: str, data: bytes, header: str) -> None:
    """Refuse an image whose length no cartridge has, or that is shorter than its header says."""
    size, is_strict = len(data), header == "strict"
    if size < (MIN_ROM_SIZE if is_strict else hw.ROM_BANK_SIZE):
        hint = LENIENT if size == hw.ROM_BANK_SIZE else ""
        raise RomError(
            f"{name}: {size} bytes is too short for a ROM (at least {MIN_ROM_SIZE}); the file is truncated: "
            f"get a complete image{hint}"
        )
    if size > MAX_ROM_SIZE:
        raise RomError(
            f"{name}: {size} bytes is larger than any cartridge (at most {MAX_ROM_SIZE}): give a Game Boy ROM"
        )
    if size % hw.ROM_BANK_SIZE:
        raise RomError(
            f"{name}: {size} bytes is not a multiple of the bank size {hw.ROM_BANK_SIZE}; the file is "
            "truncated or padded: get the image as it was released"
        )
    code = data[0x148]
    if is_strict and code <= 8 and size < MIN_ROM_SIZE << code:
        raise RomError(
            f"{name}: truncated, the header promises {MIN_ROM_SIZE << code} bytes and the file has {size}; get a "
            f"complete image{LENIENT}"
        )
