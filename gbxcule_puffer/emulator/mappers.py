"""The mappers (bank controllers), one row each. Only their device code, hw/cartridge/mbc.py, distinguishes them;
everything else uses the row. Pan Docs, "MBCs"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Numbers in Machine.mapper, by which the kernels distinguish them
NONE, MBC1, MBC2, MBC3, MBC30, MBC5, MBC1_MULTICART = range(7)


@dataclass(frozen=True)
class Mapper:
    """A mapper, as files and kernels see it; types are those of the header, 0147h."""

    name: str
    number: int
    types: tuple[int, ...]
    open_ram_types: tuple[int, ...] = ()  # RAM can be read before it is enabled
    rtc_types: tuple[int, ...] = ()  # a real-time clock
    rumble_types: tuple[int, ...] = ()  # a motor
    is_variant: Callable[[bytes, int, int], bool] | None = None
    """For a chip of the same types as the row above: whether image, ROM banks and RAM banks are of this one."""
    has_plain_ram: bool = True  # a byte for each address of a bank, nothing else
    ram_file_sizes: tuple[int, ...] = ()  # of .sav files, beside all banks
    maps_low_bank: bool = False  # 0000-3FFF may show another bank than 0
    state_registers: str = ""  # contents of PyBoy's states after the RAM (saves/pyboy_layout.py)
    rumble_register: str = ""  # the same, only for rumble_types
    selects_rom_at_once: bool = False  # mbc.select_rom_at_once supports it
    low_bank_bits: int = 0  # bits of the ROM bank in bank1; those of bank2 are above them


def _has_logo_in_each_bank(image: bytes, rom_banks: int, _: int) -> bool:
    """MBC1 multicarts have 64 banks and the logo in each (mooneye, emulator-only/mbc1/multicart_rom_8Mb)."""
    return rom_banks == 64 and all(image[at : at + 48] == image[0x104:0x134] for at in range(0x104, len(image), 0x4000))


def _is_beyond_mbc3(_: bytes, rom_banks: int, ram_banks: int) -> bool:
    """MBC30 has one more bit for both banks."""
    return ram_banks > 4 or rom_banks > 128


MAPPERS = (
    Mapper("none", NONE, (0x00, 0x08, 0x09), open_ram_types=(0x08, 0x09)),
    Mapper(
        "MBC1", MBC1, (0x01, 0x02, 0x03), maps_low_bank=True, state_registers="bank1 bank2", selects_rom_at_once=True,
        low_bank_bits=5,
    ),
    Mapper(
        "MBC1 multicart", MBC1_MULTICART, (0x01, 0x02, 0x03), is_variant=_has_logo_in_each_bank, maps_low_bank=True,
        state_registers="bank1 bank2", low_bank_bits=4,
    ),
    Mapper("MBC2", MBC2, (0x05, 0x06), has_plain_ram=False, ram_file_sizes=(512,)),  # 512 half bytes, mirrored
    Mapper("MBC3", MBC3, (0x0F, 0x10, 0x11, 0x12, 0x13), rtc_types=(0x0F, 0x10), selects_rom_at_once=True),
    Mapper(
        "MBC30", MBC30, (0x0F, 0x10, 0x11, 0x12, 0x13), rtc_types=(0x0F, 0x10), is_variant=_is_beyond_mbc3,
        selects_rom_at_once=True,
    ),
    Mapper(
        "MBC5", MBC5, (0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E), rumble_types=(0x1C, 0x1D, 0x1E),
        state_registers="rumble_supported", rumble_register="rumble_on", selects_rom_at_once=True,
    ),
)  # fmt: skip


def find_mapper(image: bytes, rom_banks: int, ram_banks: int) -> Mapper | None:
    """The mapper of a cartridge; None for an unknown type."""
    rows = [row for row in MAPPERS if image[0x147] in row.types]
    variants = [row for row in rows if row.is_variant is not None and row.is_variant(image, rom_banks, ram_banks)]
    return next(iter(variants + rows), None)
