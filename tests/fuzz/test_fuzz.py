"""The fuzzer finds nothing in the emulator, finds planted faults, and environments stay apart."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from tests.fuzz.faults import OF_INSTRUCTIONS, faulty_step
from tests.fuzz.generator import CARTRIDGES, ILLEGAL, FuzzRom, header, make_rom
from tests.fuzz.lockstep import Result, compare, compare_seed, random_buttons
from tests.fuzz.shrink import code_left, shrink

FRAMES = 40
SEEDS = 4
FIRST_SEED = 100_000
MOST_BANKS = 16  # the data path's table of a random bank takes 10 ms


def small_roms(count: int) -> Iterator[FuzzRom]:
    """Random ROMs of at most MOST_BANKS banks."""
    roms = map(make_rom, itertools.count(FIRST_SEED))
    return itertools.islice((rom for rom in roms if len(rom.data) <= MOST_BANKS * hw.ROM_BANK_SIZE), count)


def test_random_roms_run_as_on_pyboy() -> None:
    """Some seeds; `make fuzz` runs more."""
    total = Result(0, 0)
    for rom in small_roms(SEEDS):
        result = compare_seed(rom.data, rom.seed, FRAMES)
        assert not result.difference, f"seed {rom.seed} ({rom.kind}):\n" + "\n".join(result.difference)
        total = replace(
            total, frames=total.frames + result.frames, instructions=total.instructions + result.instructions
        )
    assert total.instructions > 100_000, "hardly anything was compared"


@pytest.mark.parametrize("seed", [2086, 2443, 50077, 70110])
def test_what_once_differed(seed: int) -> None:
    """STAT written by the instruction after EI; LCDC written by the push of an interrupt's dispatch, twice; SCX written
    before the time up to which the fetch from OAM looked ahead, a frame begun in between."""
    result = compare_seed(make_rom(seed).data, seed, 60)
    assert not result.difference, "\n".join(result.difference)


def test_lines_of_the_next_frame_in_a_picture() -> None:
    """After EI the LCD is switched on, and PyBoy's batch goes on: two lines of the frame that begins are over before
    the one that the step draws is found to have ended."""
    result = compare_seed(make_rom(2_000_363, "program").data, 2_000_363, 24)
    assert not result.difference, "\n".join(result.difference)


def test_pushes_into_registers() -> None:
    """The last three differed before PyBoy's batch went on after a dispatch that pushes into a register."""
    for seed in (0, 1, 2, 3, 12, 17):
        result = compare_seed(make_rom(seed, "io-stack").data, seed, 24)
        assert not result.difference, f"seed {seed}:\n" + "\n".join(result.difference)


@pytest.mark.parametrize("seed", [3, 19, pytest.param(28, marks=pytest.mark.long)])
def test_large_cartridges(seed: int) -> None:
    """Code at 4000 that reads 0000-3FFF while MBC1 shows another bank than 0 there: the data path read bank 0."""
    result = compare_seed(make_rom(seed, "banks").data, seed, 9)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_loops_that_are_skipped(seed: int) -> None:
    """Copies, fills, sums, products and delays, with interrupts in the middle."""
    result = compare_seed(make_rom(seed, "loops").data, seed, 24)
    assert not result.difference, "\n".join(result.difference)


def test_a_loop_that_only_looks_like_a_poll_of_ly() -> None:
    """`bit 0,[hl]` reads LY as `ldh a,[LY]` does, in as many bytes and with the same loop behind it; A stays."""
    rom = bytearray(0x8000)
    header(rom, 0, 0)
    rom[0x100:0x104] = bytes((0x00, 0xC3, 0x50, 0x01))
    rom[0x150:0x15E] = bytes.fromhex("F3 21 44 FF 3E 91  CB 46 FE 90 20 FA  18 FE")
    result = compare_seed(bytes(rom), 0, 10)
    assert not result.difference, "\n".join(result.difference)


def test_a_seed_gives_one_rom_and_all_kinds_and_cartridges_occur() -> None:
    roms = [make_rom(seed) for seed in range(12)]
    assert make_rom(7).data == roms[7].data
    assert {rom.kind for rom in roms} == {"program", "stream", "bytes"}
    assert len({rom.data[0x147] for rom in roms}) > len(CARTRIDGES) // 2
    plain = next(rom for rom in roms if rom.kind == "bytes")
    assert not ILLEGAL & set(plain.data[0x150:0x4000])


def test_planted_faults_are_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    step, usual = faulty_step(), Emulator._kernel
    monkeypatch.setattr(Emulator, "_kernel", lambda self: step if self.kernel == "interpreter" else usual(self))

    envs = range(len(OF_INSTRUCTIONS))
    found: dict[int, int] = {}  # the seed that found an env's fault
    for rom in small_roms(60):
        buttons = random_buttons(rom.seed, FRAMES, 1).repeat(len(envs), 1)
        lines = compare(rom.data, buttons, with_datapath=False).difference
        for env in envs:
            if any(line.startswith(f"env {env}:") for line in lines):
                found.setdefault(env, rom.seed)
        if len(found) == len(envs):
            break
    assert len(found) == len(envs), f"60 ROMs found only {[OF_INSTRUCTIONS[env] for env in found]}"
    rom, buttons = make_rom(found[0]).data, random_buttons(found[0], FRAMES, 1)
    small, buttons = shrink(rom, buttons, most_runs=6, with_datapath=False)
    assert compare(small, buttons, check_every=1, with_datapath=False).difference
    assert code_left(small) < code_left(rom)


def _rom_that_locks_on_a() -> bytes:
    """A game that reads the buttons in a loop, writes to WRAM, and runs into an illegal opcode if A is held."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = 0x00, 0xC3, 0x50, 0x01
    code = bytes.fromhex("3E10 E000 F000 1F 300B 2100C0 86 22 2C 2D 20FA 18EC DD")
    rom[0x150 : 0x150 + len(code)] = code
    header(rom, 0x00, 0)
    return bytes(rom)


def test_an_illegal_opcode_locks_its_environment_only() -> None:
    rom = _rom_that_locks_on_a()
    buttons = np.zeros((6, 16), np.uint8)
    buttons[2, 3] = buttons[3, 7] = buttons[3, 8] = 0x10
    buttons[1, 5] = buttons[4, 6] = 0x21
    together = _run(rom, buttons)
    assert np.flatnonzero(together.locked.numpy()).tolist() == [3, 7, 8]
    hashes = together.state_hash()
    for env in range(16):
        alone = _run(rom, buttons[:, env : env + 1])
        assert alone.state_hash()[0] == hashes[env], f"env {env} is another one beside 15 others"
    playing = compare(rom, buttons[:, [0, 5, 6]])
    assert not playing.difference and playing.frames == 6


def test_environments_are_the_same_alone_and_among_others() -> None:
    """Each env's whole state, memory row and picture: what any other env wrote into it would show."""
    diverged = 0
    for seed in range(5):
        rom = make_rom(seed).data
        buttons = random_buttons(seed, 24, 33)
        hashes = _run(rom, buttons).state_hash()
        diverged += len(set(hashes.tolist())) > 8
        for env in (0, 16, 32):
            assert _run(rom, buttons[:, env : env + 1]).state_hash()[0] == hashes[env], f"seed {seed}, env {env}"
    assert diverged > 1, "the environments hardly differ: nothing would show"


def _run(rom: bytes, buttons: np.ndarray) -> Emulator:
    """An emulator after all steps."""
    emulator = Emulator(rom, buttons.shape[1], frames_per_step=2, release_after_frames=1, num_threads=1)
    for step in buttons:
        emulator.step(torch.from_numpy(np.ascontiguousarray(step)))
    return emulator
