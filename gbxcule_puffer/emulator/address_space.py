"""An env's memory by address, on the host: the CPU's view of the bus, and the offsets of RAM in the memory row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.state import row_size
from gbxcule_puffer.errors import ConfigError

RTC_REGISTERS = ("seconds", "minutes", "hours", "day_low", "day_high")  # selected by RAM banks 08 to 0C

HALF_BYTES = 512  # of RAM that is not plain memory, mirrored


@dataclass(frozen=True)
class Area:
    """Addresses from `first` to `end`, without the end. `is_ram`: bytes that can be set without side effects."""

    name: str
    first: int
    end: int
    is_ram: bool


AREAS = (
    Area("ROM", 0x0000, 0x4000, False),
    Area("ROM", 0x4000, hw.VRAM, False),
    Area("VRAM", hw.VRAM, hw.CART_RAM, True),
    Area("cartridge RAM", hw.CART_RAM, hw.WRAM, True),
    Area("WRAM", hw.WRAM, hw.ECHO, True),
    Area("the echo of WRAM", hw.ECHO, hw.OAM, True),
    Area("OAM", hw.OAM, hw.OAM_END, True),
    Area("the unused RAM after OAM", hw.OAM_END, hw.IO, True),
    Area("IO registers", hw.IO, hw.HRAM, False),
    Area("HRAM", hw.HRAM, hw.IE, True),
    Area("register IE", hw.IE, hw.IE + 1, False),
)
MIDDLES = {hw.WRAM: hw.BANKED_WRAM, hw.ECHO: hw.BANKED_ECHO}


def _halves(area: Area) -> tuple[Area, ...]:
    """An area of a Game Boy Color, whose WRAM has banks from D000."""
    middle = MIDDLES.get(area.first)
    if middle is None:
        return (area,)
    return Area(area.name, area.first, middle, True), Area(area.name, middle, area.end, True)


COLOR_AREAS = tuple(part for area in AREAS for part in _halves(area))
BANK_FIELDS = {"VRAM": "vram_bank", "WRAM": "wram_bank", "the echo of WRAM": "wram_bank"}


def bus(cartridge: Cartridge, fields: Mapping[str, int], row: np.ndarray) -> np.ndarray:
    """The 64 KiB of the CPU's bus, without side effects and locks, uint8; IO registers (in `fields`) read 0."""
    rom = np.frombuffer(cartridge.data, np.uint8)
    view = np.empty(0x10000, np.uint8)
    view[:0x4000] = rom[fields["rom_low"] :][:0x4000]
    view[0x4000:0x8000] = rom[fields["rom_high"] + 0x4000 :][:0x4000]
    view[0x8000:] = row[: hw.ROW_SIZE]
    view[hw.CART_RAM : hw.WRAM] = _cartridge_space(cartridge, fields, row)
    if cartridge.model == "cgb":
        view[hw.VRAM : hw.CART_RAM] = row[_color_start(cartridge, hw.VRAM, fields["vram_bank"]) :][:0x2000]
        view[hw.BANKED_WRAM : hw.ECHO] = row[_color_start(cartridge, hw.BANKED_WRAM, fields["wram_bank"]) :][:0x1000]
    view[hw.ECHO : hw.OAM] = view[hw.WRAM : 0xDE00]
    view[hw.IE] = fields["interrupt_enable"]
    return view


def _color_start(cartridge: Cartridge, first: int, bank: int) -> int:
    """The offset in a Game Boy Color's memory row of a bank of VRAM, or of WRAM at D000."""
    start = row_size(cartridge.ram_banks)
    if first == hw.VRAM:
        return start if bank else 0
    return start + hw.COLOR_WRAM + (bank - 2) * hw.WRAM_BANK_SIZE if bank > 1 else hw.BANKED_WRAM - hw.ROW_BASE


def _cartridge_space(cartridge: Cartridge, fields: Mapping[str, int], row: np.ndarray) -> np.ndarray | int:
    """A000-BFFF as mbc.read_ram reads it: RAM, an RTC register, or FF if disabled. Python cannot call mbc.read_ram,
    which reads memory by native code."""
    if not fields["ram_enabled"]:
        return 0xFF
    if _shows_rtc(cartridge, fields):
        value = fields[f"rtc_latch_{RTC_REGISTERS[fields['ram_bank'] - 8]}"]
        is_high = fields["ram_bank"] == 0x0C
        return value | (fields["rtc_halt"] << 6 | fields["rtc_day_carry"] << 7 if is_high else 0)
    if fields["ram_offset"] < 0:
        return 0
    return row[_bank_offsets(cartridge, fields["ram_offset"])] | (0 if cartridge.mapper.has_plain_ram else 0xF0)


def _shows_rtc(cartridge: Cartridge, fields: Mapping[str, int]) -> bool:
    """True if A000-BFFF shows a register of the clock (mbc.is_rtc_selected)."""
    return cartridge.has_rtc and 0x08 <= fields["ram_bank"] <= 0x0C


def _bank_offsets(cartridge: Cartridge, offset: int) -> np.ndarray:
    """Offsets in the memory row of the bytes at A000-BFFF, for the bank that begins at `offset`, shape (8192,)."""
    index = np.arange(hw.RAM_BANK_SIZE)
    return offset + (index if cartridge.mapper.has_plain_ram else index % HALF_BYTES)


def read(
    cartridge: Cartridge, fields: Mapping[str, int], row: np.ndarray, address: int, length: int, bank: int | None
) -> np.ndarray:
    """`length` bytes from `address`, uint8: from the bus, or from a bank of ROM or cartridge RAM.

    Raises: ConfigError for addresses and banks that do not exist, and for a range that leaves its bank.
    """
    if not (address >= 0 and length >= 0 and address + length <= 0x10000):
        raise ConfigError(f"addresses {address:04X} to {address + length - 1:04X}: give some between 0000 and FFFF")
    if bank is None:
        return bus(cartridge, fields, row)[address : address + length].copy()
    area = _area(cartridge, address, length)
    _check_bank(cartridge, area, bank)
    if area.name == "ROM":
        start = bank * hw.ROM_BANK_SIZE + address - area.first
        return np.frombuffer(cartridge.data, np.uint8)[start : start + length].copy()
    return row[_ram_offsets(cartridge, fields, address, length, bank)]


def write(
    cartridge: Cartridge, fields: Mapping[str, int], address: int, data: bytes, bank: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets in the memory row and bytes for them, uint8, that write `data` to RAM from `address` on.

    Raises: ConfigError where that is not RAM, the range leaves its area, or the bank does not exist.
    """
    values = np.frombuffer(data, np.uint8).copy()
    if hw.CART_RAM <= address < hw.WRAM and not cartridge.mapper.has_plain_ram:
        if len(values) > HALF_BYTES:
            raise ConfigError(f"{len(values)} bytes from {address:04X}: {cartridge.mapper.name} has {HALF_BYTES}")
        values |= 0xF0
    return _ram_offsets(cartridge, fields, address, len(values), bank), values


def row_offset(cartridge: Cartridge, address: int, length: int, bank: int | None = None) -> int:
    """Offset in the memory row of `length` consecutive bytes of RAM from `address`. Cartridge RAM needs a bank.

    Raises: ConfigError where that is not RAM, the range leaves its area, or the bank does not exist.
    """
    in_cartridge = hw.CART_RAM <= address < hw.WRAM
    if in_cartridge and bank is None:
        banks = f"0 to {cartridge.ram_banks - 1}" if cartridge.ram_banks else "and this cartridge has none"
        raise ConfigError(f"address {address:04X} is cartridge RAM, which has banks: give one ({banks})")
    half = in_cartridge and not cartridge.mapper.has_plain_ram
    if half and address % HALF_BYTES + length > HALF_BYTES:
        raise ConfigError(f"{length} bytes from {address:04X}: {cartridge.mapper.name} has {HALF_BYTES}")
    return int(_ram_offsets(cartridge, {}, address, length, bank)[0])


def _ram_offsets(
    cartridge: Cartridge, fields: Mapping[str, int], address: int, length: int, bank: int | None
) -> np.ndarray:
    """Offsets in the memory row of `length` bytes of RAM from `address`, in a bank or in the selected one.

    Raises: ConfigError where that is not RAM, the range leaves its area, or the bank does not exist.
    """
    area = _area(cartridge, address, length)
    if not area.is_ram:
        raise ConfigError(
            f"address {address:04X} is {area.name}: give one of VRAM, cartridge RAM, WRAM, OAM or HRAM"
            + ("; registers are set by set_registers" if "register" in area.name else "")
        )
    if bank is not None:
        _check_bank(cartridge, area, bank)
    if area.first == hw.CART_RAM:
        offsets = _bank_offsets(cartridge, _bank_start(cartridge, fields, bank))
        return offsets[address - hw.CART_RAM :][:length]
    address -= hw.ECHO - hw.WRAM if area.first in (hw.ECHO, hw.BANKED_ECHO) else 0
    start = address - hw.ROW_BASE
    if cartridge.model == "cgb" and area.name in BANK_FIELDS and area.first != hw.WRAM:
        first = hw.VRAM if address < hw.WRAM else hw.BANKED_WRAM
        selected = fields.get(BANK_FIELDS[area.name], 0) if bank is None else bank
        start = _color_start(cartridge, first, selected) + address - first
    return np.arange(start, start + length)


def _bank_start(cartridge: Cartridge, fields: Mapping[str, int], bank: int | None) -> int:
    """Offset in the memory row of a bank of cartridge RAM, or of the selected one."""
    if bank is not None:
        return hw.CART_RAM - hw.ROW_BASE if bank == 0 else hw.ROW_SIZE + (bank - 1) * hw.RAM_BANK_SIZE
    if _shows_rtc(cartridge, fields) or fields["ram_offset"] < 0:
        raise ConfigError(f"A000-BFFF shows no RAM now (bank {fields['ram_bank']:02X} is selected): give a bank")
    return fields["ram_offset"]


def _area(cartridge: Cartridge, address: int, length: int) -> Area:
    """The area of a range.

    Raises: ConfigError if it is in none, or in several.
    """
    for area in AREAS if cartridge.model == "dmg" else COLOR_AREAS:
        if area.first <= address < area.end:
            if length > area.end - address:
                raise ConfigError(
                    f"{length} bytes from {address:04X} do not fit into {area.name}, which ends at {area.end - 1:04X}: "
                    "give a part at a time"
                )
            return area
    raise ConfigError(f"address {address}: give one from 0000 to FFFF")


def _check_bank(cartridge: Cartridge, area: Area, bank: int) -> None:
    """Raises: ConfigError if an area has no such bank."""
    banks = {"ROM": cartridge.rom_banks, "cartridge RAM": cartridge.ram_banks, "VRAM": 1, "WRAM": 1}.get(area.name, 0)
    if cartridge.model == "cgb" and area.name in BANK_FIELDS:
        banks = {hw.VRAM: 2, hw.BANKED_WRAM: 8}.get(area.first, 1)
    if cartridge.model == "dmg" and bank >= banks and area.name in BANK_FIELDS:
        raise ConfigError(f"bank {bank} of {area.name}: this is a DMG, which has one: give model='cgb', or no bank")
    if not 0 <= bank < banks:
        known = f"0 to {banks - 1}" if banks else "none: leave bank out"
        raise ConfigError(f"bank {bank} of {area.name}: this cartridge has {known}")
