"""Pairs of instructions do what the two do one after the other, in the data path's own code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator, isa
from gbxcule_puffer.emulator.gpu import areas, datapath
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.descriptor_table import rom_table
from gbxcule_puffer.emulator.hw import intrinsics
from tests.support.roms import tiny_rom

SPACING = 8  # bytes from one pair to the next in the ROM
BANK = 0x4000
BATCH = 1024
NO_EVENT = wp.constant(1 << 30)
TABLE_END = wp.constant(0x8000)  # a table of one descriptor for each address, the last for all from 8000 on
RESULTS = 9  # lo, hi, flags, sp, pc, now, previous, turns, place
JP_CONDITIONS, CALL_CONDITIONS = (0xC2, 0xCA, 0xD2, 0xDA), (0xC4, 0xCC, 0xD4, 0xDC)


@cache
def kernel() -> Any:
    """A turn with each of the descriptors, one after the other."""

    @wp.kernel(enable_backward=False, module="unique")
    def kernel_turns(
        descriptors: wp.array2d(dtype=wp.vec4i),
        registers: wp.array2d(dtype=int),
        memory: wp.array2d(dtype=wp.uint8),
        table: wp.array(dtype=wp.vec4i),
        areas: wp.array(dtype=wp.uint8),
        results: wp.array2d(dtype=int),
    ):
        case = wp.tid()
        r = datapath.Fast()
        i = datapath.Turn()
        place = datapath.Place()
        r.row = intrinsics.address_of_row(memory, case)
        r.ram = r.row
        r.table_end = TABLE_END
        r.lo = registers[case, 0]
        r.hi = registers[case, 1]
        r.flags = registers[case, 2]
        r.sp = registers[case, 3]
        r.pc = registers[case, 4]
        r.place = r.pc
        r.wake = NO_EVENT
        for number in range(descriptors.shape[1]):
            d = descriptors[case, number]
            r.d0 = d[0]
            r.d1 = d[1]
            r.d2 = d[2]
            r.d3 = d[3]
            datapath.begin_turn(r, i, place, r.row, intrinsics.address_of_bytes(areas))
            datapath.end_turn(r, i, place, intrinsics.address_of_words(table))
        results[case, 0] = r.lo
        results[case, 1] = r.hi
        results[case, 2] = r.flags & (ds.MASK_ALL | (1 << 24))
        results[case, 3] = r.sp
        results[case, 4] = r.pc
        results[case, 5] = r.now
        results[case, 6] = r.previous
        results[case, 7] = r.turns + r.turn
        results[case, 8] = r.place

    return kernel_turns


def run(descriptors: np.ndarray, registers: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Registers and memory after the turns of each case; descriptors: (cases, turns, 4)."""
    count = len(descriptors)
    arrays = [
        wp.array(descriptors, dtype=wp.vec4i, device="cpu"),
        wp.array(registers, dtype=wp.int32, device="cpu"),
        wp.array(np.tile(memory, (count, 1)), dtype=wp.uint8, device="cpu"),
        wp.zeros(0x8001, dtype=wp.vec4i, device="cpu"),
        wp.array(areas.table(), dtype=wp.uint8, device="cpu"),
        wp.zeros((count, RESULTS), dtype=wp.int32, device="cpu"),
    ]
    wp.launch(kernel(), dim=count, inputs=arrays, device="cpu")
    return arrays[5].numpy(), arrays[2].numpy()


def rom_of_all_pairs(generator: np.random.Generator) -> bytes:
    """Each instruction before each other, with addresses in C000-DEFF and FF80-FFFE; JP and CALL with a
    condition as the second lead to a place near by."""
    opcodes = sorted(isa.expand())
    first, second = (each.ravel() for each in np.meshgrid(opcodes, opcodes, indexing="ij"))
    code = np.zeros((-(-len(first) * SPACING // BANK) * BANK // SPACING, SPACING), np.uint8)
    lengths = np.array([isa.expand()[opcode].length for opcode in first])
    rows = np.arange(len(first))
    for begin, opcode in ((0 * lengths, first), (lengths, second)):
        is_long = opcode > 0xFF
        code[rows, begin] = np.where(is_long, 0xCB, opcode)
        code[rows, begin + 1] = np.where(is_long, opcode & 0xFF, generator.integers(0x80, 0xFF, len(rows)))
        code[rows, begin + 2] = generator.integers(0xC0, 0xDF, len(rows))
    jumps = np.flatnonzero(np.isin(second, JP_CONDITIONS + CALL_CONDITIONS))
    targets = address_of(SPACING * jumps) + generator.integers(-100, 100, len(jumps))
    code[jumps, lengths[jumps] + 1], code[jumps, lengths[jumps] + 2] = targets & 0xFF, targets >> 8 & 0xFF
    return code.tobytes()


def address_of(places: np.ndarray) -> np.ndarray:
    """Where a place of the ROM is seen."""
    return np.where(places < BANK, places, BANK + places % BANK)


def is_register_move(opcodes: np.ndarray) -> np.ndarray:
    """True for LD from register to register, of which there are very many pairs."""
    return (opcodes & 0xC0 == 0x40) & (opcodes & 7 != 6) & (opcodes & 0x38 != 0x30)


def test_a_pair_does_what_its_instructions_do() -> None:
    """All pairs of instructions, an eighth of those with LD of a register: registers, flags, time and memory."""
    generator = np.random.default_rng(5)
    rom = rom_of_all_pairs(generator)
    table = rom_table(rom)
    half = len(table) // 2
    places = np.arange(0, len(rom), SPACING)
    rows = places // BANK * ds.BANK_STRIDE + places % BANK
    is_pair = table[rows, 1] < 0
    places, rows = places[is_pair], rows[is_pair]
    code = np.frombuffer(rom, np.uint8)
    lengths = table[half + rows, 2] >> ds.LENGTH_SHIFT & 7
    is_move = is_register_move(code[places]) | is_register_move(code[places + lengths])
    chosen = ~is_move | (table[rows, 3] & ds.ADJUST_HL != 0) | (np.arange(len(rows)) % 8 == 0)
    places, rows = places[chosen], rows[chosen]
    assert len(rows) > 6_000
    assert np.isin(code[places + lengths[chosen]], JP_CONDITIONS).sum() > 100
    first = table[half + rows]
    second = table[half + rows + (first[:, 2] >> ds.LENGTH_SHIFT & 7)]
    registers = np.zeros((len(rows), 5), np.int64)
    values = generator.integers(0, 256, (len(rows), 7))
    values[:, [1, 3, 5]] = generator.integers(0xC0, 0xDF, (len(rows), 3))  # B, D and H: pairs are addresses of RAM
    registers[:, 0] = values[:, 0] | values[:, 1] << 8 | values[:, 2] << 16 | values[:, 3] << 24
    registers[:, 1] = values[:, 4] | values[:, 5] << 8 | values[:, 6] << 16
    registers[:, 2] = generator.integers(0, 1 << 31, len(rows)) | 1 << 24
    registers[:, 3] = generator.integers(0xC100, 0xDE00, len(rows))
    registers[:, 4] = address_of(places)
    registers = registers.astype(np.uint32).view(np.int32)
    memory = generator.integers(0, 256, 0x10010, np.uint8)
    for begin in range(0, len(rows), BATCH):
        part = slice(begin, begin + BATCH)
        together = run(table[rows[part], None], registers[part], memory)
        one_by_one = run(np.stack([first[part], second[part]], axis=1), registers[part], memory)
        for ours, theirs in zip(together, one_by_one, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("jump", "begin", "distance", "is_pair"),
    [
        ("JP", 0x1000, 0x7F, True),
        ("JP", 0x1000, 0x80, False),
        ("JP", 0x5000, -0x80, True),
        ("JP", 0x5000, -0x81, False),
        ("JP", 0x3FF0, 8, True),
        ("JP", 0x3FF0, 16, False),  # to another bank
        ("JR", 0x1000, 0x7F, True),
        ("JR", 0x5000, -0x80, True),
        ("JR", 0x3FF0, 16, False),
        ("JR", 0x4004, -16, False),
    ],
)
def test_how_far_a_pair_jumps(jump: str, begin: int, distance: int, is_pair: bool) -> None:
    """`dec b`, then JP NZ or JR NZ, which leads `distance` bytes from its end."""
    target = begin + (4 if jump == "JP" else 3) + distance
    code = bytes([0x05, 0xC2, target & 0xFF, target >> 8] if jump == "JP" else [0x05, 0x20, distance & 0xFF])
    rom = bytearray(2 * BANK)
    rom[begin : begin + len(code)] = code
    row = begin // BANK * ds.BANK_STRIDE + begin % BANK
    assert (rom_table(bytes(rom))[row, 1] < 0) == is_pair


def test_a_hook_is_no_part_of_a_pair(tmp_path: Path) -> None:
    """It counts as often behind LD, with which it was a pair before."""
    code = bytes.fromhex("78 80 04 18 FB")  # loop: ld a,b / add a,b / inc b / jr loop
    emulator = Emulator(tiny_rom(tmp_path / "pair.gb", code), 1, kernel="datapath")
    table = torch.from_numpy(emulator.machine.descriptors.numpy())
    assert table[0x150, 1] < 0
    emulator.hook(None, 0x151)
    assert table[0x150, 1] >= 0
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    executions = int(emulator.executions(None, 0x151)[0])
    emulator.close()
    assert executions == pytest.approx(24 * 70224 / 24, rel=0.01)
