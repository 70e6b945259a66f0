"""Numbers in RAM on a memory that the test writes: all reads, orders and sizes, by address, symbol and bank."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Number, Numbers, Ram, Symbols
from gbxcule_puffer.tasks.ram.symbols import Location
from tests.support.envs import STAGE

SYMBOLS = Symbols({"wMoney": Location(0, 0xC200), "sSave": Location(0, 0xA010)}, "game.sym")


@pytest.fixture(scope="module")
def ram() -> Ram:
    return Ram(Emulator(STAGE.parent.parent / "homeward.gb", 2), SYMBOLS)


@pytest.mark.parametrize(
    ("fields", "stored", "wanted"),
    [  # stored from C200 on
        ({}, [200], 200),
        ({"mask": 0x0F}, [0xF2], 2),
        ({"size": 2}, [1, 2], 0x201),
        ({"size": 2, "order": "big"}, [1, 2], 0x102),
        ({"size": 7}, [255] * 7, 2**56 - 1),
        ({"read": "signed"}, [0x7F], 127),
        ({"read": "signed"}, [0x80], -128),
        ({"read": "signed", "size": 2}, [0xFE, 0xFF], -2),
        ({"read": "signed", "size": 2, "order": "big"}, [0x80, 1], -0x7FFF),
        ({"read": "signed", "size": 7}, [0] * 6 + [0x80], -(2**55)),
        ({"read": "bcd"}, [0x42], 42),
        ({"read": "count", "size": 3, "every": 2, "of": 7}, [7, 7, 5, 7, 7], 2),
        ({"size": 2, "every": 3}, [1, 9, 9, 2], 513),
        ({"read": "bcd", "size": 3}, [0x56, 0x34, 0x12], 123456),
        ({"read": "bcd", "size": 3, "order": "big"}, [0x12, 0x34, 0x56], 123456),
        ({"read": "bcd", "size": 9}, [0x99] * 9, 10**18 - 1),
        ({"read": "digits", "size": 4, "order": "big"}, [1, 9, 8, 9], 1989),
        ({"read": "digits", "size": 3}, [0x31, 0x32, 0x33], 321),  # ASCII
        ({"read": "bits", "size": 3}, [255, 0, 3], 10),
        ({"read": "bits", "mask": 0x0F}, [255], 4),
    ],
)
def test_a_number(ram: Ram, fields: dict[str, Any], stored: list[int], wanted: int) -> None:
    ram.poke(0xC200, [0] * 16)
    ram.poke(0xC200, stored, torch.tensor([True, False]))
    for where in (0xC200, "wMoney"):
        number = Number(where, **fields)
        assert Numbers(ram, [number]).read().tolist() == [[wanted], [0]]
        assert number.least <= wanted <= number.most


def test_digits_that_are_tile_numbers(ram: Ram) -> None:
    ram.poke(0xC200, [0xF6, 0xF7, 0xFF, 5])
    three, two = Number(0xC200, 3, "digits", "big", zero=0xF6), Number(0xC202, 2, "digits", zero=0xFC)
    assert Numbers(ram, [three, Number(0xC203), two]).read().tolist() == [[19, 5, 93]] * 2, "5 - FC is 9"


def test_several_numbers_are_read_at_once(ram: Ram) -> None:
    ram.poke(0xC200, [0x12, 0x34, 0xFF, 7])
    ram.poke((0, 0xA010), 9)
    numbers = Numbers(
        ram,
        [
            Number("sSave"),
            Number("wMoney", 2, "bcd", "big"),
            Number((0, 0xA010)),
            Number("wMoney+2", 1, "signed"),
            Number(0xC202, 1, "bits"),
            Number(0xC203),
        ],
    )
    assert numbers.read().tolist() == [[9, 1234, 9, -1, 8, 7]] * 2
    ram.poke(0xC203, 8)
    assert numbers.read()[:, 5].tolist() == [8, 8]


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"read": "float"}, "read 'float' must be one of number, signed, bcd, digits, bits, count"),
        ({"order": "middle"}, "order 'middle' must be one of little, big"),
        ({"size": 0}, "size 0 must be from 1 to 7 bytes with read 'number'"),
        ({"size": True}, "size True must be"),
        ({"size": 10, "read": "bcd"}, "size 10 must be from 1 to 9 bytes with read 'bcd'"),
        ({"size": 19, "read": "digits"}, "from 1 to 18 bytes"),
        ({"size": 513, "read": "bits"}, "from 1 to 512 bytes"),
        ({"mask": 256}, "mask 256 must be from 0 to 255"),
        ({"zero": 1}, "zero 1 must be from 0 to 255, and 0 unless read is 'digits'"),
        ({"read": "digits", "zero": 256}, "zero 256 must be from 0 to 255"),
    ],
)
def test_a_field_that_is_refused(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault.replace("(", r"\(")):
        Number(0xC200, **fields)


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({}, 200),
        ({"size": 2, "order": "big"}, 513),
        ({"size": 3, "read": "signed"}, -70_000),
        ({"size": 3, "read": "bcd", "order": "big"}, 123_456),
        ({"size": 4, "read": "digits", "zero": 0xF6}, 1989),
    ],
)
def test_a_number_is_written_as_it_is_read(ram: Ram, fields: dict[str, Any], value: int) -> None:
    number = Number("wMoney", **fields)
    ram.poke(number.where, number.encode(value))
    assert Numbers(ram, [number]).read().tolist() == [[value]] * 2
    for wrong in (1 << 60, True, 0.5):
        with pytest.raises(ConfigError, match="must be a whole number from"):
            number.encode(wrong)  # pyright: ignore[reportArgumentType]


def test_what_has_no_bytes_of_its_own_is_not_written() -> None:
    wrong: list[dict[str, Any]] = [{"read": "bits"}, {"mask": 3}]
    for fields in wrong:
        with pytest.raises(ConfigError, match="cannot be written"):
            Number(0xC000, **fields).encode(1)


def test_half_bytes_of_a_cartridge() -> None:
    """MBC2's RAM: its upper halves read as ones, as the game itself reads them."""
    ram = Ram(Emulator(STAGE.parent.parent / "micro/mbc2_banks.gb", 1))
    ram.poke((0, 0xA000), [0xF1, 0x02, 0x33])
    where = (0, 0xA000)
    numbers = [Number(where), Number(where, mask=0x0F), Number(where, 3, "digits", "big"), Number((0, 0xA001), 2)]
    assert Numbers(ram, numbers).read().tolist() == [[0xF1, 1, 123, 0xF3F2]]
