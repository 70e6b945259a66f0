"""The 16 bytes of a descriptor, which tells the data path what an instruction does (descriptor_table.py makes them).

Registers of an env are two words: lo = C | B<<8 | E<<16 | D<<24, hi = L | H<<8 | A<<16 (byte 3 is 0). Byte numbers for
PRMT selectors over (lo, hi): C0 B1 E2 D3 L4 H5 A6, 7 is always zero. Flags are one word: H bit 19, N bit 20, C bit 23,
not-Z bit 27, bit 24 always 1, the others arbitrary.

d0  selector of X | selector of Y << 16. Conditional jumps: bits 23 / 27 say that C / not-Z matters, 15 / 19 the wanted
    value. SHIFT: the selector of X makes a word of Y and flags, which is shifted right by the immediate.
d1  write-back selectors of lo | of hi << 16; nibbles 4 and 5 take the result
d2  16-bit immediate (jump targets and FF00+n worked out) | what is below | M-cycles << 28
d3  shift of X^Y^t, or Y, that puts half carry and carry in place (5 bits) | flags below | add << 25 (2 bits, signed)
    | length << 30
"""

from __future__ import annotations

from gbxcule_puffer.emulator import hardware as hw

# d3
READ, WRITE, WORD, STACK = 1 << 5, 1 << 6, 1 << 7, 1 << 8  # memory access; 16 bits; at SP
WRITE_TO_16 = 2  # WRITE >> 2 is 16
JUMP, RETURN, X_SP, TO_SP = 1 << 9, 1 << 10, 1 << 11, 1 << 12  # PC = Y; PC = the word read; X = SP; SP = result
AND, XOR, OR = 1 << 13, 1 << 14, 1 << 15
SHIFT, SUBTRACT, RARE = 1 << 16, 1 << 17, 1 << 18  # RARE: not as it is by the common path
MASK_H, MASK_N, ADJUST_HL, LOOKAHEAD, MASK_C = 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23  # MASK: the flag changes
MASK_NZ, NO_HALF, X_IMM = 1 << 27, 1 << 28, 1 << 29  # no half carry; X, not Y, takes the immediate
MASK_ALL = MASK_H | MASK_N | MASK_C | MASK_NZ
# d2: flags forced to 1; add d3's `add` to the sum if carry is set (ADD_CARRY) or always (ADD_ALWAYS)
SET_H, SET_N, ADD_CARRY, ADD_ALWAYS, SET_NZ = 1 << 19, 1 << 20, 1 << 23, 1 << 24, 1 << 27
# d2 bits 16-18: what of a RARE instruction is prepared for the common path; 0: the interpreter executes it
KIND_SHIFT = 16
KIND_CCF, KIND_DAA, KIND_POP_AF, KIND_PUSH_AF, KIND_IME = range(1, 6)
KIND_HOOK = 8  # of an instruction of the common path with a hook, which WAIT tells
LOOP = 1 << 21  # d2: a RARE instruction of the common path that begins a loop of loop_skips.py; or a STAT_POLL's first
WAIT = 1 << 26  # d2, beside LOOP: one of cpu/waits.py that only waits; alone: a hook
HALT, EI = 1 << 22, 1 << 25  # d2: the instruction is HALT, EI
SHIFT_8, SHIFT_16, SHIFT_NONE = 15, 7, 31  # half carry and carry at bits 4 and 8, at 12 and 16, none
SHIFT_BIT_0, SHIFT_BIT_7 = 23, 16  # carry at bit 0, at bit 7
NOTHING = 0x7777  # a selector of zeros

BANK_STRIDE = hw.ROM_BANK_SIZE + 1  # each bank ends with one entry that stands for code outside of the ROM


def rare_words(mark: int = 0) -> tuple[int, int, int, int]:
    """The descriptor that hands an instruction to the interpreter, with what d2 says of it."""
    return NOTHING | NOTHING << 16, 0x32103210, mark, SHIFT_NONE | RARE


def idle_words() -> tuple[int, int, int, int]:
    """The descriptor of an instruction that does nothing, takes no time and stays where it is."""
    return NOTHING | NOTHING << 16, 0x32103210, 0, SHIFT_NONE
