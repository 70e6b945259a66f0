"""Loops that only wait: found in a ROM, and skipped in both kernels with PyBoy's results."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.loops.find import COUNTERS, find_loops
from gbxcule_puffer.emulator.loops.table import MOST_ENTRIES, mark
from tests.fuzz.generator import header
from tests.fuzz.lockstep import compare

MAIN = 0x150
# Each interrupt counts in C000, slowly overwrites C001 and keeps AF.
HANDLER = bytes.fromhex("F5 FA 00 C0 3C EA 00 C0 E6 07 EA 01 C0 E0 80 F1 D9")
# LCDC on; STAT: LYC; LYC 40; TMA, TAC: a timer interrupt every 16 * 200 T-cycles; IE VBlank, STAT, timer; EI
START = bytes.fromhex("3E 40 E0 41 3E 28 E0 45 3E 38 E0 06 E0 05 3E 05 E0 07 3E 07 E0 FF AF E0 0F FB")
# After a loop: AF, BC, DE, HL and DIV go to the log at (C0F0), which wraps in C100-C1FF.
LOG = bytes.fromhex("F5 C5 D5 E5 F0 04 F5 FA F0 C0 6F 26 C1 06 0A F1 22 7D EA F0 C0 E1 D1 C1 F1")
LOOPS = {
    "dec b": "06 C8 05 20 FD",
    "dec c, jp": "0E FF 0D C2 {at+2}",
    "dec d, from 0": "16 00 15 20 FD",
    "dec e with nops": "1E 64 00 00 1D 20 FB",
    "dec h with jumps": "26 50 18 00 18 00 00 25 20 F8",
    "dec l, jp, jumps": "2E 96 18 00 2D C2 {at+2}",
    "dec a, once": "3E 01 3D 20 FD",
    "dec b in dec de": "11 40 00 06 33 05 20 FD 1B 7A B3 20 F6",
    "dec b in dec de, GBDK's": "11 09 01 1B 7B B2 28 17 06 33" + 5 * " 18 00" + " 05 C2 {at+10} 00 18 00 18 00 18 E4",
    "dec c in dec hl, jp": "21 07 00 0E 00 00 0D C2 {at+5} 2B 7C B5 00 C2 {at+3}",
    "dec d in dec bc, from behind": "01 20 01 16 FF C3 {at+15} 00 00 00 00 C3 {at+15}"
    " 15 20 FD 0B 79 B0 28 05 16 20 C3 {at+8} 00",
    "dec bc": "01 34 05 0B 78 B1 20 FB",
    "dec de, low first": "11 00 02 1B 7B B2 20 FB",
    "dec hl, jp": "21 FF 01 2B 7C B5 C2 {at+3}",
    "poll until C001 is 3": "FA 01 C0 FE 03 20 F9",
    "poll while bit 2 of FF80": "F0 80 CB 57 20 FA",
    "poll by and, jp": "FA 01 C0 E6 05 CA {at}",
    "poll against B": "06 06 FA 00 C0 A8 E6 07 20 F8",
    "poll of no register": "F0 56 E6 02 20 FA",
    "poll of a sound register": "F0 30 B7 28 FB",
    "poll with a register": "FA 01 C0 47 E6 04 A8 28 F7",
}
# A routine at 0250 that reads both halves of the pad, as GBDK's: pressed buttons in A, also in E or keeping BC
PAD = "3E 20 E0 00 F0 00 F0 00 E6 0F CB 37 {keep} 3E 10 E0 00 F0 00 E6 0F {join} 2F {leave} 3E 30 E0 00 {result} C9"
PADS = {
    "in E": bytes.fromhex(PAD.format(keep="5F", join="B3", leave="5F", result="7B")),
    "keeping BC": bytes.fromhex("C5" + PAD.format(keep="47", join="B0", leave="47", result="78 C1")),
}
# Until A is pressed; `{call}` is a `call` of the routine
WAITS_FOR_A = {
    "at once": "{call} E6 01 28 F9",
    "jp": "{call} E6 01 CA {at}",
    "through another routine, a jump and a pair": "E5 {call} E1 18 00 E6 01 28 F5",
}


def rom_of(loop: bytes, at: int = MAIN + 0x40, size: int = 0x8000, kind: int = 0) -> bytearray:
    """A ROM that runs a loop and logs what it left, for ever."""
    rom = bytearray(size)
    header(rom, kind, 0)
    rom[0x100:0x104] = 0x00, 0xC3, MAIN & 0xFF, MAIN >> 8
    for vector in (0x40, 0x48, 0x50):
        rom[vector : vector + 3] = 0xC3, 0x00, 0x02
    rom[0x200 : 0x200 + len(HANDLER)] = HANDLER
    start = START + bytes([0xC3, at & 0xFF, at >> 8])
    rom[MAIN : MAIN + len(start)] = start
    body = loop + LOG + bytes([0xC3, at & 0xFF, at >> 8])
    rom[at : at + len(body)] = body
    return rom


def code_of(text: str, at: int) -> bytes:
    """A loop's bytes; {at}, {at+n} are addresses in it."""
    words = [word.strip("{}") for word in text.split()]
    return b"".join(
        (at + int(word[3:] or 0)).to_bytes(2, "little") if word.startswith("at") else bytes.fromhex(word)
        for word in words
    )


def skipped(rom: bytes, kernel: str) -> int:
    """Instructions of a step that were skipped."""
    emulator = Emulator(rom, kernel=kernel)
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    return int(emulator.skipped[0])


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_leaves_what_it_leaves_on_pyboy(name: str) -> None:
    at = MAIN + 0x40
    rom = bytes(rom_of(code_of(LOOPS[name], at)))
    result = compare(rom, np.zeros((12, 1), np.uint8), 6, 3)
    assert not result.difference, "\n".join(result.difference)
    least = 0 if name == "dec a, once" else 500
    for kernel in ("interpreter", "datapath"):
        assert skipped(rom, kernel) >= least, f"{kernel} skipped hardly anything"


def test_nested_delays_are_found() -> None:
    nested = [name for name in LOOPS if " in dec " in name]
    for name in nested:
        loops = find_loops(bytes(rom_of(code_of(LOOPS[name], MAIN + 0x40))))
        assert [loop.nest is not None for loop in loops] == [True], name
    assert len(nested) == 4


def test_waiting_for_ever_and_for_interrupts() -> None:
    rom = bytes(rom_of(bytes.fromhex("18 FE")))
    assert not compare(rom, np.zeros((6, 1), np.uint8), 3, 3).difference
    assert skipped(rom, "interpreter") > 10_000 and skipped(rom, "datapath") > 10_000


def test_waiting_for_a_button() -> None:
    """P1 keeps its value until it is written, here by the interrupts."""
    rom = rom_of(bytes.fromhex("F0 00 E6 01 20 FA"))  # until A is held
    rom[0x200 : 0x200 + 14] = bytes.fromhex("F5 3E 10 E0 00 FA 00 C0 3C EA 00 C0 F1 D9")
    buttons = np.array([0, 0x10, 0, 0x20, 0x10, 0x10, 0, 0], np.uint8)[:, None]
    result = compare(bytes(rom), buttons, 3, 3)
    assert not result.difference, "\n".join(result.difference)
    for kernel in ("interpreter", "datapath"):
        assert skipped(bytes(rom), kernel) > 500


def waiting_rom(wait: str, pad: str, sp: int, at: int, kind: int = 0) -> bytes:
    """A ROM that waits for A by routines in bank 0, with a stack of its own."""
    begin = at + 3
    loop = code_of(WAITS_FOR_A[wait].format(call="CD 50 02", at="{at}"), begin)
    rom = rom_of(bytes([0x31, *sp.to_bytes(2, "little"), *loop]), at, 0x10000 if kind else 0x8000, kind)
    rom[0x250 : 0x250 + len(PADS[pad])] = PADS[pad]
    return bytes(rom)


@pytest.mark.parametrize(
    ("wait", "pad", "sp", "at", "is_skipped"),
    [
        ("at once", "in E", 0xFFFE, MAIN + 0x40, True),
        ("at once", "keeping BC", 0xE000, MAIN + 0x40, True),
        ("jp", "in E", 0xD000, 0x4100, True),
        ("through another routine, a jump and a pair", "keeping BC", 0xFF90, 0x4100, True),
        ("at once", "keeping BC", 0xC008, MAIN + 0x40, False),  # below WRAM there may be anything
    ],
)
def test_waiting_for_a_button_by_routines(wait: str, pad: str, sp: int, at: int, is_skipped: bool) -> None:
    rom = waiting_rom(wait, pad, sp, at, kind=0x19 if at >= 0x4000 else 0)
    buttons = np.array([0, 0x10, 0, 0x21, 0x11, 0x10, 0, 0], np.uint8)[:, None]
    result = compare(rom, buttons, 3, 3)
    assert not result.difference, "\n".join(result.difference)
    for kernel in ("interpreter", "datapath"):
        assert (skipped(rom, kernel) > 5_000) == is_skipped, kernel


def test_a_routine_of_another_bank_at_0000() -> None:
    """A large MBC1 in mode 1 shows bank 20h there: with the same code but for the routine, which counts at [hl]."""
    begin = 0x4100
    select = bytes.fromhex("3E 01 EA 00 60 EA 00 40 21 10 C0 31 00 D0")
    loop = code_of(WAITS_FOR_A["at once"].format(call="CD 50 02"), begin + len(select))
    rom = rom_of(select + loop, begin, 0x100000, kind=0x01)
    rom[0x250 : 0x250 + len(PADS["in E"])] = PADS["in E"]
    rom[0x80000:0x88000] = rom[:0x8000]
    counting = PADS["in E"].replace(bytes.fromhex("F0 00 F0 00"), bytes.fromhex("34 34"), 1)  # as long
    rom[0x80250 : 0x80250 + len(counting)] = counting
    begins = [loop.begin for loop in find_loops(bytes(rom))]
    assert begins == [begin + len(select), 0x80000 + begin + len(select)]
    result = compare(bytes(rom), np.zeros((8, 1), np.uint8), 3, 3)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
def test_a_poll_that_something_else_looks_like(kernel: str) -> None:
    """The loop is left for code that writes what is polled and comes back with the same registers."""
    at = MAIN + 0x40
    #            ld a,[C002] / cp 5 / jr nz,-7;  then ld hl,C002 / inc [hl] / xor a / ld hl,C003 / jp at
    loop = bytes.fromhex("FA 02 C0 FE 05 20 F9 21 02 C0 34 AF 21 03 C0 C3") + at.to_bytes(2, "little")
    rom = rom_of(loop)
    rom[0x200 : 0x200 + 20] = bytes.fromhex("F5 FA 02 C0 3C EA 02 C0 F1 D9") + bytes(10)
    result = compare(bytes(rom), np.zeros((10, 1), np.uint8), 3, 3)
    assert not result.difference, "\n".join(result.difference)
    assert skipped(bytes(rom), kernel) > 100


def test_an_absolute_jump_of_bank_0_that_is_seen_at_4000() -> None:
    """MBC5 can show bank 0 at 4000, where the `jp nz` of a delay leads down to 0000-3FFF."""
    at = MAIN + 0x40
    loop = bytes.fromhex("AF EA 00 20 06 C8 C3") + (0x4000 + 0x300).to_bytes(2, "little")  # bank 0; ld b; jp 4300
    rom = rom_of(loop, kind=0x19)
    rom[0x300:0x304] = bytes.fromhex("05 C2 00 03")  # dec b / jp nz,0300
    rom[0x304:0x310] = LOG[:0] + bytes([0xC3, at & 0xFF, at >> 8]) + bytes(9)
    result = compare(bytes(rom), np.zeros((10, 1), np.uint8), 3, 3)
    assert not result.difference, "\n".join(result.difference)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("F0 41 E6 02 20 FA", "STAT changes with time"),
        ("F0 44 FE 90 20 FA", "so does LY, which has a skip of its own"),
        ("FA 00 A0 B7 20 FA", "cartridge RAM may be a clock"),
        ("7E B7 20 FC", "[hl] may be anything"),
        ("EA 00 C0 B7 20 FA", "it writes"),
        ("05 04 20 FC", "it counts both ways"),
        ("05 28 FD", "it ends at once"),
        ("05 3D 20 FC", "it counts two registers"),
        ("0B 78 B2 20 FB", "it tests another register"),
        ("00 0B 78 B1 20 FA", "not a loop that is known"),
        ("76 18 FD", "HALT"),
        ("E0 40 B7 28 FB", "it writes LCDC"),
        ("F0 00 F5 3E 10 E0 00 F1 B7 28 F5", "it reads P1 before it selects a row"),
        ("C5 FA 00 C0 C1 B7 28 F8", "what it reads may be what it keeps on the stack"),
        ("C5 B7 28 FC", "the stack grows"),
        ("C1 C5 B7 28 FB", "it takes from the stack what is not its own"),
        ("CD 97 01 B7 28 FA C9 C8 C9", "its routine may end early"),
        ("CD 97 01 B7 28 FA C9 C1 C5 C9", "its routine takes the address that it returns to"),
        ("CD 90 01 B7 28 FA", "it calls itself"),
    ],
)
def test_loops_that_are_left_alone(text: str, why: str) -> None:
    rom = bytes(rom_of(bytes.fromhex(text)))
    assert not find_loops(rom), why


@pytest.mark.parametrize("text", ["F0 26 E6 02 20 FA", "F0 30 B7 28 FB", "FA 76 FF B7 28 FA"])
def test_registers_of_a_sound_unit_that_works_change_with_time(text: str) -> None:
    """NR52, wave RAM, PCM12."""
    rom = bytes(rom_of(bytes.fromhex(text)))
    assert find_loops(rom) and not find_loops(rom, sound=True)


def test_marks_fit_into_the_words_of_the_code() -> None:
    """Each loop of another length is an entry of its own; the most frequent stay where not all fit."""
    rom = bytearray(0x10000)
    header(rom, 0x19, 0)
    at = 0x4000
    for nops in range(16):
        for counter in COUNTERS:
            body = bytes(nops) + bytes([counter])
            for _ in range(1 + (nops == 0)):
                rom[at : at + len(body) + 2] = body + bytes([0x20, 0x100 - len(body) - 2])
                at += len(body) + 3
    code = np.zeros(len(rom), np.int32)
    table = mark(code, find_loops(bytes(rom)))
    numbers = code >> 24
    assert numbers.max() == MOST_ENTRIES == np.count_nonzero(table[:MOST_ENTRIES])
    assert (np.bincount(numbers[numbers > 0])[1:8] == 2).all(), "those that stand twice come first"
