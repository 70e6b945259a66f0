"""The table of registers: a program writes all values to all of them, as on PyBoy and as their rows say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from benchmarks.pages.state_table import register_rows
from gbxcule_puffer.emulator import Emulator, registers
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.register_code import is_one_of, reads, writes
from gbxcule_puffer.emulator.registers import REGISTERS, Register
from gbxcule_puffer.emulator.state import INDEX
from tests.fuzz.generator import header, name_color
from tests.fuzz.lockstep import compare

MBC5_RAM, RAM_32_KB, FRAMES = 0x1A, 3, 24
FIRST = 0x41  # LCDC is the last one, so that the LCD stays off for the others where it is off
LEFT_OUT = 0x55  # HDMA5 copies over what was read; tests/conformance/test_game_boy_color.py has it
# di; RAM on; hl = A000, d = bank 0, c = FIRST
START = "F3 3E0A EA0000 2100A0 1600 0E41 "
# b = 0; again: a = b; ldh [c],a; ldh a,[c]; ld [hl+],a; inc b; jr nz again
SWEEP = "0600 78 E2 F2 22 04 20F9 "
# At C000 go on at A000 of the next bank. c: the next register, 00 after 7F; over LEFT_OUT; jr nz until it is FIRST.
NEXT = "7C FEC0 2007 26A0 14 7A EA0040 0C CBB9 79 FE55 28F8 FE41 20DE "


def sweep(flag: int, before: str) -> bytes:
    """The ROM; flag: of the Game Boy Color in its header."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    program = bytes.fromhex(before + START + SWEEP + NEXT + "18FE")
    rom[0x150 : 0x150 + len(program)] = program
    header(rom, MBC5_RAM, RAM_32_KB)
    name_color(rom, flag)
    return bytes(rom)


def pages(rom: bytes, model: str) -> dict[int, np.ndarray]:
    """What each register read after each write, (256,) uint8, by address."""
    emulator = Emulator(rom, model=model, frames_per_step=FRAMES)
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    assert emulator.registers()["c"] == FIRST, "the program is not over"
    found = np.concatenate([emulator.read_memory(0, 0xA000, 0x2000, bank) for bank in range(4)])
    order = [address for address in (*range(FIRST, 0x80), *range(FIRST)) if address != LEFT_OUT]
    return {hw.IO + address: found[256 * i : 256 * (i + 1)] for i, address in enumerate(order)}


CONSOLES = [("dmg", 0x00), ("cgb", 0xC0), ("cgb", 0x00)]


@pytest.mark.parametrize("before", ["", "AF E040 "], ids=["LCD on", "LCD off"])
@pytest.mark.parametrize(("model", "flag"), CONSOLES)
def test_all_values_of_all_registers_as_on_pyboy(model: str, flag: int, before: str) -> None:
    result = compare(sweep(flag, before), np.zeros((FRAMES, 1), np.uint8), 8, model=model)
    assert not result.difference, "\n".join(result.difference)
    assert not result.locked and result.frames == FRAMES


@pytest.mark.parametrize(("model", "flag"), CONSOLES)
def test_registers_read_as_their_rows_say(model: str, flag: int) -> None:
    """Those without code of their own; what is no register reads FF."""
    found = pages(sweep(flag, ""), model)
    rank = {"dmg": 0, "cgb": 1, "color": 2}
    there = [row for row in REGISTERS if rank[row.model] <= rank[model] + (flag != 0)]
    values, plain = np.arange(256), [row for row in there if row.field and not row.read and row.keeps]
    assert len(plain) > 10
    for row in plain:
        if not row.write and row.address in found and row.name != "IF":  # devices set its bits meanwhile
            assert found[row.address].tolist() == (values & row.keeps | row.ones).tolist(), row.name
    for address in set(found) - registers.addresses(there):
        assert set(found[address].tolist()) == {0xFF}, hex(address)


def test_rows_agree_with_the_state() -> None:
    counts = Counter(address for row in REGISTERS for address in row.addresses)
    assert set(counts.values()) == {1}
    for row in REGISTERS:
        assert not row.field or row.field in INDEX, row
        assert row.address == getattr(hw, row.name, row.address), row
        assert row.address in range(hw.IO, hw.KEY0 if row.model == "dmg" else hw.HRAM) or row.name == "IE", row


def test_the_page_has_every_register() -> None:
    text = register_rows()
    assert all(f"| {row.address:04X}" in text for row in REGISTERS)
    assert "| FF47 | BGP |" in text


ROWS = (
    Register("ONE", 0xFF10, "one", ones=0xF0, keeps=0x0F),
    Register("TWO", 0xFF12, read="two(c)", write="write_two(c, value)"),
    Register("THREE", 0xFF13, read="two(c)", write="write_two(c, value)"),
    Register("LAST", 0xFF20, "last", model="color", writable="dmg"),
)


class Fields:
    one = last = 0
    color_mode = 0
    twos: tuple[int, ...] = ()


def two(c: Fields) -> int:
    return len(c.twos)


def write_two(c: Fields, value: int) -> None:
    c.twos += (value,)


@reads(ROWS)
def read(c: Fields, address: int) -> int:  # type: ignore[reportReturnType]
    """A register of ROWS."""


@writes(ROWS)
def write(c: Fields, address: int, value: int) -> None:
    """A register of ROWS."""


@is_one_of([0xFF10, 0xFF11, 0xFF20])
def is_known(address: int) -> bool:  # type: ignore[reportReturnType]
    """Some addresses."""


def test_made_functions() -> None:
    """Plain and special rows, one that only a cartridge for the Game Boy Color reads, and no register."""
    c = Fields()
    for address in (0xFF10, 0xFF12, 0xFF13, 0xFF20, 0xFF21):
        write(c, address, 0x35)
    assert (c.one, c.twos, c.last) == (0x05, (0x35, 0x35), 0x35)
    assert [read(c, address) for address in (0xFF10, 0xFF12, 0xFF13, 0xFF20, 0xFF21)] == [0xF5, 2, 2, 0xFF, 0xFF]
    c.color_mode = 1
    assert read(c, 0xFF20) == 0x35
    assert [address for address in range(0xFF00, 0xFF80) if is_known(address)] == [0xFF10, 0xFF11, 0xFF20]
