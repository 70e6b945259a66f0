"""The table of mappers: every cartridge type has one row, and only hw/cartridge/mbc.py tells mappers apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gbxcule_puffer.emulator import load_cartridge, mappers
from gbxcule_puffer.emulator.mappers import MAPPERS
from gbxcule_puffer.errors import RomError
from tests.fuzz.generator import LOGO, header

PACKAGE = Path(mappers.__file__).parents[1]
# Pan Docs, "The Cartridge Header", 0147h, and what PyBoy 2.8.1 makes of it
TYPES = {
    "none": (0x00, 0x08, 0x09), "MBC1": (0x01, 0x02, 0x03), "MBC2": (0x05, 0x06),
    "MBC3": (0x0F, 0x10, 0x11, 0x12, 0x13), "MBC5": (0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E),
}  # fmt: skip


def image(cartridge_type: int, banks: int = 2, ram_code: int = 0) -> bytearray:
    rom = bytearray(banks * 0x4000)
    header(rom, cartridge_type, ram_code)
    return rom


def test_each_type_has_its_mapper() -> None:
    names = {kind: name for name, kinds in TYPES.items() for kind in kinds}
    for kind in range(0x100):
        if kind in names:
            assert load_cartridge(bytes(image(kind))).mapper.name == names[kind]
        else:
            message = rf"type {kind:02X} is not supported: .* \(none, MBC1, MBC2, MBC3, MBC5\)"
            with pytest.raises(RomError, match=message):
                load_cartridge(bytes(image(kind)))


def test_what_else_a_type_says() -> None:
    features = {kind: load_cartridge(bytes(image(kind))) for kinds in TYPES.values() for kind in kinds}
    assert [kind for kind, found in features.items() if found.has_rtc] == [0x0F, 0x10]
    assert [kind for kind, found in features.items() if found.has_open_ram] == [0x08, 0x09]
    assert [kind for kind, found in features.items() if found.has_rumble] == [0x1C, 0x1D, 0x1E]


def test_larger_chips_of_the_same_types() -> None:
    assert load_cartridge(bytes(image(0x13, 128, 3))).mapper.name == "MBC3"
    assert load_cartridge(bytes(image(0x13, 256, 3))).mapper.name == "MBC30"
    assert load_cartridge(bytes(image(0x13, 4, 5))).mapper.name == "MBC30"
    rom = image(0x01, 64)
    assert load_cartridge(bytes(rom)).mapper.name == "MBC1"
    for start in range(0, len(rom), 0x4000):
        rom[start + 0x104 : start + 0x134] = LOGO
    assert load_cartridge(bytes(rom)).mapper.name == "MBC1 multicart"
    rom[63 * 0x4000 + 0x104] ^= 1
    assert load_cartridge(bytes(rom)).mapper.name == "MBC1"


def test_save_files_of_less_than_all_banks() -> None:
    assert load_cartridge(bytes(image(0x06))).ram_file_sizes == (0x2000, 512)
    assert load_cartridge(bytes(image(0x1B, 2, 1))).ram_file_sizes == (0x2000, 2048)
    assert load_cartridge(bytes(image(0x1B, 2, 3))).ram_file_sizes == (0x8000,)


def test_numbers_are_named_in_one_file() -> None:
    numbers = [row.number for row in MAPPERS]
    assert sorted(numbers) == list(range(len(MAPPERS)))
    names = {name for name, value in vars(mappers).items() if isinstance(value, int)}
    assert len(names) == len(MAPPERS)
    users = set()
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text if "mappers" in text else "")):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mappers":
                users |= {path.name} if node.attr in names else set()
            if isinstance(node, ast.ImportFrom) and node.module == "gbxcule_puffer.emulator.mappers":
                assert not names & {alias.name for alias in node.names}, path
    assert users == {"mbc.py"}
