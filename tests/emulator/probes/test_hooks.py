"""Hooks count how often an instruction begins: as PyBoy's do, in both kernels, without changing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.probes.hooks import MOST_HOOKS
from gbxcule_puffer.errors import ConfigError
from tests.emulator.loops.test_waits import LOOPS, MAIN, code_of, rom_of, waiting_rom
from tests.fuzz.generator import header

ROMS = Path(__file__).parents[3] / "roms"
KERNELS = ("interpreter", "datapath")
# HOMEWARD: VBlank's vector, routines that follow each other, loops, and one behind a `call` that often returns early
HOMEWARD = (0x40, 0x1BD, 0x1E3, 0x20D, 0x244, 0x28A, 0x4E7, 0x54F)
SCHEDULE: dict[str, Any] = {"frames_per_step": 3, "release_after_frames": 1}


def assert_counts_are_pyboys(rom: bytes, hooks: list[tuple[int, int]], steps: int, least: int = 1) -> None:
    """In each of some steps with random buttons; the game goes on as without hooks."""
    emulators = [Emulator(rom, 2, kernel=kernel, num_threads=1, **SCHEDULE) for kernel in KERNELS]
    plain, oracle = Emulator(rom, 2, num_threads=1, **SCHEDULE), PyBoyEmulator(rom, 2, **SCHEDULE)
    totals = dict.fromkeys(hooks, 0)
    for emulator in (*emulators, oracle):
        for hook in hooks:
            emulator.hook(*hook)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        buttons = 1 << torch.randint(8, (2,), generator=generator, dtype=torch.uint8)
        for emulator in (*emulators, plain, oracle):
            emulator.step(buttons)
        for hook in hooks:
            wanted = oracle.executions(*hook).tolist()
            assert [emulator.executions(*hook).tolist() for emulator in emulators] == [wanted] * 2, hook
            totals[hook] += sum(wanted)
        assert (plain.state_hash() == [emulator.state_hash() for emulator in emulators]).all()
    oracle.close()
    assert min(totals.values()) >= least, totals


def test_a_game() -> None:
    assert_counts_are_pyboys((ROMS / "homeward.gb").read_bytes(), [(0, address) for address in HOMEWARD], 6, least=0)


@pytest.mark.parametrize("name", ["dec e with nops", "dec bc", "poll by and, jp"])
@pytest.mark.parametrize("part", ["first", "last"])
def test_a_loop_that_waits(name: str, part: str) -> None:
    """Its rounds are counted one by one, at its first instruction and at the jump; so is the interrupt."""
    loop = code_of(LOOPS[name], MAIN + 0x40)
    begin = {"dec e with nops": 2, "dec bc": 3, "poll by and, jp": 0}[name]
    jump = len(loop) - (3 if name.endswith("jp") else 2)
    address = MAIN + 0x40 + (begin if part == "first" else jump)
    assert_counts_are_pyboys(bytes(rom_of(loop)), [(0, address), (0, 0x40)], 3, least=10)


def rom_with(code: str, kind: int = 0, size: int = 0x8000) -> bytearray:
    """A ROM that begins with `code` at 0150 and returns from VBlank at once."""
    rom, text = bytearray(size), bytes.fromhex(code)
    header(rom, kind, 0)
    rom[0x100:0x103], rom[0x40] = bytes([0xC3, 0x50, 0x01]), 0xD9
    rom[0x150 : 0x150 + len(text)] = text
    return rom


def test_a_routine_of_a_loop_that_waits() -> None:
    """In another bank than the loop."""
    rom = waiting_rom("at once", "in E", 0xD000, 0x4100, kind=0x19)
    assert_counts_are_pyboys(rom, [(0, 0x254), (1, 0x4106)], 3, least=10)


def test_loops_that_poll_the_lcd_or_copy() -> None:
    # IE VBlank, EI; 0155: wait: ldh a,[LY] / cp 90 / jr nz,wait; ld hl,C200 / ld de,C300 / ld b,40
    # 0163: copy: ld a,[hl+] / ld [de],a / inc de / dec b / jr nz,copy; 0169: halt / jr wait
    rom = rom_with("3E 01 E0 FF FB  F0 44 FE 90 20 FA  21 00 C2 11 00 C3 06 40  2A 12 13 05 20 FA  76 18 E9")
    for addresses in ([0x155, 0x163], [0x157, 0x166], [0x159, 0x167], [0x15B]):
        assert_counts_are_pyboys(bytes(rom), [(0, address) for address in addresses], 3, least=2)
    emulator = Emulator(bytes(rom), **SCHEDULE)
    emulator.hook(0, 0x169)
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    assert emulator.executions(0, 0x169).tolist() == [3], "HALT begins once a frame"


@pytest.mark.parametrize("address", [0x150, 0x152, 0x154, 0x161, 0x167, 0x16A, 0x16F, 0x171, 0x174, 0x177])
def test_loops_that_the_data_path_skips_at_once(address: int) -> None:
    """0150: a poll of STAT / ld de,5A35 / ld bc,0107 / ld hl,0 / ld a,0F; 0161: a product; 016C: ld de,5; 016F: a delay
    of 20 rounds in one of DE; 0179: jr 0150."""
    rom = rom_with(
        "F0 41 E6 02 20 FA  11 35 5A 01 07 01 21 00 00 3E 0F  CB 23 CB 12 30 01 09 29 3D 20 F5"
        "  11 05 00 06 20 05 20 FD 1B 7A B3 20 F6  18 D5"
    )
    assert_counts_are_pyboys(bytes(rom), [(0, address)], 3, least=20)


def test_instructions_of_a_bank() -> None:
    """The same address of two banks, which play in turns."""
    # 0151: next: inc a / and 2 / inc a / ld [2000],a / call 4100 / jr next: banks 3 and 1
    rom = rom_with("AF 3C E6 02 3C EA 00 20 CD 00 41 18 F4", kind=0x19, size=0x10000)
    for bank in (1, 2, 3):
        rom[0x4000 * bank + 0x100 : 0x4000 * bank + 0x102] = bytes([0x00, 0xC9])
    assert_counts_are_pyboys(bytes(rom), [(1, 0x4100), (3, 0x4101)], 2, least=100)
    emulator = Emulator(bytes(rom), **SCHEDULE)
    for bank in (2, 3):
        emulator.hook(bank, 0x4100)
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    assert emulator.executions(2, 0x4100).item() == 0 < emulator.executions(3, 0x4100).item()


def test_more_hooks_and_what_cannot_be_hooked() -> None:
    emulator, oracle = Emulator(ROMS / "homeward.gb"), PyBoyEmulator(ROMS / "homeward.gb")
    for bank, address, why in (
        (0, 0xC000, "C000: code there is in RAM"),
        (None, 0x4000, "4000: the address has banks: give one"),
        (99, 0x4000, "banks 0 to"),
        (0, 0x3FFE, "last two bytes of a bank"),
    ):
        for each in (emulator, oracle):
            with pytest.raises(ConfigError, match=why):
                each.hook(bank, address)
    with pytest.raises(ConfigError, match="0150 of bank 0 has no hook"):
        emulator.executions(0, 0x150)
    halt = (ROMS / "homeward.gb").read_bytes().index(0x76, 0x150)
    with pytest.raises(ConfigError, match="there is HALT"):
        oracle.hook(0, halt)
    oracle.close()
    for number in range(MOST_HOOKS):
        emulator.hook(0, 0x150 + number)
    emulator.hook(None, 0x150)  # is there already
    with pytest.raises(ConfigError, match="64 already"):
        emulator.hook(0, 0x400)
    assert emulator.executions(None, 0x151).dtype == torch.int32


@pytest.mark.gpu
def test_a_gpu_counts_the_same(cuda_device: str) -> None:
    rom = ROMS / "homeward.gb"
    emulators = [Emulator(rom, 64, device) for device in ("cpu", cuda_device)]
    for emulator in emulators:
        for address in HOMEWARD:
            emulator.hook(0, address)
    rows = np.random.default_rng(1).choice([0, 16, 128, 4, 8, 2, 1], (20, 64)).astype(np.uint8)
    for row in rows:
        for emulator in emulators:
            emulator.step(torch.from_numpy(row).to(emulator.device))
        for address in HOMEWARD:
            mine, theirs = (emulator.executions(0, address).cpu() for emulator in emulators)
            assert torch.equal(mine, theirs)
