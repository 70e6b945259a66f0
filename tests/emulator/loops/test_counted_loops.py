"""Loops that copy, fill, add or multiply, and delays that push: skipped in both kernels with PyBoy's results."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.loops.codes import CountedLoop, counted_loops, first_loops
from gbxcule_puffer.emulator.loops.find import find_loops
from gbxcule_puffer.emulator.loops.table import INC_C, MULTIPLY, WIDE_BC, WIDE_DE
from tests.emulator.loops.test_waits import LOG, rom_of, skipped
from tests.fuzz.faults import FAULTS, OF_LOOPS, faulty_step
from tests.fuzz.generator import header, make_rom
from tests.fuzz.lockstep import compare, random_buttons

AT = 0x300
KINDS = {
    kind: list(loops) for kind, loops in groupby(sorted(counted_loops(), key=lambda loop: loop.kind), lambda x: x.kind)
}
DELAYS = {
    "GBDK's": "06 33 C5 C1 C5 C1 00 05 20 F8",
    "pair of the counter": "0E C8 11 34 12 D5 D1 C5 C1 0D 20 F9",
    "its end falls before a push": "06 FF" + 15 * " 00" + " C5 C1 05 20 EC",
    "another pair": "06 64 21 CD AB C5 C1 E5 E1 05 20 F9",
}


def setting(loop: CountedLoop) -> bytes:
    """Registers for many rounds: HL, DE, BC, A."""
    de, bc = 0xC300, 0x6470
    if loop.counter in (WIDE_BC, WIDE_DE):
        de, bc = (0x0123, 0x0123) if loop.counter == WIDE_DE else (de, 0x0123)
    elif loop.counter == INC_C:
        bc = 0x10
    elif loop.kind == MULTIPLY:
        de, bc = 0x5A35, 0x0107
    words = bytes([0x21, 0x04, 0xC6, 0x11, de & 0xFF, de >> 8, 0x01, bc & 0xFF, bc >> 8])
    return words + bytes([0x3E, 0x10 if loop.kind == MULTIPLY else 0x70])


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_leaves_what_it_leaves_on_pyboy(kind: int) -> None:
    code = b"".join(setting(loop) + loop.code + LOG for loop in KINDS[kind])
    rom = bytes(rom_of(code, AT))
    found = {loop.begin for loop in find_loops(rom) if not loop.only_waits}
    assert len(found) == len(KINDS[kind])
    result = compare(rom, np.zeros((12, 1), np.uint8), 4, 3)
    assert not result.difference, "\n".join(result.difference)
    is_first = any(loop.kind == kind for loop in first_loops())
    for kernel in ("interpreter", "datapath")[: 1 + is_first]:
        assert skipped(rom, kernel) > 10_000, f"{kernel} skipped hardly anything"


@pytest.mark.parametrize("sp", [0xDFF0, 0xFFFE, 0xE000])
@pytest.mark.parametrize("name", DELAYS)
def test_a_delay_leaves_on_the_stack_what_it_pushed(name: str, sp: int) -> None:
    rom = bytes(rom_of(bytes([0x31, *sp.to_bytes(2, "little")]) + bytes.fromhex(DELAYS[name]), AT))
    result = compare(rom, np.zeros((12, 1), np.uint8), 4, 3)
    assert not result.difference, "\n".join(result.difference)
    for kernel in ("interpreter", "datapath"):
        assert skipped(rom, kernel) > 10_000, kernel


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("C5 D1 05 20 FB", "DE changes"),
        ("C5 05 20 FC", "the stack grows"),
        ("C1 C5 05 20 FB", "it takes from the stack what is not its own"),
        ("22 0B 78 B1 20 FA", "A changes"),
        ("2A 12 13 1D 20 FA", "it counts what it moves"),
        ("CB 23 CB 12 30 01 19 29 3D 20 F5", "no multiplication"),
        ("D6 03 FE 03 30 FA", "A counts"),
    ],
)
def test_loops_that_are_left_alone(text: str, why: str) -> None:
    assert not find_loops(bytes(rom_of(bytes.fromhex(text), AT))), why


def test_a_loop_that_ends_at_the_end_of_a_bank_is_left_alone() -> None:
    """There bytes come from another bank."""
    code = counted_loops()[0].code
    for room, is_found in ((3, True), (2, False), (0, False)):
        rom = bytearray(0x8000)
        header(rom, 0, 0)
        rom[0x4000 - room - len(code) : 0x4000 - room] = code
        assert bool(find_loops(bytes(rom))) == is_found, room


@pytest.mark.long
def test_the_fuzzer_finds_planted_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte is left out, or DE, the stack, a product or the time is wrong."""
    step = faulty_step()
    monkeypatch.setattr(Emulator, "_kernel", lambda emulator: step)
    missed = {env for env, fault in enumerate(FAULTS) if fault in OF_LOOPS}
    for seed in range(40):
        buttons = random_buttons(seed, 40, 1).repeat(len(FAULTS), 1)
        lines = compare(make_rom(seed, "loops").data, buttons, with_datapath=False).difference
        missed -= {env for env in missed if any(line.startswith(f"env {env}:") for line in lines)}
        if not missed:
            return
    raise AssertionError(f"40 ROMs did not find {[FAULTS[env] for env in missed]}")
