"""Writes that select a ROM bank: on the spot as by the mapper's register, and nothing else changes."""

# Kernels: Warp's types are its own.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from gbxcule_puffer.emulator import mappers
from gbxcule_puffer.emulator.hw.cartridge import mbc
from gbxcule_puffer.emulator.state import Cpu, Machine

NUM_WRITES = 20_000
RESULTS = 7
OTHERS = [1, 3, 4, 5, 6]  # of the results, those that are not about the bank of ROM at 4000


@wp.kernel(enable_backward=False)
def select(machine: Machine, writes: wp.array2d(dtype=int), at_once: int, results: wp.array2d(dtype=int)):
    m = machine
    c = Cpu()
    number = wp.tid()
    for before in range(3):
        mbc.write_register(m, c, writes[number, 2 * before], writes[number, 2 * before + 1], 0)
    if at_once != 0:
        mbc.select_rom_at_once(m, c, writes[number, 6], writes[number, 7])
    else:
        mbc.write_register(m, c, writes[number, 6], writes[number, 7], 0)
    keep(c, number, results)


@wp.kernel(enable_backward=False)
def find_rom_selections(
    machine: Machine, writes: wp.array2d(dtype=int), selections: wp.array(dtype=int), results: wp.array3d(dtype=int)
):
    """The registers before and after the last of four writes, and whether it only selects a bank of ROM."""
    m = machine
    c = Cpu()
    number = wp.tid()
    for before in range(3):
        mbc.write_register(m, c, writes[number, 2 * before], writes[number, 2 * before + 1], 0)
    selections[number] = int(mbc.only_selects_rom(m, writes[number, 6]))
    keep(c, number, results[0])
    mbc.write_register(m, c, writes[number, 6], writes[number, 7], 0)
    keep(c, number, results[1])


@wp.func
def keep(c: wp.ref[Cpu], number: int, results: wp.array2d(dtype=int)):
    results[number, 0] = c.rom_high
    results[number, 1] = c.rom_low
    results[number, 2] = c.bank1
    results[number, 3] = c.bank2
    results[number, 4] = c.ram_offset
    results[number, 5] = c.ram_bank
    results[number, 6] = c.ram_enabled


@pytest.mark.parametrize("rom_banks", [2, 32, 128, 512])
@pytest.mark.parametrize("mapper", [row for row in mappers.MAPPERS if row.selects_rom_at_once], ids=lambda m: m.name)
def test_selected_at_once(mapper: mappers.Mapper, rom_banks: int) -> None:
    random = np.random.default_rng(rom_banks)
    machine = Machine()
    machine.mapper, machine.rom_banks, machine.ram_banks = mapper.number, rom_banks, 4
    machine.bank_mask = rom_banks - 1
    writes = random.integers(0, 256, (NUM_WRITES, 8))
    writes[:, 0:6:2] = random.integers(0, 0x8000, (NUM_WRITES, 3))  # any registers before
    writes[:, 6] = random.integers(0x2000, 0x4000, NUM_WRITES)
    results = []
    for at_once in (0, 1):
        found = wp.zeros((NUM_WRITES, RESULTS), dtype=wp.int32, device="cpu")
        inputs = [machine, wp.array(writes, dtype=wp.int32, device="cpu"), at_once, found]
        wp.launch(select, NUM_WRITES, inputs, device="cpu")
        results.append(found.numpy())
    np.testing.assert_array_equal(results[1], results[0])
    assert len(np.unique(results[0][:, 0])) > min(rom_banks, 128) // 2


@pytest.mark.parametrize("mapper", mappers.MAPPERS, ids=lambda m: m.name)
def test_what_only_selects_rom_does_nothing_else(mapper: mappers.Mapper) -> None:
    """The data path makes such a write without a look at anything else."""
    random = np.random.default_rng(mapper.number)
    machine = Machine()
    machine.mapper, machine.rom_banks, machine.ram_banks = mapper.number, 128, 4
    writes = random.integers(0, 256, (NUM_WRITES, 8))
    writes[:, 0::2] = random.integers(0, 0x8000, (NUM_WRITES, 4))
    selections = wp.zeros(NUM_WRITES, dtype=wp.int32, device="cpu")
    found = wp.zeros((2, NUM_WRITES, RESULTS), dtype=wp.int32, device="cpu")
    inputs = [machine, wp.array(writes, dtype=wp.int32, device="cpu"), selections, found]
    wp.launch(find_rom_selections, NUM_WRITES, inputs, device="cpu")
    before, after = found.numpy()[:, selections.numpy() == 1]
    np.testing.assert_array_equal(after[:, OTHERS], before[:, OTHERS])
    assert bool(len(before)) == (mapper.number != mappers.MBC2)
