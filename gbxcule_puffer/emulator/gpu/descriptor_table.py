"""The descriptor of each instruction, computed from isa.py, and a table with a descriptor for each byte of a ROM.

gpu/descriptors.py declares the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu import fusion
from gbxcule_puffer.emulator.gpu.descriptors import Descriptor
from gbxcule_puffer.emulator.isa import Instruction
from gbxcule_puffer.emulator.loops.codes import first_loops, stat_polls
from gbxcule_puffer.emulator.loops.find import find_loops

BYTE = {"c": 0, "b": 1, "e": 2, "d": 3, "l": 4, "h": 5, "a": 6}
PAIRS = {"bc": 0x7710, "de": 0x7732, "hl": 0x7754, "af": 0x7767}  # of AF, A: slow_path.glance adds F
SELECTOR = {name: 0x7770 | byte for name, byte in BYTE.items()} | PAIRS
# How the bytes after the opcode form an immediate
IMM_NONE, IMM_8, IMM_16, IMM_FF00, IMM_RELATIVE, IMM_SIGNED = range(6)
IMM_KINDS = {
    "imm8": IMM_8, "imm16": IMM_16, "[imm8]": IMM_FF00, "[imm16]": IMM_16, "relative": IMM_RELATIVE,
    "signed": IMM_SIGNED,
}  # fmt: skip
CONDITION = {"nz": ds.IF_NZ | ds.WANT_NZ, "z": ds.IF_NZ, "c": ds.IF_C | ds.WANT_C, "nc": ds.IF_C}
H_N_NZ, H_N_C = ds.MASK_H | ds.MASK_N | ds.MASK_NZ, ds.MASK_H | ds.MASK_N | ds.MASK_C
PUSH, POP = ds.STACK | ds.WRITE | ds.WRITE_WORD, ds.STACK | ds.READ | ds.READ_WORD


class Row(NamedTuple):
    """The action of a family. An operand is a name, or the number of one in the mnemonic."""

    x: str | int = ""
    y: str | int = ""
    to: str | int = ""  # what the result is written to
    flags: int = 0  # of word 3
    constants: int = 0  # of word 2
    add: int = 0
    shift_by: int = ds.SHIFT_NONE
    selector: int = ds.NOTHING  # of X, without an operand
    imm: int = 0
    kind: int = 0


def _rotate(selector: int, shift_by: int) -> Row:
    """A rotate or shift. It rotates a word of bytes 0, 1 and 3: 0 is the operand, 1 is zero, 6 has the carry in bit 7,
    and 8 and E have bit 7 of the operand and the carry in all bits. After the rotation, bit 23 is the carry."""
    return Row(y=0, to=0, flags=ds.SHIFT | ds.MASK_ALL, selector=selector, shift_by=shift_by)


# By family or operation. The interpreter executes HALT, STOP and all families that are missing here.
ROWS = {
    "nop": Row(),
    "load8": Row(y=1, to=0),
    "load16": Row(y=1, to=0),
    "store_sp": Row(y=1, to=0, flags=ds.WRITE_WORD),
    "add": Row("a", 1, "a", ds.MASK_ALL, shift_by=ds.SHIFT_8),
    "adc": Row("a", 1, "a", ds.MASK_ALL, ds.ADD_CARRY, 1, ds.SHIFT_8),
    "sub": Row("a", 1, "a", ds.MASK_ALL | ds.SUBTRACT, ds.SET_N, shift_by=ds.SHIFT_8),
    "sbc": Row("a", 1, "a", ds.MASK_ALL | ds.SUBTRACT, ds.SET_N | ds.ADD_CARRY, -1, ds.SHIFT_8),
    "cp": Row("a", 1, "", ds.MASK_ALL | ds.SUBTRACT, ds.SET_N, shift_by=ds.SHIFT_8),
    "and": Row("a", 1, "a", ds.MASK_ALL | ds.AND, ds.SET_H),
    "xor": Row("a", 1, "a", ds.MASK_ALL | ds.XOR),
    "or": Row("a", 1, "a", ds.MASK_ALL | ds.OR),
    "inc8": Row("", 0, 0, H_N_NZ, ds.ADD_ALWAYS, 1, ds.SHIFT_8),
    "dec8": Row("", 0, 0, H_N_NZ, ds.ADD_ALWAYS | ds.SET_N, -1, ds.SHIFT_8),
    "inc16": Row(y=0, to=0, constants=ds.ADD_ALWAYS, add=1),
    "dec16": Row(y=0, to=0, constants=ds.ADD_ALWAYS, add=-1),
    "add16": Row(1, "hl", "hl", H_N_C, shift_by=ds.SHIFT_16),
    "add_sp": Row("sp", "signed", 0, ds.MASK_ALL, ds.SET_NZ, shift_by=ds.SHIFT_8),
    "rrc": _rotate(0x0100, 1),
    "rr": _rotate(0x01E0, 1),
    "sra": _rotate(0x0180, 1),
    "srl": _rotate(0x0110, 1),
    "rlc": _rotate(0x8100, 7),
    "rl": _rotate(0x8106, 7),
    "sla": _rotate(0x8101, 7),
    "swap": _rotate(0x1100, 4),
    "bit": Row(x=1, flags=ds.AND | H_N_NZ, constants=ds.SET_H),
    "res": Row(x=1, to=1, flags=ds.AND),
    "set": Row(x=1, to=1, flags=ds.OR),
    "cpl": Row("a", "", "a", ds.XOR | ds.MASK_H | ds.MASK_N, ds.SET_H | ds.SET_N, imm=0xFF),
    # 10000h and 0, whose carries are those of an AND: all bits of both
    "scf": Row(flags=ds.AND | ds.X_IMM | H_N_C, shift_by=ds.SHIFT_16, selector=0x100),
    "ccf": Row(flags=H_N_C, kind=ds.KIND_CCF),
    "daa": Row(to="a", flags=ds.MASK_ALL, kind=ds.KIND_DAA),
    "push": Row(x=0, flags=PUSH, add=-1),
    "push af": Row(x=0, flags=PUSH, add=-1, kind=ds.KIND_PUSH_AF),
    "pop": Row(to=0, flags=POP, add=1),
    "pop af": Row(flags=POP, add=1, kind=ds.KIND_POP_AF),
    "jump": Row(y=-1, flags=ds.JUMP),
    "jump_relative": Row(y="relative", flags=ds.JUMP),
    "call": Row("sp", -1, flags=ds.JUMP | PUSH, add=-1),
    "ret": Row(flags=ds.JUMP | POP, add=1),
    "reti": Row(flags=ds.JUMP | POP, add=1, kind=ds.KIND_IME),
    "di": Row(kind=ds.KIND_IME),
    "ei": Row(kind=ds.KIND_IME, constants=ds.EI),
}


KEYS = {"alu8": "alu", "rotate": "rotate", "rotate_a": "rotate"}  # families whose operation is an operand


def describe(instruction: Instruction | None) -> tuple[Descriptor[int], int]:
    """The descriptor of an instruction without its immediate, and the immediate's kind. None for an illegal opcode."""
    if instruction is None:
        return ds.nothing(flags=ds.RARE), IMM_NONE
    family, operands = instruction.family, instruction.operands
    names = isa.operand_names(instruction.mnemonic) or ["a"]
    key = operands[KEYS[family]] if family in KEYS else family
    row = ROWS.get(f"{key} af" if "af" in names else key)
    if row is None:
        return ds.nothing(ds.HALT if family == "halt" else 0, ds.RARE), IMM_NONE
    d = ds.nothing(row.constants | (ds.SET_NZ if family == "rotate_a" else 0), row.flags)
    d.m_cycles, d.length, d.add, d.shift_by = instruction.m_cycles_taken, instruction.length, row.add, row.shift_by
    d.condition = CONDITION[operands["cond"]] if "cond" in operands else 0
    d.imm = 1 << int(operands["bit"]) ^ (0xFF if family == "res" else 0) if "bit" in operands else row.imm
    x, y, to = (names[each] if isinstance(each, int) else each for each in (row.x, row.y, row.to))
    if "[" in x:  # memory is Y, so an immediate becomes X
        x, y = "imm", x
    if "[" in to:
        d.flags |= ds.WRITE
    if "[" in to and y != to:  # an operand that is not read is stored from X
        x, y = y, to
    elif "[" in y:
        d.flags |= ds.READ
    kind = IMM_KINDS.get(y, IMM_8 if x == "imm8" else IMM_NONE)
    if "imm" in x:
        d.flags, d.x, d.imm = d.flags | ds.X_IMM, d.imm, 0
    elif "sp" in (x, y):
        d.flags |= ds.X_SP
    else:
        d.x = SELECTOR.get(x, row.selector)
    if y == "[c]":
        d.y, d.imm = SELECTOR["c"], 0xFF00
    elif y.isdecimal():
        d.imm = int(y)
    else:
        d.y = SELECTOR.get(y.strip("[+-]"), ds.NOTHING)
    if y in ("[hl+]", "[hl-]"):
        d.flags, d.add = d.flags | ds.ADJUST_HL, 1 if y == "[hl+]" else -1
    if to == "sp":
        d.flags |= ds.TO_SP
    elif to in SELECTOR:
        first, selectors, mask = (BYTE[to], 4, 0xF) if to in BYTE else (BYTE[to[1]], 0x54, 0xFF)
        d.write_back = d.write_back & ~(mask << 4 * first) | selectors << 4 * first
    if row.kind:
        d.flags, d.x = d.flags | ds.RARE, d.x ^ row.kind << ds.KIND.shift
    d.flags |= ds.LOOKAHEAD if instruction.opcode in isa.LOOKAHEAD_OPCODES else 0
    return d, kind


@cache
def opcode_table() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Fields of the descriptors of the 512 opcodes (CB page from 256), each (512,) int64, and the kinds of their
    immediates."""
    found = [describe(isa.expand().get(opcode)) for opcode in range(512)]
    names = [field.name for field in fields(Descriptor)]
    columns = {name: np.array([getattr(d, name) for d, _ in found], np.int64) for name in names}
    return columns, np.array([kind for _, kind in found])


def rom_table(data: bytes, sound: bool = False) -> np.ndarray:
    """Descriptors of all bytes of a ROM, shape (2 * entries, 4), int32: first with groups of instructions (fusion.py),
    then without; sound: as in find_loops.

    Bank b begins at b * BANK_STRIDE; banks 1 and up are as at address 4000. Then come bank 0 as at 4000, a bank of RARE
    entries (for other banks at 0000), and one idle entry. The last three entries of each bank are RARE.
    """
    size = hw.ROM_BANK_SIZE
    waits = np.array([loop.begin for loop in find_loops(data, sound) if loop.only_waits], np.int64)
    banks = range(len(data) // size)
    texts = [data[bank * size : (bank + 1) * size] for bank in banks]
    tables = [
        _bank_tables(texts[bank], size * (bank > 0), tuple((waits[waits // size == bank] % size).tolist()))
        for bank in banks
    ]
    tables.append(_bank_tables(texts[0], size, ()))
    rest = _as_words([*np.array([ds.rare_words()] * ds.BANK_STRIDE + [ds.idle_words()]).T])
    groups, singles = zip(*tables, strict=True)
    return np.concatenate([*groups, rest, *singles, rest])


def _as_words(words: Sequence[np.ndarray]) -> np.ndarray:
    """Words 0 to 3 of the table's entries, shape (entries, 4), int32."""
    return np.stack(words, axis=1).astype(np.uint32).view(np.int32)


@lru_cache(128)  # many ROMs have empty banks, and most processes several emulators of one game
def _bank_tables(text: bytes, first: int, waits: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Descriptors of a bank with the bytes `text` as at address `first`, with groups and without, each (BANK_STRIDE, 4)
    int32. `waits`: indices in the bank at which loops begin that only wait."""
    size = hw.ROM_BANK_SIZE
    byte = np.append(np.frombuffer(text, np.uint8), (0, 0, 0)).astype(np.int64)
    opcode, low, high = byte[:-2], byte[1:-1], byte[2:]
    opcode = np.where(opcode == 0xCB, 0x100 | low, opcode)
    opcode[size - 2 :] = isa.ILLEGAL[0]
    address, signed = first + np.arange(size + 1), (low ^ 0x80) - 0x80
    immediates = [0 * low, low, low | high << 8, 0xFF00 | low, address + 2 + signed & 0xFFFF, signed & 0xFFFF]
    columns, kinds = opcode_table()
    parts = fusion.Parts(**{name: column[opcode] for name, column in columns.items()}, address=address)
    imm, is_x = np.choose(kinds[opcode], immediates), parts.has(ds.X_IMM)
    parts.x |= imm * is_x
    parts.imm |= imm * ~is_x
    loops = [at for loop in first_loops() for at in _find(text, loop.code)]
    parts.constants[list(stat_polls(text, 0, size - 3))] |= ds.LOOP
    parts.constants[loops] |= ds.LOOP
    parts.flags[loops] |= ds.RARE
    begins = np.array(waits, np.int64)
    begins = begins[~parts.has(ds.RARE)[begins]]
    parts.constants[begins] |= ds.LOOP | ds.WAIT
    parts.flags[begins] |= ds.RARE
    return _as_words(fusion.fuse(parts).words()), _as_words(parts.words())


def _find(text: bytes, code: bytes) -> Iterator[int]:
    """The indices in a bank at which a loop begins."""
    at = -1
    while (at := text.find(code, at + 1, hw.ROM_BANK_SIZE - 3)) >= 0:
        yield at
