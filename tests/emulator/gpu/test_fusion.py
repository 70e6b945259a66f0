"""Groups of instructions do what they do one after the other, in the data path's own code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator, isa
from gbxcule_puffer.emulator.gpu import datapath
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.descriptor_table import rom_table
from gbxcule_puffer.emulator.hw import areas, intrinsics
from tests.support.roms import tiny_rom

SPACING = 8  # bytes from one group to the next in the ROM
LDH_A = 0xF0
READABLE = (0x00, 0x00, 0x00, 0x40, 0x41, 0x44, 0x45)  # P1, and registers of the LCD
HALT = 0x76  # stands behind each, and is never part of one
BANK = 0x4000
BATCH = 128  # cases with 64 KiB of memory each
NO_EVENT = wp.constant(1 << 30)
TABLE_END = wp.constant(0x8000)  # a table of one descriptor for each address, the last for all from 8000 on
RESULTS = 9  # lo, hi, flags, sp, pc, now, previous, turns, index
# What groups consist of: moves, loads from and to memory, INC HL, ALU, XOR A, shifts, NOP, and jumps
_USUAL = "78 47 06 3E 5F 7D 7E 2A 46 5E 56 66 23 2B 77 22 73 72 70 21 E0 F0 FA EA 1A 12 "
_USUAL += "A7 B6 E6 FE 90 BE 3C 05 35 34 AF 00 19 09 0B CB1D CB3C CB1B CB2A CB1A CB47 20 28 38 C2 DA 18 C9 C3 E9"
USUAL = [int(word.replace("CB", "1"), 16) for word in _USUAL.split()]
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
        fixed = datapath.Fixed()
        r.row = intrinsics.address_of_row(memory, case)
        r.ram = r.row
        r.table_end = TABLE_END
        r.lo = registers[case, 0]
        r.hi = registers[case, 1]
        r.flags = registers[case, 2]
        r.sp = registers[case, 3]
        r.pc = registers[case, 4]
        r.index = r.pc
        r.wake = NO_EVENT
        for number in range(descriptors.shape[1]):
            d = descriptors[case, number]
            r.d0 = d[0]
            r.d1 = d[1]
            r.d2 = d[2]
            r.d3 = d[3]
            datapath.begin_turn(r, i, fixed, r.row, intrinsics.address_of_bytes(areas))
            datapath.end_turn(r, i, fixed, intrinsics.address_of_words(table))
        results[case, 0] = r.lo
        results[case, 1] = r.hi
        results[case, 2] = r.flags & (ds.MASK_ALL | (1 << 24))
        results[case, 3] = r.sp
        results[case, 4] = r.pc
        results[case, 5] = r.now
        results[case, 6] = r.previous
        results[case, 7] = r.turns
        results[case, 8] = r.index

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


def rom_of(sequences: np.ndarray, generator: np.random.Generator) -> bytes:
    """Opcodes one after the other, shape (sequences, instructions), with addresses in C000-DEFF and FF80-FFFE; a JP or
    CALL with a condition leads to an address near by. What does not fit into SPACING bytes is left out."""
    count = -(-len(sequences) * SPACING // BANK) * BANK // SPACING
    code = np.full((count, 2 * SPACING), HALT, np.uint8)
    lengths = np.zeros(0x200, np.int64)
    for opcode, instruction in isa.expand().items():
        lengths[opcode] = instruction.length
    begin = np.zeros(len(sequences), np.int64)
    for opcodes in sequences.T:
        rows = np.flatnonzero(begin + lengths[opcodes] < SPACING)
        at, opcode = begin[rows], opcodes[rows]
        code[rows, at] = np.where(opcode > 0xFF, 0xCB, opcode)
        targets = address_of(SPACING * rows) + generator.integers(-100, 100, len(rows))
        is_jump = np.isin(opcode, JP_CONDITIONS + CALL_CONDITIONS)
        is_register = (opcode == LDH_A) & (generator.random(len(rows)) < 0.5)
        free = np.where(is_register, generator.choice(READABLE, len(rows)), generator.integers(0x80, 0xFF, len(rows)))
        has_zero = (lengths[opcode] == 2) & (opcode & 0xF0 != 0xF0) & (generator.random(len(rows)) < 0.2)
        low = np.where(is_jump, targets & 0xFF, np.where(has_zero, 0, free))
        second = np.where(opcode > 0xFF, opcode & 0xFF, low)
        third = np.where(is_jump, targets >> 8 & 0xFF, generator.integers(0xC0, 0xDF, len(rows)))
        for offset, value in ((1, second), (2, third)):
            has = lengths[opcode] > offset
            code[rows[has], at[has] + offset] = value[has]
        begin[rows] += lengths[opcode]
        begin[np.setdiff1d(np.arange(len(sequences)), rows)] = SPACING
    return code[:, :SPACING].tobytes()


def all_pairs() -> np.ndarray:
    """Each instruction before each other, shape (pairs, 2)."""
    opcodes = sorted(isa.expand())
    return np.stack([each.ravel() for each in np.meshgrid(opcodes, opcodes, indexing="ij")], axis=1)


def random_sequences(generator: np.random.Generator, count: int) -> np.ndarray:
    """Four instructions, mostly usual ones, shape (count, 4)."""
    return np.where(
        generator.random((count, 4)) < 0.9,
        generator.choice(USUAL, (count, 4)),
        generator.choice(sorted(isa.expand()), (count, 4)),
    )


def address_of(indices: np.ndarray) -> np.ndarray:
    """The address of an index of the ROM."""
    return np.where(indices < BANK, indices, BANK + indices % BANK)


def check(sequences: np.ndarray, least: int, keep: float) -> np.ndarray:
    """Compare what the groups at the begin of sequences do with what their instructions do: registers, flags, time, and
    memory. `least`: instructions of a group; `keep`: what share of those is compared that begin with LD of a register.
    Returns how many instructions each of them has."""
    generator = np.random.default_rng(5)
    rom = rom_of(sequences, generator)
    table = rom_table(rom)
    half = len(table) // 2
    indices = np.arange(0, len(sequences) * SPACING, SPACING)
    rows = indices // BANK * ds.BANK_STRIDE + indices % BANK
    counts = 1 + (table[rows, 1] < 0) + 2 * (table[rows, 0] < 0)
    code = np.frombuffer(rom, np.uint8)
    is_chosen = (counts >= least) & ((generator.random(len(rows)) < keep) | ~is_register_move(code[indices]))
    indices, rows, counts = indices[is_chosen], rows[is_chosen], counts[is_chosen]
    parts = [table[half + rows]]
    for _ in range(3):
        parts.append(table[half + rows + sum(ds.LENGTH.get(each[:, 2]) for each in parts)])
    registers = np.zeros((len(rows), 5), np.int64)
    values = generator.integers(0, 256, (len(rows), 7))
    values[:, [1, 3, 5]] = generator.integers(0xC0, 0xDF, (len(rows), 3))  # B, D and H: pairs are addresses of RAM
    registers[:, 0] = values[:, 0] | values[:, 1] << 8 | values[:, 2] << 16 | values[:, 3] << 24
    registers[:, 1] = values[:, 4] | values[:, 5] << 8 | values[:, 6] << 16
    registers[:, 2] = generator.integers(0, 1 << 31, len(rows)) | 1 << 24
    registers[:, 3] = generator.integers(0xC100, 0xDE00, len(rows))
    registers[:, 4] = address_of(indices)
    registers = registers.astype(np.uint32).view(np.int32)
    memory = generator.integers(0, 256, 0x10010, np.uint8)
    for count in range(2, 5):
        same = np.flatnonzero(counts == count)
        for begin in range(0, len(same), BATCH):
            part = same[begin : begin + BATCH]
            together = run(table[rows[part], None], registers[part], memory)
            one_by_one = run(np.stack([each[part] for each in parts[:count]], axis=1), registers[part], memory)
            for ours, theirs in zip(together, one_by_one, strict=True):
                assert np.array_equal(ours, theirs)
    return counts


def is_register_move(opcodes: np.ndarray) -> np.ndarray:
    """True for LD from register to register, of which there are very many pairs."""
    return (opcodes & 0xC0 == 0x40) & (opcodes & 7 != 6) & (opcodes & 0x38 != 0x30)


def test_a_pair_does_what_its_instructions_do() -> None:
    """All pairs of instructions, an eighth of those that begin with LD of a register."""
    counts = check(all_pairs(), least=2, keep=0.125)
    assert (counts == 2).all()
    assert len(counts) > 10_000


def test_three_and_four_instructions_do_what_they_do() -> None:
    """Random ones of those that groups consist of."""
    counts = check(random_sequences(np.random.default_rng(6), 150_000), least=3, keep=1)
    assert (counts == 3).sum() > 2_000
    assert (counts == 4).sum() > 150


@pytest.mark.parametrize(
    ("jump", "begin", "distance", "is_group"),
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
def test_how_far_a_group_jumps(jump: str, begin: int, distance: int, is_group: bool) -> None:
    """`dec b`, then JP NZ or JR NZ, which leads `distance` bytes from its end."""
    target = begin + (4 if jump == "JP" else 3) + distance
    code = bytes([0x05, 0xC2, target & 0xFF, target >> 8] if jump == "JP" else [0x05, 0x20, distance & 0xFF])
    rom = bytearray(2 * BANK)
    rom[begin : begin + len(code)] = code
    row = begin // BANK * ds.BANK_STRIDE + begin % BANK
    assert (rom_table(bytes(rom))[row, 1] < 0) == is_group


def test_a_hook_is_no_part_of_a_group(tmp_path: Path) -> None:
    """It counts as often behind LD, with which it was a group before."""
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
