"""The 16 bytes of a descriptor, which describe an instruction for the data path (descriptor_table.py computes them).

Each field is declared once, by `_bits` or `_flag`. FIELDS, the constants of the device code, `Descriptor.words` and the
table in docs/internals.md (benchmarks/pages/descriptor_fields.py) follow from that.

The registers of an env are two words: lo = C | B<<8 | E<<16 | D<<24, hi = L | H<<8 | A<<16 (byte 3 is 0). A selector
has four byte numbers, one per nibble, for PRMT over (lo, hi): C0 B1 E2 D3 L4 H5 A6; 7 is always zero. The flags are one
word: H is bit 19, N bit 20, C bit 23, not-Z bit 27; bit 24 is always 1, and the others are arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.bits import Bits

Number = TypeVar("Number", int, np.ndarray)


class Field(NamedTuple):
    """Bits of a word with one meaning. `instead`: the fields to which some of them belong in other descriptors."""

    bits: Bits
    meaning: str
    instead: tuple[str, ...]


FIELDS: dict[str, Field] = {}


def _bits(name: str, word: int, low: int, width: int, meaning: str, *instead: str) -> Bits:
    """Declare a field."""
    FIELDS[name] = Field(Bits(name, word, low, width), meaning, instead)
    return FIELDS[name].bits


def _flag(name: str, word: int, bit: int, meaning: str, *instead: str) -> int:
    """Declare a field of one bit. Returns its mask."""
    return _bits(name, word, bit, 1, meaning, *instead).mask


X = _bits("X", 0, 0, 16, "selector of X; with SHIFT, of the word that is rotated, from Y and the flags")
_bits("X_BYTE_0", 0, 0, 8, "with X_IMM: byte 0 of X", "X")
X_BYTE_2 = _bits("X_BYTE_2", 0, 8, 8, "with X_IMM: byte 2 of X", "X")
NEAR = _bits("NEAR", 0, 8, 8, "of a group that ends with a jump: how far it leads, signed", "X", "X_BYTE_2")
KIND = _bits("KIND", 0, 12, 3, "with RARE: 7 minus a KIND", "X", "X_BYTE_2", "NEAR")
WANT_C = _flag("WANT_C", 0, 15, "of a conditional jump: the carry that it wants", "X", "X_BYTE_2", "NEAR")
Y = _bits("Y", 0, 16, 15, "selector of Y, to which IMM is added")
WANT_NZ = _flag("WANT_NZ", 0, 19, "of a conditional jump: the not-Z that it wants", "Y")
IF_C = _flag("IF_C", 0, 23, "of a conditional jump: it depends on the carry", "Y")
IF_NZ = _flag("IF_NZ", 0, 27, "of a conditional jump: it depends on not-Z", "Y")
TWO_MORE = _flag("TWO_MORE", 0, 31, "of a group: two instructions more")

WRITE_BACK = _bits("WRITE_BACK", 1, 0, 31, "selectors of lo and hi; 4 and 5 are the result, 6 is byte 2 of X")
ONE_MORE = _flag("ONE_MORE", 1, 31, "of a group: one instruction more")  # as a sign, of byte 3 of hi, that is 0

IMM = _bits("IMM", 2, 0, 16, "added to Y: an immediate, the target of a jump, FF00, or FF00 + an immediate")
LEAD = _bits("LEAD", 2, 16, 3, "M-cycles before a group's last instruction")
SET_H = _flag("SET_H", 2, 19, "H becomes 1")
SET_N = _flag("SET_N", 2, 20, "N becomes 1")
JR_UNLESS_C = _flag("JR_UNLESS_C", 2, 21, "with JR_BY_C: a group jumps without carry")
JR_BY_C = _flag("JR_BY_C", 2, 22, "a group jumps by the carry that its last operation leaves")
ADD_CARRY = _flag("ADD_CARRY", 2, 23, "ADD is added to the result if carry is set")
ADD_ALWAYS = _flag("ADD_ALWAYS", 2, 24, "ADD is added to the result")
JR_UNLESS_NZ = _flag("JR_UNLESS_NZ", 2, 25, "with JR_BY_NZ: a group jumps if Z is set")
JR_BY_NZ = _flag("JR_BY_NZ", 2, 26, "a group jumps by the not-Z that its last operation leaves")
LOOP = _flag("LOOP", 2, 21, "with RARE: a loop begins that can be skipped; alone: a poll of STAT begins", "JR_UNLESS_C")
WAIT = _flag("WAIT", 2, 26, "beside LOOP: that loop only waits; alone: a hook", "JR_BY_NZ")
HALT = _flag("HALT", 2, 22, "the instruction is HALT", "JR_BY_C")
EI = _flag("EI", 2, 25, "the instruction is EI", "JR_UNLESS_NZ")
SET_NZ = _flag("SET_NZ", 2, 27, "not-Z becomes 1")
LENGTH = _bits("LENGTH", 2, 29, 3, "bytes")

# Flags of word 3 that are tested one after the other share a byte, which the compiler turns into predicates at once.
SHIFT_BY = _bits("SHIFT_BY", 3, 0, 5, "how far SHIFT rotates to the right, or X^Y^result goes to the left for H and C")
READ = _flag("READ", 3, 5, "read a byte of memory: that is Y then")
ADD = _bits("ADD", 3, 6, 2, "-1, 0 or 1, signed")
SUBTRACT = _flag("SUBTRACT", 3, 8, "the result is X - Y, without this and the next four X + Y")
AND = _flag("AND", 3, 9, "the result is X AND Y")
XOR = _flag("XOR", 3, 10, "the result is X XOR Y")
OR = _flag("OR", 3, 11, "the result is X OR Y")
RARE = _flag("RARE", 3, 12, "not for the common path as it is")
WRITE = _flag("WRITE", 3, 13, "write a byte to memory: X, or the result of what is read")
SHIFT = _flag("SHIFT", 3, 14, "the result is the rotated word")
TIME = _bits("TIME", 3, 15, 4, "M-cycles, without 1 of JUMP and 2 of STACK")
MASK_H = _flag("MASK_H", 3, 19, "H changes")
MASK_N = _flag("MASK_N", 3, 20, "N changes")
LOOKAHEAD = _flag("LOOKAHEAD", 3, 21, "the access looks ahead at LCD and locks")
X_SP = _flag("X_SP", 3, 22, "X is SP or, with STACK, the next PC")
MASK_C = _flag("MASK_C", 3, 23, "C changes")
TO_SP = _flag("TO_SP", 3, 24, "SP becomes the result")
ADJUST_HL = _flag("ADJUST_HL", 3, 25, "HL becomes the address + ADD")
WRITE_WORD = _flag("WRITE_WORD", 3, 26, "beside WRITE: of 16 bits")
MASK_NZ = _flag("MASK_NZ", 3, 27, "Z changes")
READ_WORD = _flag("READ_WORD", 3, 28, "beside READ: of 16 bits")
X_IMM = _flag("X_IMM", 3, 29, "X is an immediate")
JUMP = _flag("JUMP", 3, 30, "the next PC is Y")
STACK = _flag("STACK", 3, 31, "the access is at SP, which changes by 2 * ADD")

ACCESSES = READ | WRITE | READ_WORD | LOOKAHEAD  # as in areas.py; each flag 7 or 8 bits after the last
WORD = READ_WORD | WRITE_WORD
MASK_ALL = MASK_H | MASK_N | MASK_C | MASK_NZ
MARKS = LOOP | WAIT | HALT | EI
# How slow_path.prepare prepares a RARE instruction for the common path; 0: the interpreter executes it
KIND_CCF, KIND_DAA, KIND_POP_AF, KIND_PUSH_AF, KIND_IME = range(1, 6)
KIND_HOOK = 8  # a common instruction with a hook, marked by WAIT
SHIFT_8, SHIFT_16, SHIFT_NONE = 15, 7, 31  # SHIFT_BY: half carry and carry at bits 4 and 8, at 12 and 16, none
NOTHING = 0x7777  # a selector of zeros
KEEP = 0x32103210  # a write-back that changes nothing

BANK_STRIDE = hw.ROM_BANK_SIZE + 1  # each bank ends with one entry for code outside of the ROM


@dataclass
class Descriptor(Generic[Number]):
    """The fields of a descriptor; or of many, each an int64 array with an element for each descriptor."""

    x: Number  # with X_IMM byte 0 and byte 2; a group that jumps has NEAR instead of byte 2
    y: Number
    condition: Number  # flags of word 0
    write_back: Number
    imm: Number
    constants: Number  # flags of word 2
    flags: Number  # of word 3
    shift_by: Number
    add: Number
    m_cycles: Number
    length: Number  # bytes
    lead: Number
    count: Number  # instructions

    def words(self) -> tuple[Number, Number, Number, Number]:
        """The four words."""
        flow, more = flow_m_cycles(self.flags), self.count - 1
        d0 = X.put(self.x) + Y.put(self.y) + self.condition + (more >> 1) * TWO_MORE
        d1 = self.write_back + (more & 1) * ONE_MORE
        d2 = IMM.put(self.imm) + LEAD.put(self.lead) + LENGTH.put(self.length) + self.constants
        d3 = ADD.put(self.add & ADD.most) + TIME.put(self.m_cycles - flow) + self.shift_by + self.flags
        return d0, d1, d2, d3


def flow_m_cycles(flags: Number) -> Number:
    """M-cycles of JUMP and STACK: the time that an instruction saves when its condition fails."""
    return (flags & JUMP) // JUMP + (flags & STACK) // STACK * 2


def nothing(constants: int = 0, flags: int = 0) -> Descriptor[int]:
    """An instruction that does nothing, takes no time and stays at its address, except for the effects of the flags."""
    return Descriptor(NOTHING, NOTHING, 0, KEEP, 0, constants, flags, SHIFT_NONE, 0, 0, 0, 0, 1)


def rare_words(mark: int = 0) -> tuple[int, int, int, int]:
    """The descriptor that leaves an instruction to the interpreter, with the flags of word 2."""
    return nothing(mark, RARE).words()


def idle_words() -> tuple[int, int, int, int]:
    """The descriptor of an instruction that does nothing, takes no time and stays at its address."""
    return nothing().words()
