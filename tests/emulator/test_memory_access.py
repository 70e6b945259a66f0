"""read_memory and write_memory: banks as in PyBoy, and a refusal for what is not RAM."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.mappers import MAPPERS
from gbxcule_puffer.errors import ConfigError
from tests.fuzz.generator import header

MBC2, MBC3_RTC, MBC5 = 0x06, 0x10, 0x1B
SELECTED = 2


def image(cartridge_type: int, ram_bank: int, enabled: bool = True) -> bytes:
    """A game that enables RAM, selects ROM bank 3 and a RAM bank, and then does nothing."""
    rom = bytearray(4 * 0x4000)
    for bank in range(4):
        rom[bank * 0x4000 + 0x2000 : bank * 0x4000 + 0x2004] = bytes([bank] * 4)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytes.fromhex(f"3E {'0A' if enabled else '00'} EA 00 00  3E 03 EA 00 21  3E {ram_bank:02X} EA 00 40  18 FE")
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, cartridge_type, 3 if cartridge_type != MBC2 else 0)
    return bytes(rom)


def running(rom: bytes) -> Emulator:
    emulator = Emulator(rom, 2, frames_per_step=1, release_after_frames=1)
    emulator.step(torch.zeros(2, dtype=torch.uint8))
    return emulator


def test_banks_are_those_of_pyboy() -> None:
    rom = image(MBC5, SELECTED)
    emulator, machine = running(rom), PyBoyMachine(rom, 1, 1)
    machine.step(0)
    memory = machine.pyboy.memory
    writes = [
        (0xA000, bytes([1, 2, 3]), None), (0xBFFE, bytes([4, 5]), None), (0xA000, bytes([6, 7]), 0),
        (0xA010, bytes([8]), 3), (0xA000, bytes([9]), SELECTED), (0x8000, bytes([10, 11]), None),
        (0x8100, bytes([12]), 0), (0xC123, bytes([13]), None), (0xE001, bytes([14]), None), (0xFE9F, bytes([15]), None),
        (0xFEA0, bytes([16]), None), (0xFF80, bytes([17]), None), (0xFFFE, bytes([18]), None),
    ]  # fmt: skip
    for address, data, bank in writes:
        emulator.write_memory(1, address, data, bank)
        for where, value in enumerate(data, address):
            memory[where if bank is None else (bank, where)] = value
    reads: list[tuple[int, int, int | None]] = [(0x2000, 4, None), (0x6000, 4, None), (0xA000, 0x1FFF, None)]
    reads += [(address, 4, bank) for bank in range(4) for address in (0x2000, 0x6000, 0xA000, 0xA00E)]
    reads += [
        (address, 16, None) for address in (0x8000, 0x8100, 0xBFF0, 0xC000, 0xC120, 0xE000, 0xFE90, 0xFEA0, 0xFF80)
    ]
    for address, length, bank in reads:
        span = slice(address, address + length)
        expected = memory[span] if bank is None else memory[bank, span]
        assert emulator.read_memory(1, address, length, bank).tolist() == expected, (hex(address), bank)
    assert not emulator.read_memory(0, 0xA000, 0x2000).any(), "the other env keeps its memory"
    machine.close()


def test_ram_that_is_disabled_is_written_all_the_same() -> None:
    emulator = running(image(MBC5, SELECTED, enabled=False))
    emulator.write_memory(0, 0xA000, b"\x12")
    assert emulator.read_memory(0, 0xA000, 1).tolist() == [0xFF]
    assert [emulator.read_memory(0, 0xA000, 1, bank).item() for bank in range(4)] == [0, 0, 0x12, 0]


def test_half_bytes_are_mirrored() -> None:
    emulator = running(image(MBC2, 0))
    emulator.write_memory(0, 0xA1FF, b"\x12\x34")
    assert emulator.read_memory(0, 0xA1FF, 2).tolist() == [0xF2, 0xF4]
    assert emulator.read_memory(0, 0xA000, 1).tolist() == emulator.read_memory(0, 0xBE00, 1).tolist() == [0xF4]
    with pytest.raises(ConfigError, match="513 bytes from A000: MBC2 has 512"):
        emulator.write_memory(0, 0xA000, bytes(513))


# ld a,[C0FF]; or a; jr z until it is set; then 8 writes of C000, each low and high byte of the address and the value;
# then [A123], [5000] and [1000] to C100, C101 and C102
WRITE_AND_READ = "FAFFC0 B7 28FA  2100C0 0608 2A5F2A572A12 0520F7  FA23A1 EA00C1 FA0050 EA01C1 FA0010 EA02C1 18FE"
READS, NUM_LISTS, NUM_BANKS = (0xA123, 0x5000, 0x1000), 80, 64


def image_of_lists(cartridge_type: int) -> bytes:
    """A game that makes the writes of a list, with the same code in each bank."""
    rom = bytearray(NUM_BANKS * 0x4000)
    code = bytes.fromhex(WRITE_AND_READ)
    for bank in range(NUM_BANKS):
        start = bank * 0x4000
        rom[start + 0x1000] = bank
        rom[start + 0x150 : start + 0x150 + len(code)] = code
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    header(rom, cartridge_type, 3)
    return bytes(rom)


@pytest.mark.parametrize(
    ("cartridge_type", "kernel"),
    [
        *((kind, "interpreter") for kind in sorted({kind for mapper in MAPPERS for kind in mapper.types})),
        *((kind, "datapath") for kind in sorted({mapper.types[-1] for mapper in MAPPERS})),
    ],
)
def test_the_bus_shows_what_a_program_reads(cartridge_type: int, kernel: str) -> None:
    """Whatever was written to the mapper's registers: Python has its own view of the cartridge (address_space.py)."""
    rng = np.random.default_rng(cartridge_type)
    rom = image_of_lists(cartridge_type)
    emulator = Emulator(rom, NUM_LISTS, frames_per_step=3, release_after_frames=1, kernel=kernel)
    registers = rng.choice([0x0000, 0x2000, 0x2100, 0x3000, 0x4000, 0x6000], (NUM_LISTS, 8))
    values = np.where(rng.random((NUM_LISTS, 8)) < 0.3, 0x0A, rng.integers(0, 256, (NUM_LISTS, 8)))
    values[rng.random((NUM_LISTS, 8)) < 0.5] &= 0x0F
    lists = np.stack([registers & 0xFF, registers >> 8, values], axis=2).astype(np.uint8)
    for env in range(NUM_LISTS):
        for bank in range(emulator.cartridge.ram_banks):
            emulator.write_memory(env, 0xA123, bytes([0x10 + bank]), bank)
        emulator.write_memory(env, 0xC000, lists[env].tobytes())
        emulator.write_memory(env, 0xC0FF, b"\1")
    emulator.step(torch.zeros(NUM_LISTS, dtype=torch.uint8))
    seen = set()
    for env in range(NUM_LISTS):
        shown = [emulator.read_memory(env, address, 1).item() for address in READS]
        assert emulator.read_memory(env, 0xC100, 3).tolist() == shown, lists[env].tolist()
        seen.add(tuple(shown))
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("address", "data", "bank", "message"),
    [
        (0x2000, b"\1", None, "address 2000 is ROM: give one of VRAM"),
        (0x7FFF, b"\1", 1, "address 7FFF is ROM"),
        (0xFF40, b"\1", None, "address FF40 is IO registers: .* set_registers"),
        (0xFFFF, b"\1", None, "address FFFF is register IE"),
        (0x9FFF, b"\1\2", None, "2 bytes from 9FFF do not fit into VRAM, which ends at 9FFF"),
        (0xBFFF, b"\1\2", 1, "2 bytes from BFFF do not fit into cartridge RAM"),
        (0xFE9F, b"\1\2", None, "do not fit into OAM"),
        (0xFFFE, b"\1\2", None, "do not fit into HRAM"),
        (-1, b"\1", None, "address -1: give one from 0000 to FFFF"),
        (0x10000, b"\1", None, "address 65536"),
        (0xA000, b"\1", 4, "bank 4 of cartridge RAM: this cartridge has 0 to 3"),
        (0xA000, b"\1", -1, "bank -1 of cartridge RAM"),
        (0x8000, b"\1", 1, "bank 1 of VRAM"),
        (0xFF80, b"\1", 0, "bank 0 of HRAM: this cartridge has none: leave bank out"),
    ],
)
def test_what_is_not_ram_is_refused(address: int, data: bytes, bank: int | None, message: str) -> None:
    emulator = running(image(MBC5, SELECTED))
    before = emulator.state_hash()
    with pytest.raises(ConfigError, match=message):
        emulator.write_memory(0, address, data, bank)
    assert np.array_equal(emulator.state_hash(), before)


@pytest.mark.parametrize(
    ("address", "length", "bank", "message"),
    [
        (0xFFFF, 2, None, "addresses FFFF to 10000: give some between 0000 and FFFF"),
        (-1, 1, None, "give some between 0000 and FFFF"),
        (0x3FFF, 2, 0, "2 bytes from 3FFF do not fit into ROM"),
        (0x4000, 1, 4, "bank 4 of ROM: this cartridge has 0 to 3"),
        (0xFF40, 1, 0, "bank 0 of IO registers"),
    ],
)
def test_reads_of_what_is_not_there_are_refused(address: int, length: int, bank: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        running(image(MBC5, SELECTED)).read_memory(0, address, length, bank)


@pytest.mark.parametrize("selected", [0x08, 0x0C])
def test_clock_registers_are_no_ram(selected: int) -> None:
    emulator = running(image(MBC3_RTC, selected))
    with pytest.raises(
        ConfigError, match=rf"A000-BFFF shows no RAM now \(bank {selected:02X} is selected\): give a bank"
    ):
        emulator.write_memory(0, 0xA000, b"\1")
    emulator.write_memory(0, 0xA000, b"\1", 3)
    assert emulator.read_memory(0, 0xA000, 1, 3).item() == 1
