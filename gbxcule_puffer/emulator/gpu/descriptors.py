"""The 16 bytes of a descriptor, which tells the data path what an instruction does (descriptor_table.py makes them).

Registers of an env are two words: lo = C | B<<8 | E<<16 | D<<24, hi = L | H<<8 | A<<16 (byte 3 is 0). Byte numbers for
PRMT selectors over (lo, hi): C0 B1 E2 D3 L4 H5 A6, 7 is always zero. Flags are one word: H bit 19, N bit 20, C bit 23,
not-Z bit 27, bit 24 always 1, the others arbitrary.

d0  selector of X | selector of Y << 16. Conditional jumps: bits 23 / 27 say that C / not-Z matters, 15 / 19 the wanted
    value. X_IMM: bits 0-7 are byte 0 of X, bits 8-15 its byte 2. SHIFT: the selector of X makes a word of Y and flags,
    which is rotated to the right. RARE: bits 12-14 are 7 minus a KIND. A group with JR or JP: bits 8-15 say how far it
    jumps | TWO_MORE
d1  write-back selectors of lo | of hi << 16; nibbles 4 and 5 take the result, 6 byte 2 of X | ONE_MORE
d2  16-bit immediate of Y (jump targets and FF00+n worked out) | M-cycles before a group's last instruction << 16
    (3 bits) | what is below | length << 29
d3  shift of X^Y^t that puts half carry and carry in place, or how far SHIFT rotates (5 bits) | add << 6 (2 bits,
    signed) | M-cycles << 15 (4 bits), without one of JUMP and two of STACK | flags below
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from gbxcule_puffer.emulator import hardware as hw

Words = TypeVar("Words", int, np.ndarray)

# d3. Flags that are tested one after the other stand in one byte, which is then made predicates at once.
READ, WRITE, READ_WORD, WRITE_WORD = 1 << 5, 1 << 13, 1 << 28, 1 << 26  # memory access; of 16 bits beside READ, WRITE
LOOKAHEAD, RARE = 1 << 21, 1 << 12  # RARE: not as it is by the common path
ACCESSES = READ | WRITE | READ_WORD | LOOKAHEAD  # what areas.py says of each area; each 7 or 8 bits behind the last
WORD = READ_WORD | WRITE_WORD
SUBTRACT, AND, XOR, OR = 1 << 8, 1 << 9, 1 << 10, 1 << 11
JUMP, SHIFT = 1 << 30, 1 << 14  # PC = Y, or what is read
STACK, X_SP, X_IMM = 1 << 31, 1 << 22, 1 << 29  # access at SP; X = SP or, with STACK, the next PC; X is an immediate
ADJUST_HL, TO_SP = 1 << 25, 1 << 24  # HL = address + add; SP = result
MASK_H, MASK_N, MASK_C, MASK_NZ = 1 << 19, 1 << 20, 1 << 23, 1 << 27  # the flag changes
ADD_SHIFT, TIME_SHIFT, MOST_TIME = 6, 15, 15
MASK_ALL = MASK_H | MASK_N | MASK_C | MASK_NZ
# d2: flags forced to 1; add d3's `add` to the sum if carry is set (ADD_CARRY) or always (ADD_ALWAYS)
SET_H, SET_N, ADD_CARRY, ADD_ALWAYS, SET_NZ = 1 << 19, 1 << 20, 1 << 23, 1 << 24, 1 << 27
# d1, d0: one and two instructions more, of a group (fusion.py). A sign of byte 3 of hi is 0, as that byte is.
ONE_MORE, TWO_MORE = 1 << 31, 1 << 31
LEAD_SHIFT, LENGTH_SHIFT = 16, 29  # d2
# What of a RARE instruction is prepared for the common path; 0: the interpreter executes it
KIND_SHIFT = 12  # d0
KIND_CCF, KIND_DAA, KIND_POP_AF, KIND_PUSH_AF, KIND_IME = range(1, 6)
KIND_HOOK = 8  # of an instruction of the common path with a hook, which WAIT tells
LOOP = 1 << 21  # d2: a RARE instruction of the common path that begins a loop of loop_skips.py; or a STAT_POLL's first
WAIT = 1 << 26  # d2, beside LOOP: one of cpu/waits.py that only waits; alone: a hook
HALT, EI = 1 << 22, 1 << 25  # d2: the instruction is HALT, EI
# d2 of a group that ends with JR or JP: C / not-Z says whether it jumps, where it is not as in bits 21 / 25. The same
# bits as the four above, which no group has.
JR_BY_C, JR_UNLESS_C, JR_BY_NZ, JR_UNLESS_NZ = 1 << 22, 1 << 21, 1 << 26, 1 << 25
SHIFT_8, SHIFT_16, SHIFT_NONE = 15, 7, 31  # half carry and carry at bits 4 and 8, at 12 and 16, none
NOTHING = 0x7777  # a selector of zeros

BANK_STRIDE = hw.ROM_BANK_SIZE + 1  # each bank ends with one entry that stands for code outside of the ROM


def rare_words(mark: int = 0) -> tuple[int, int, int, int]:
    """The descriptor that hands an instruction to the interpreter, with what d2 says of it."""
    return NOTHING | NOTHING << 16, 0x32103210, mark, SHIFT_NONE | RARE


def idle_words() -> tuple[int, int, int, int]:
    """The descriptor of an instruction that does nothing, takes no time and stays where it is."""
    return NOTHING | NOTHING << 16, 0x32103210, 0, SHIFT_NONE


def flow_m_cycles(d3: Words) -> Words:
    """M-cycles that JUMP and STACK stand for: what a condition that fails saves."""
    return (d3 & JUMP) // JUMP + (d3 & STACK) // STACK * 2
