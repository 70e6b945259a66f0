"""The table of descriptors: what the data path leaves to the interpreter, and what it shifts as that does."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import torch

from benchmarks.pages import descriptor_fields
from gbxcule_puffer.emulator import Emulator, isa
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.descriptor_table import describe
from tests.support.roms import tiny_rom

CALCULATED = {"rotate", "rotate_a", "scf", "ccf", "cpl", "daa"}
TAKEN_FROM = {"a": 0x78, "b": 0x40, "c": 0x48, "d": 0x50, "e": 0x58, "h": 0x60, "l": 0x68, "[hl]": 0x70}  # ld TARGET,b


def test_bits_that_fields_share_are_declared() -> None:
    """Two fields have the same bits only where one says that it stands there instead of the other."""
    for (name, field), (name_2, field_2) in combinations(ds.FIELDS.items(), 2):
        shares = field.bits.word == field_2.bits.word and field.bits.mask & field_2.bits.mask != 0
        assert shares == (name in field_2.instead or name_2 in field.instead), f"{name} and {name_2}"
    assert all(name in ds.FIELDS for field in ds.FIELDS.values() for name in field.instead)


def test_constants_are_the_fields() -> None:
    """A flag's constant has the flag's name, for which the documentation and the device code look."""
    flags = {name: field.bits.mask for name, field in ds.FIELDS.items() if field.bits.width == 1}
    assert len(flags) > 30
    assert {name: getattr(ds, name) for name in flags} == flags


def test_the_documented_fields_are_the_declared_ones() -> None:
    text = descriptor_fields.PAGE.read_text()
    assert descriptor_fields.page(text) == text, "run `python -m benchmarks.pages.descriptor_fields`"


def test_an_instruction_of_a_new_family_is_the_interpreters() -> None:
    """So that an instruction is added by its row and its template alone."""
    nop = isa.expand()[0x00]
    assert not describe(nop)[0].flags & ds.RARE
    assert describe(replace(nop, family="neg"))[0].flags & ds.RARE
    rare = {each.family for each in isa.expand().values() if describe(each)[0].flags & ds.RARE}
    assert {"daa", "halt", "stop"} <= rare


def calculations() -> list[isa.Instruction]:
    """The instructions that work on one byte and the flags alone, but for increments and logic."""
    return [each for each in isa.expand().values() if each.family in CALCULATED]


def program(instruction: isa.Instruction) -> bytes:
    """Code that runs an instruction on all bytes, with carry, without, and after a subtraction. Registers and a byte of
    memory go to the stack then."""
    names = isa.operand_names(instruction.mnemonic)
    target = names[0] if names and names[0] in TAKEN_FROM else "a"
    code = bytes([0xCB] * (instruction.opcode > 0xFF) + [instruction.opcode & 0xFF])
    once = bytes([TAKEN_FROM[target]]) + code + bytes.fromhex("F5 C5 D5 E5 7E 3C F5")  # push af bc de hl, [hl] + 1
    body = b""
    for flags in ("AF", "37", "AF D6 11"):  # xor a; scf; xor a / sub $11
        # ld hl,$C080 / ld a,[$C000] / ld b,a
        body += bytes.fromhex("21 80 C0 FA 00 C0 47" + flags) + once
    body += bytes.fromhex("FA 00 C0 3C EA 00 C0")  # inc [$C000]
    # ld sp,$DFF0 / xor a / ld [$C000],a / loop: ... / jr nz,loop / end: jr end
    return bytes.fromhex("31 F0 DF AF EA 00 C0") + body + bytes([0x20, -(len(body) + 2) & 0xFF]) + b"\x18\xfe"


@pytest.mark.parametrize("instruction", calculations(), ids=lambda each: each.mnemonic)
def test_every_byte_is_shifted_as_by_the_interpreter(tmp_path: Path, instruction: isa.Instruction) -> None:
    """Registers and memory, with all flags."""
    rom = tiny_rom(tmp_path / "shifts.gb", program(instruction))
    memories = []
    for kernel in ("interpreter", "datapath"):
        emulator = Emulator(rom, 1, kernel=kernel)
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        memories.append(emulator.memory[0, : 0xE000 - 0x8000].clone())
        emulator.close()
    written = memories[0][0xC400 - 0x8000 : 0xDFF0 - 0x8000]
    assert memories[0][0xC000 - 0x8000] == 0 and len(written.unique()) > 100, "the program has not come to its end"
    assert torch.equal(*memories)
