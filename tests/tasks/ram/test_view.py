"""The memory view: numbers, bits, banks, writes and refusals; the same of Warp's Game Boys and of PyBoy's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram, RamWatch, Symbols, bit_count, bits_set
from gbxcule_puffer.tasks.ram.symbols import Location
from gbxcule_puffer.tasks.ram.view import READERS

ROMS = Path(__file__).parents[3] / "roms"
N = 3
SYMBOLS = Symbols(
    {"wFirst": Location(0, 0xC100), "wEnd": Location(0, 0xC104), "wHigh": Location(1, 0xD000),
     "sSave": Location(2, 0xA003), "Start": Location(0, 0x150)},
    "test.sym",
)  # fmt: skip
BYTES = [0x12, 0x34, 0x00, 0xFF]


@pytest.fixture(scope="module", params=[Emulator, PyBoyEmulator])
def emulator(request: Any) -> Iterator[Any]:
    """Three Game Boys with four banks of RAM, which have run for two steps."""
    made = request.param((ROMS / "micro/mbc5_banks.gb").read_bytes(), N)
    for _ in range(2):
        made.step(torch.zeros(N, dtype=torch.uint8))
    yield made
    made.close()


@pytest.fixture
def ram(emulator: Any) -> Ram:
    view = Ram(emulator, SYMBOLS)
    view.poke("wFirst", BYTES)
    return view


def test_bytes_and_ranges(ram: Ram) -> None:
    assert ram[0xC100].tolist() == ram["wFirst"].tolist() == [0x12] * N
    assert ram[0xC100].dtype == torch.int32
    assert ram[0xC100:0xC104].tolist() == ram["wFirst":"wEnd"].tolist() == [BYTES] * N
    assert ram[[0xC103, "wFirst+1"]].tolist() == [[0xFF, 0x34]] * N
    assert ram[0xE100].tolist() == [0x12] * N, "the echo"
    assert ram.view("wFirst", 2).dtype == torch.uint8


def test_a_read_is_a_copy_and_a_view_is_none(ram: Ram) -> None:
    before, live = ram["wFirst"], ram.view("wFirst")
    ram.poke("wFirst", 0x77)
    assert before.tolist() == [0x12] * N
    assert live[:, 0].tolist() == [0x77] * N


def test_numbers(ram: Ram) -> None:
    assert ram.u16("wFirst").tolist() == [0x3412] * N
    assert ram.u16("wFirst", "big").tolist() == [0x1234] * N
    assert ram.number("wFirst", 4, "big").tolist() == [0x123400FF] * N
    assert ram.number("wFirst", 4).dtype == torch.int64, "a fourth byte may be above 7F"
    assert ram.bcd("wFirst", 3).tolist() == [123400] * N
    assert ram.bcd("wFirst", 2, "little").tolist() == [3412] * N


def test_bits(ram: Ram) -> None:
    wanted = [bool(byte >> bit & 1) for byte in BYTES for bit in range(8)]
    assert ram.bits("wFirst", 4).tolist() == [wanted] * N
    assert ram.popcount("wFirst", 4).tolist() == [sum(wanted)] * N
    every = torch.arange(256, dtype=torch.uint8)
    assert bit_count(every).tolist() == [value.bit_count() for value in range(256)]
    rows = torch.randint(256, (3, 61), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    rows[0] = 255
    for length in (0, 1, 8, 13, 61):
        found = bits_set(rows[:, :length])
        assert found.tolist() == [sum(value.bit_count() for value in row[:length]) for row in rows.tolist()]
        assert found.dtype == torch.int32


@pytest.mark.gpu
def test_bits_of_rows_on_a_gpu(cuda_device: str) -> None:
    rows = torch.randint(256, (300, 400), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    for first, end in ((0, 0), (0, 400), (3, 4), (5, 325), (7, 40)):
        found = bits_set(rows.to(cuda_device)[:, first:end])
        assert torch.equal(found.cpu(), bits_set(rows[:, first:end]))


def test_banks(ram: Ram) -> None:
    ram.poke((1, 0xA000), [1, 2])
    ram.poke("sSave", 3)
    assert ram[1, 0xA000:0xA002].tolist() == [[1, 2]] * N
    assert ram[2, 0xA003].tolist() == ram["sSave"].tolist() == [3] * N
    assert ram[0, 0xA000].tolist() != [1] * N
    assert ram[1, 0xBFFF].shape == (N,), "PyBoy refuses ranges to a bank's end"
    assert ram[0, 0x8000:0xA000].shape == (N, 0x2000)
    rom = (ROMS / "micro/mbc5_banks.gb").read_bytes()
    assert ram[0, 0x150].tolist() == ram["Start"].tolist() == [rom[0x150]] * N
    assert ram[2, 0x4000:0x4003].tolist() == [list(rom[0x8000:0x8003])] * N
    assert ram["wHigh"].tolist() == ram[0xD000].tolist(), "work RAM has no banks, whatever the file says"


def test_writes_reach_the_machine_by_mask(ram: Ram, emulator: Any) -> None:
    mask = torch.tensor([True, False, True])
    ram.poke(0xC200, torch.tensor([7, 8, 9 + 256]), torch.ones(N, dtype=torch.bool))
    ram.poke(0xC200, torch.tensor([[1], [2], [3]]), mask)
    ram.poke(0xFF90, 5, mask)
    assert [emulator.read_memory(env, 0xC200, 1).tolist() for env in range(N)] == [[1], [8], [3]]
    assert emulator.read_memory(0, 0xFF90, 1).tolist() == [5]
    before = emulator.read_memory(1, 0x9800, 1)
    ram.poke(0x9800, int(before[0]) ^ 1, ~mask)
    assert emulator.read_memory(1, 0x9800, 1) == before ^ 1


def test_after_a_step_and_a_load_it_shows_the_machine_as_it_is(emulator: Any) -> None:
    ram = Ram(emulator)
    watch = RamWatch(ram, [0xC000, 0xFF81])
    saved, before = emulator.save(), watch.read().clone()
    for _ in range(2):
        emulator.step(torch.zeros(N, dtype=torch.uint8))
        row = [emulator.read_memory(1, address, 1)[0] for address in (0xC000, 0xFF81)]
        assert ram[[0xC000, 0xFF81]][1].tolist() == watch.read()[1].tolist() == row
    emulator.load(saved)
    assert torch.equal(watch.read(), before)


def test_oam_of_a_pyboy_is_that_of_its_state(emulator: Any) -> None:
    assert Ram(emulator)[0xFE00:0xFEA0][1].tolist() == emulator.save(1).memory[0, 0x7E00:0x7EA0].tolist()


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda ram: ram["wFrist"], "did you mean wFirst"),
        (lambda ram: ram[0x4000], "is ROM, which has banks"),
        (lambda ram: ram[0xA000], "is cartridge RAM, which has banks"),
        (lambda ram: ram[4, 0xA000], "bank 4 of cartridge RAM: this cartridge has 0 to 3"),
        (lambda ram: ram[0xFF44], "is IO registers"),
        (lambda ram: ram[0x10000], "give one from 0000 to FFFF"),
        (lambda ram: ram[-1], "give one from 0000 to FFFF"),
        (lambda ram: ram[1, -5], "give one from 0000 to FFFF"),
        (lambda ram: ram[0xDFFF:0xE001], "do not fit into WRAM"),
        (lambda ram: ram[0xC001:0xC001], "has no bytes"),
        (lambda ram: ram[0xC000:0xC004:2], "without a step"),
        (lambda ram: ram[[]], "at least one"),
        (lambda ram: ram[1.5], "is not an address"),
        (lambda ram: ram["a", 0xA000], "must be a whole number"),
        (lambda ram: ram.u16(0xC000, "middle"), "order 'middle'"),
        (lambda ram: ram.number(0xC000, 9), "size 9"),
        (lambda ram: ram.poke(0x150, 1), "is ROM, which cannot be written"),
        (lambda ram: ram.poke((1, 0x4000), 1), "is ROM, which cannot be written"),
        (lambda ram: ram.poke("Start", 1), "is ROM, which cannot be written"),
        (lambda ram: ram.poke(0xFF40, 1), "is IO registers"),
        (lambda ram: ram.poke(0xC000, 256), "bytes from 0 to 255"),
        (lambda ram: ram.poke(0xC000, torch.zeros(N)), "torch.float32"),
        (lambda ram: ram.poke(0xC000, torch.zeros(N + 1, dtype=torch.int64)), "shape"),
        (lambda ram: ram.poke(0xC000, 1, torch.ones(N)), "mask of poke"),
    ],
)
def test_refusals(ram: Ram, act: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        act(ram)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_name_is_answered_with_those_there_are(ram: Ram) -> None:
    with pytest.raises(AttributeError, match=r"ram has no u8: read a byte as ram\[where\], more by number, u16"):
        ram.u8("wFirst")  # pyright: ignore[reportAttributeAccessIssue]
    assert all(hasattr(ram, name) for name in READERS) and not hasattr(ram, "read")


def test_a_symbol_needs_a_file(emulator: Any) -> None:
    with pytest.raises(ConfigError, match=r"give symbols \(--symbols GAME\.sym\)"):
        Ram(emulator)["wFirst"]
