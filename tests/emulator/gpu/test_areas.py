"""The table of areas, and what Fast.plain says of them, against the rule that they stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.hw import areas
from gbxcule_puffer.emulator.state import INDEX
from tests.support.roms import tiny_rom


def test_each_flag_has_bits_of_its_own() -> None:
    """Turned right by an area, no flag finds the bit of another flag; READ and WRITE find none for OTHER."""
    flags = {flag: flag.bit_length() - 1 for flag in (ds.READ, ds.WRITE, ds.LOOKAHEAD, ds.READ_WORD)}
    assert sum(flags) == ds.ACCESSES
    used = [(bit + area) % 32 for bit in flags.values() for area in range(areas.OTHER)]
    assert len(set(used)) == len(used)
    for bit in (flags[ds.READ], flags[ds.WRITE], flags[ds.READ_WORD]):
        assert (bit + areas.OTHER) % 32 not in used


def test_the_two_bytes_of_a_word_lie_in_one_area() -> None:
    """So what is said of an address holds for a word there. Else the second byte is the area's last one, which is in
    OTHER so that no word leaves the area, or the word is at P1, where none is plain."""
    table = areas.table()[:0x10000]
    leaves = (table[:-1] != table[1:]) & (table[:-1] != areas.OTHER)
    last = [end - 2 for end in areas.ENDS]
    assert np.flatnonzero(leaves).tolist() == [*last, hw.P1, hw.IE - 2]


@pytest.mark.parametrize(
    "address", [0x3FFF, 0x4000, 0x7FFF, 0xBFFF, 0xCFFF, 0xDFFE, 0xDFFF, 0xFEFF, 0xFF00, 0xFF7F, 0xFFFD]
)
def test_words_across_areas_are_as_on_the_interpreter(tmp_path: Path, address: int) -> None:
    """POP and PUSH with SP at the ends of areas, at P1 and around high RAM."""
    low, high = address & 0xFF, address >> 8
    # ld sp,address / pop bc / push bc / ld a,b / ld [C100],a / ld a,c / ld [C101],a / ld sp,DF00 / jr -2
    code = bytes(
        [0x31, low, high, 0xC1, 0xC5, 0x78, 0xEA, 0x00, 0xC1, 0x79, 0xEA, 0x01, 0xC1, 0x31, 0, 0xDF, 0x18, 0xFE]
    )
    assert_kernels_agree(tiny_rom(tmp_path / "word.gb", code))


def test_high_ram_is_not_plain_during_an_oam_dma(tmp_path: Path) -> None:
    """Each access there has the OAM DMA copy what is due, so that bytes which change afterwards were copied before."""
    # ld hl,C040 / ld a,C0 / ldh [DMA],a / ldh a,[80] / inc a / ldh [80],a / ld [hl],a / dec l / jr nz,-9 / jr -2
    code = bytes([0x21, 0x40, 0xC0, 0x3E, 0xC0, 0xE0, 0x46, 0xF0, 0x80, 0x3C, 0xE0, 0x80, 0x77, 0x2D, 0x20, 0xF7])
    assert_kernels_agree(tiny_rom(tmp_path / "dma.gb", code + bytes([0x18, 0xFE])))


def assert_kernels_agree(rom: str) -> None:
    found = []
    for kernel in ("interpreter", "datapath"):
        emulator = Emulator(rom, 1, kernel=kernel)
        emulator.step(torch.ones(1, dtype=torch.uint8))
        found.append((emulator.memory.clone(), emulator._state[INDEX["instructions"]].clone()))
        emulator.close()
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
