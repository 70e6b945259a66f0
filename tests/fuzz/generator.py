"""Random ROMs for the fuzzer: structured programs, streams of weighted instructions, plain random bytes, and by name
those of io_stack.py, large cartridges of all mappers (bank_snippets.py), loops (loop_snippets.py) and programs for the
Game Boy Color (color_snippets.py).

The same seed gives the same ROM. Layout of a program: RST 00-38 return or start the main loop anew, handlers at the
interrupt vectors, main loop from 0150, switchable banks full of small subroutines at 4000 + 64 * k. Bytes that no
snippet uses are FF (RST 38), so that a program that runs wild comes back to the main loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.fuzz import bank_snippets, color_snippets, loop_snippets, snippets, sound_snippets
from tests.fuzz.code import Code, Random
from tests.fuzz.io_stack import io_stack_program

BANK = 0x4000
LOGO = bytes.fromhex("ceed6666cc0d000b03730083000c000d0008111f8889000edccc6ee6ddddd999bbbb67636e0eecccdddc999fbbb9333e")
ILLEGAL = frozenset((0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD))
MAIN = 0x0150
RESTART = 0x00F0  # where RST 38 leads: sets SP and goes on at one of ENTRIES, chosen by DIV
ENTRIES = 0x3F00  # 32 addresses
TITLE, COLOR_TITLE = b"FUZZ", b"FUZC"  # the second of ROMs that run on a Game Boy Color
SOUND_AT = 0x138  # where the title of ROMs whose sound unit works has an S
# Cartridge types with the numbers of ROM banks to choose from and the RAM codes; 256 banks and more do not fit into
# PyBoy's save state.
CARTRIDGES = (
    (0x00, (2, 4), (0,)), (0x08, (2,), (2,)), (0x09, (2, 4), (2, 3)), (0x01, (2, 4, 8, 32, 64), (0,)),
    (0x02, (4, 16, 64), (2, 3)), (0x03, (2, 8, 64, 128), (2, 3)), (0x05, (2, 16), (0,)), (0x06, (4, 16, 32), (0,)),
    (0x0F, (4, 8), (0,)), (0x10, (4, 128), (2, 3, 5)), (0x11, (4, 8), (0,)), (0x12, (8,), (2, 5)),
    (0x13, (2, 4, 64, 128), (2, 3, 4)), (0x19, (4, 8), (0,)), (0x1A, (4,), (2,)), (0x1B, (2, 8, 128), (3, 4, 5)),
    (0x1E, (8,), (2, 3)),
)  # fmt: skip
# For the kind "banks": MBC1 shows another bank than 0 at 0000 from 64 banks on; PyBoy's states count up to 256.
LARGE_CARTRIDGES = (
    (0x01, (64, 128), (0,)), (0x02, (64, 128), (2, 3)), (0x03, (64,), (3,)), (0x06, (16,), (0,)),
    (0x10, (64, 128), (3, 5)), (0x13, (128, 256), (4, 5)), (0x1B, (128, 256), (4,)), (0x1E, (64,), (3,)),
)  # fmt: skip


@dataclass(frozen=True)
class FuzzRom:
    """A generated image and how it came about."""

    data: bytes
    kind: str
    seed: int


def make_rom(seed: int, kind: str | None = None) -> FuzzRom:
    """The ROM of a seed, of one of KINDS: without a name mostly structured programs, a quarter streams of instructions,
    some plain bytes."""
    random = Random(seed)
    drawn = random.weighted({"program": 64, "stream": 28, "bytes": 8})
    kind = kind or drawn
    cartridge_type, bank_choices, ram_codes = random.choice(LARGE_CARTRIDGES if kind == "banks" else CARTRIDGES)
    has_choice = kind in ("program", "banks") or random.chance(0.3)
    banks = random.choice(bank_choices if has_choice else bank_choices[:1])
    ram_code = random.choice(ram_codes)
    rom = bytearray(KINDS[kind](random, banks))
    header(rom, cartridge_type, ram_code)
    if kind.startswith("color"):
        name_color(rom, random.choice((0x80, 0xC0, 0xC0, 0x00)))
    if kind.endswith("sound"):
        name_sound(rom)
    return FuzzRom(bytes(rom), kind, seed)


def name_color(rom: bytearray, flag: int) -> None:
    """Have the header say that the ROM is for the Game Boy Color, or with flag 0 for a DMG, and runs on that."""
    rom[0x134:0x138], rom[0x143] = COLOR_TITLE, flag
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF


def name_sound(rom: bytearray) -> None:
    """Have the header say that the sound unit works."""
    rom[SOUND_AT] = ord("S")
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF


def has_sound(rom: bytes) -> bool:
    """True if the ROM is made for a sound unit that works."""
    return rom[0x134:0x138] in (TITLE, COLOR_TITLE) and rom[SOUND_AT] == ord("S")


def model_of(rom: bytes) -> str:
    """The model that a ROM is made for."""
    return "cgb" if rom[0x134:0x138] == COLOR_TITLE else "dmg"


def header(rom: bytearray, cartridge_type: int, ram_code: int) -> None:
    """Write 0104-014F, with an honest size and a correct header checksum."""
    rom[0x104:0x134] = LOGO
    rom[0x134:0x150] = bytes(0x1C)
    rom[0x134:0x138] = TITLE
    rom[0x147:0x14A] = cartridge_type, (len(rom) // 0x8000).bit_length() - 1, ram_code
    rom[0x14D] = (-sum(rom[0x134:0x14D]) - 0x19) & 0xFF


def _program(
    random: Random, banks: int, snippet: Callable[[Code], None] = snippets.snippet, last_made: int = 16
) -> bytes:
    """Snippets in a long loop; the banks after `last_made` are copies of others."""
    rom = bytearray(b"\xff" * (banks * BANK))
    _vectors(random, rom)
    code = Code(random, MAIN)
    snippets.start(code)
    loop, entries = code.here, [MAIN]
    while code.here < 0x3D80:
        if code.here > 0x600 and random.chance(0.012):
            break
        part = Code(random, code.here)
        snippet(part)
        if code.here + len(part.data) > 0x3E80:
            break
        code.data += part.data
        if random.chance(0.2):
            entries.append(code.here)
            snippets.recover(code)
    snippets.recover(code)
    code.emit(0xC3, loop & 0xFF, loop >> 8)
    rom[MAIN : MAIN + len(code.data)] = code.data
    _entries(random, rom, entries)
    for bank in range(1, banks):
        _fill_bank(random, rom, bank, last_made)
    for bank in range(0x20, banks, 0x20):  # MBC1 shows them at 0000 in mode 1
        rom[bank * BANK : bank * BANK + 0x3FF0] = rom[:0x3FF0]
    tail = snippets.instructions(random, 14)[:14]
    rom[0x3FF0 : 0x3FF0 + len(tail)] = tail
    rom[0x3FF0 + len(tail) : 0x4000] = bytes(16 - len(tail))  # NOPs flow into the switchable bank
    return bytes(rom)


def _banks(random: Random, banks: int) -> bytes:
    """A program about banks, on a cartridge with many; half of those with 64 banks have the logo in each, as MBC1
    multicarts do."""
    weights = {bank_snippets.select: 4, bank_snippets.look: 6, bank_snippets.call: 3, snippets.snippet: 3}
    rom = bytearray(_program(random, banks, lambda code: random.weighted(weights)(code), last_made=3))
    bank_snippets.sign(rom, random)
    if banks == 64 and random.chance(0.5):
        for start in range(0, len(rom), BANK):
            rom[start + 0x104 : start + 0x134] = LOGO
    return bytes(rom)


def _loops(random: Random, banks: int) -> bytes:
    """A program of loops that are skipped."""
    weights = {
        loop_snippets.counted_loop: 10,
        loop_snippets.delay: 5,
        loop_snippets.nested_delay: 4,
        loop_snippets.vram_copy: 6,
        loop_snippets.interrupts: 2,
        snippets.snippet: 3,
    }
    return _program(random, banks, lambda code: random.weighted(weights)(code))


def _polls(random: Random, banks: int) -> bytes:
    """A program of loops that wait."""
    weights = {loop_snippets.long_poll: 10, loop_snippets.interrupts: 1, snippets.snippet: 4}
    return _program(random, banks, lambda code: random.weighted(weights)(code))


def _color(random: Random, banks: int) -> bytes:
    """A program for the Game Boy Color."""

    def snippet(code: Code) -> None:
        random.weighted(color_snippets.SNIPPETS if random.chance(0.45) else {snippets.snippet: 1})(code)

    return _program(random, banks, snippet)


def _scenes(random: Random, banks: int) -> bytes:
    """A program for the Game Boy Color that shows pictures, and switches the speed where the LCD is looked at ahead."""
    weights = {
        color_snippets.scene: 6,
        color_snippets.speed: 2,
        color_snippets.stop_outside: 2,
        color_snippets.vram_dma: 2,
        snippets.snippet: 4,
    }
    return _program(random, banks, lambda code: random.weighted(weights)(code))


def _sound(random: Random, banks: int) -> bytes:
    """A program about sound."""

    def snippet(code: Code) -> None:
        random.weighted(sound_snippets.SNIPPETS if random.chance(0.6) else {snippets.snippet: 1})(code)

    return _program(random, banks, snippet)


def _color_sound(random: Random, banks: int) -> bytes:
    """A program about sound for the Game Boy Color, with its speeds and its DMA."""
    weights = {**sound_snippets.SNIPPETS, color_snippets.speed: 2, color_snippets.vram_dma: 2}

    def snippet(code: Code) -> None:
        random.weighted(weights if random.chance(0.7) else {snippets.snippet: 1})(code)

    return _program(random, banks, snippet)


def _vectors(random: Random, rom: bytearray) -> None:
    """RST targets and interrupt handlers."""
    rom[0x0000:0x0040] = (b"\xc9" + b"\xff" * 7) * 7 + bytes((0xC3, RESTART & 0xFF, RESTART >> 8)) + b"\xff" * 5
    rom[0x0100:0x0104] = 0x00, 0xC3, MAIN & 0xFF, MAIN >> 8
    # ld sp,DFF0 / ldh a,[DIV] / and 3E / ld l,a / ld h,ENTRIES / ld a,[hl+] / ld h,[hl] / ld l,a / jp hl
    restart = bytes((0x31, 0xF0, 0xDF, 0xF0, 0x04, 0xE6, 0x3E, 0x6F, 0x26, ENTRIES >> 8, 0x2A, 0x66, 0x6F, 0xE9))
    rom[RESTART : RESTART + len(restart)] = restart
    address = 0x68
    for vector in range(0x40, 0x68, 8):
        handler = Code(random, address)
        snippets.handler(handler, vector)
        if len(handler.data) <= 8:
            rom[vector : vector + len(handler.data)] = handler.data
        elif address + len(handler.data) <= RESTART:
            rom[vector : vector + 3] = 0xC3, address & 0xFF, address >> 8
            rom[address : address + len(handler.data)] = handler.data
            address += len(handler.data)
        else:
            rom[vector] = 0xD9


def _entries(random: Random, rom: bytearray, entries: list[int]) -> None:
    """The table of addresses where a program that ran wild goes on."""
    for address in range(ENTRIES, ENTRIES + 64, 2):
        rom[address : address + 2] = random.choice(entries).to_bytes(2, "little")


def _fill_bank(random: Random, rom: bytearray, bank: int, last_made: int = 16) -> None:
    """A subroutine every 64 bytes, the bank's number at the end, code that flows over the bank's end."""
    start = bank * BANK
    if bank > last_made:
        source = random.integer(1, last_made - 1) * BANK
        rom[start : start + BANK] = rom[source : source + BANK]
    else:
        for offset in range(0, BANK, 64):
            body = snippets.subroutine(random, 0x4000 + offset)[:62]
            rom[start + offset : start + offset + len(body)] = body
    tail = snippets.instructions(random, 12)[:12]
    rom[start + 0x3FF0 : start + 0x4000] = bytes((bank & 0xFF, bank >> 8)) + tail + bytes(14 - len(tail))


def _stream(random: Random, banks: int) -> bytes:
    """Weighted random instructions in a row, with jumps anywhere nearby."""
    rom = bytearray(b"\xff" * (banks * BANK))
    _vectors(random, rom)
    code = Code(random, MAIN)
    snippets.start(code)
    entries = [MAIN]
    while code.here < 0x3E80:
        snippets.wild(code)
        if random.chance(0.01):
            entries.append(code.here)
            snippets.recover(code)
    code.emit(0xC3, MAIN & 0xFF, MAIN >> 8)
    rom[MAIN : MAIN + len(code.data)] = code.data
    _entries(random, rom, entries)
    for bank in range(1, banks):
        _fill_bank(random, rom, bank)
    return bytes(rom)


def _bytes(random: Random, banks: int) -> bytes:
    """Random bytes without illegal opcodes (data that becomes code at run time can still be one)."""
    values = random.generator.integers(0, 256, 2 * BANK, dtype=np.uint8)
    common = np.array((0x00, 0xC9, 0x3E, 0xE0, 0xF0, 0x7E, 0x1A, 0x12, 0x77, 0x2A, 0x22, 0xFB), np.uint8)
    values = np.where(random.generator.random(2 * BANK) < 0.2, random.generator.choice(common, 2 * BANK), values)
    values = np.where(np.isin(values, list(ILLEGAL)), 0, values).astype(np.uint8)
    rom = bytearray(values.tobytes() * (banks // 2))
    _vectors(random, rom)
    _entries(random, rom, [random.integer(0x150, 0x3EFF) for _ in range(32)])
    return bytes(rom)


KINDS = {
    "program": _program, "stream": _stream, "bytes": _bytes, "io-stack": io_stack_program, "banks": _banks,
    "loops": _loops, "polls": _polls, "color": _color, "color-scenes": _scenes, "sound": _sound,
    "color-sound": _color_sound,
}  # fmt: skip
