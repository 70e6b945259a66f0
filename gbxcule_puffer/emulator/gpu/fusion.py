"""Up to four instructions that the data path executes in one turn, with one descriptor.

They are what one descriptor can do anyway, as far as they do not need the same part of it:

- a move, which is LD of a register or an immediate, and any instruction, in either order: byte 2 of X is moved;
- LD A,[address] and an operation on A and a register or an immediate; LD A,[address] twice;
- LD HL,imm16 or INC HL and an access to [HL]; an access to [HL] and INC HL or DEC HL;
- SRL, SRA or RR of a register and RR of another;
- an operation on a byte and, by its flags, JR or JP to a place as near, in the same bank.

Only the last is a jump. Each place of the ROM has a group of its own, so it does not matter where a jump leads. If the
last instruction begins at an event or later, or the access is not to plain memory, the data path executes the first by
itself (slow_path.part).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds

MOST_INSTRUCTIONS, MOST_BYTES, MOST_LEAD = 4, 7, 7
A, L, H, RESULT, RESULT_HIGH, MOVED = 6, 4, 5, 4, 5, 6  # byte numbers, and selectors of a write-back
A_ALONE, HL_ALONE, NO_WRITE = 0x34103210, 0x32543210, 0x32103210
FROM_A, FROM_HL = 0x7776, 0x7754
ACCESS, FLOW, MEMORY = ds.READ | ds.WRITE, ds.JUMP, ds.READ | ds.LOOKAHEAD | ds.ADJUST_HL
CONSTANTS = ds.SET_H | ds.SET_N | ds.ADD_CARRY | ds.ADD_ALWAYS | ds.SET_NZ
ADDS = ds.ADD_CARRY | ds.ADD_ALWAYS
ADD, ADD_ONE = 3 << ds.ADD_SHIFT, 1 << ds.ADD_SHIFT
NOT_TIME = 0xFFFFFFFF & ~(0xF << ds.TIME_SHIFT)
MARKS = ds.LOOP | ds.WAIT | ds.HALT | ds.EI
JR_FLAGS = ds.JR_BY_C | ds.JR_UNLESS_C | ds.JR_BY_NZ | ds.JR_UNLESS_NZ
RR = 0x01E0
ZERO_AS_TOP = {0x0110: 2, 0x0180: 9, RR: 0xE}  # SRL, SRA, RR: selector of what comes to bit 7, behind two bytes

Words = tuple[np.ndarray, Sequence[np.ndarray]]  # where a rule applies, and d0 to d3 there


class _Plain:
    """The parts of descriptors, each an int64 array of one number for each of them."""

    def __init__(self, words: np.ndarray, addresses: np.ndarray) -> None:
        self.addresses = addresses
        self.length = words[:, 2] >> ds.LENGTH_SHIFT
        self.d0, self.d1, self.d2, self.d3 = words.T
        self.count = (self.d0 >> 31 & 1) * 2 + (self.d1 >> 31 & 1) + 1
        self.d0 = self.d0 & ~ds.TWO_MORE
        self.d1 = self.d1 & ~ds.ONE_MORE
        self.m_cycles = (self.d3 >> ds.TIME_SHIFT & 0xF) + ds.flow_m_cycles(self.d3)
        self.x, self.y = self.d0 & 0xFFFF, self.d0 >> 16
        self.imm = self.d2 & 0xFFFF
        self.is_single = self.count == 1
        self.jumps = ~self.is_single & (self.d2 & JR_FLAGS != 0)
        self.has_x_imm = self.has(ds.X_IMM)
        self.has_address = self.has(ACCESS) & ~self.has(ds.STACK)  # in Y
        self.is_shift = self.has(ds.SHIFT)
        self.adjusts = self.has(ds.ADJUST_HL)
        self.takes_x = ~self.has_x_imm & ~self.has(ds.X_SP)
        writes = [_nibble(self.d1, shift) for shift in range(0, 28, 4)]
        self.moves = np.logical_or.reduce([nibble == MOVED for nibble in writes])
        self.shifts_two = self.is_shift & np.logical_or.reduce([nibble == RESULT_HIGH for nibble in writes])
        # An address that is an immediate alone says whether memory there may be plain.
        may_be_plain = (self.imm < hw.OAM) & ~(self.has(ds.WRITE) & (self.imm < hw.VRAM))
        may_be_plain |= (self.imm >= hw.HRAM) & (self.imm != hw.IE)
        may_be_plain |= (self.y != ds.NOTHING) & (self.imm <= 1)
        may_be_plain |= (self.imm == hw.P1) & (self.y == ds.NOTHING) & ~self.has(ds.WRITE)
        self.is_special = self.has_address & ~may_be_plain
        # The only byte that is written back, from byte 0 of the result, or -1; of a move, the source or, where that is
        # -1, the immediate
        flags = self.d3 & NOT_TIME == ds.SHIFT_NONE
        self.target = np.full(len(words), -1)
        for byte in range(7):
            alone = NO_WRITE & ~(0xF << 4 * byte) | RESULT << 4 * byte
            self.target[self.d1 == alone] = byte
        source = self.y & 0xF
        is_byte = self.y == 0x7770 | source
        has_imm = (self.y == ds.NOTHING) & (self.imm < 0x100)
        is_move = flags & (self.d2 & CONSTANTS == 0) & (self.x == ds.NOTHING) & (self.imm * ~has_imm == 0)
        self.is_move = self.is_single & is_move & (self.target >= 0) & (is_byte | has_imm)
        self.source = np.where(has_imm, -1, source)

    def has(self, flags: int) -> np.ndarray:
        """True where d3 has any of the flags."""
        return self.d3 & flags != 0


def fuse(words: np.ndarray, address: int) -> np.ndarray:
    """Descriptors of a bank's places, shape (entries, 4), int64, with those of groups where there are any. `address`:
    of the first."""
    fused = words.copy()
    has_length = words[:, 2] >> ds.LENGTH_SHIFT != 0  # as all but the idle entry
    is_plain = (words[:, 3] & ds.RARE == 0) & (words[:, 2] & MARKS == 0) & has_length
    places = np.flatnonzero(is_plain)
    for _ in range(MOST_INSTRUCTIONS - 1):
        behind = places + (fused[places, 2] >> ds.LENGTH_SHIFT)
        places = places[is_plain[np.minimum(behind, len(words) - 1)] & (behind < len(words))]
        places = places[fused[places, 3] & FLOW == 0]
        behind = places + (fused[places, 2] >> ds.LENGTH_SHIFT)
        first, second = _Plain(fused[places], address + places), _Plain(words[behind], address + behind)
        found, joined = _join(first, second)
        places = places[found]
        fused[places] = joined[found]
    return fused


def _join(first: _Plain, second: _Plain) -> tuple[np.ndarray, np.ndarray]:
    """Where a rule applies, and the descriptors there, shape (entries, 4)."""
    lead, m_cycles, length = first.m_cycles, first.m_cycles + second.m_cycles, first.length + second.length
    free = ~first.is_special & ~second.is_special & ~first.jumps & (lead <= MOST_LEAD) & (length <= MOST_BYTES)
    joined = np.zeros((len(free), 4), np.int64)
    for rule in RULES:
        found, words = rule(first, second)
        at = np.flatnonzero(found & free)
        d0, d1, d2, d3 = (word[at] for word in words)
        time = m_cycles[at] - ds.flow_m_cycles(d3) - (1 if rule is _jump_second else 0)  # of a jump that is not taken
        d0 = d0 | (first.count[at] >> 1) * ds.TWO_MORE
        d1 = d1 | (first.count[at] & 1) * ds.ONE_MORE
        d2 = d2 & (CONSTANTS | JR_FLAGS | 0xFFFF) | lead[at] << ds.LEAD_SHIFT | length[at] << ds.LENGTH_SHIFT
        d3 = d3 & NOT_TIME | time << ds.TIME_SHIFT
        fits = time <= ds.MOST_TIME
        joined[at[fits]] = np.stack([d0, d1, d2, d3], axis=1)[fits]
        free[at[fits]] = False
    return joined[:, 2] != 0, joined  # a group has a length


def _nibble(word: np.ndarray, shift: int) -> np.ndarray:
    return (word >> shift) & 0xF


def _reads(selectors: np.ndarray, byte: np.ndarray | int) -> np.ndarray:
    """True where one of four selectors is that of a byte."""
    return np.logical_or.reduce([_nibble(selectors, shift) == byte for shift in (0, 4, 8, 12)])


def _replace(selectors: np.ndarray, byte: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Selectors of one byte replaced by those of another."""
    nibbles = [_nibble(selectors, shift) for shift in (0, 4, 8, 12)]
    return np.bitwise_or.reduce([np.where(n == byte, by, n) << 4 * k for k, n in enumerate(nibbles)])


def _put(word: np.ndarray, byte: np.ndarray, value: np.ndarray | int) -> np.ndarray:
    """The nibble of a byte's write-back replaced."""
    shift = 4 * np.maximum(byte, 0)
    return word & ~(0xF << shift) | value << shift


def _written(plain: _Plain, byte: np.ndarray) -> np.ndarray:
    """The selector of the write-back of a byte, -1 where it is not written."""
    nibble = (plain.d1 >> 4 * np.maximum(byte, 0)) & 0xF
    return np.where(nibble == np.maximum(byte, 0) % 4, -1, nibble)


def _with_moved_register(plain: _Plain, x: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where X has room for a register in byte 2, and the selectors with it."""
    return plain.takes_x & ~plain.moves & ~plain.shifts_two, x & 0xF0FF | np.maximum(source, 0) << 8


def _with_moved_immediate(plain: _Plain, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where X has room for an immediate in byte 2, and X with it."""
    is_free = (plain.takes_x & ~plain.is_shift & (plain.x == ds.NOTHING)) | plain.has_x_imm & (plain.x < 0x100)
    is_free &= (plain.d0 & ds.MASK_C == 0) & ~plain.moves  # of a condition, which has bit 15 of X
    return is_free, np.where(plain.has_x_imm, plain.x & 0xFF, 0) | value << 8


def _move_first(first: _Plain, second: _Plain) -> Words:
    """A move, then any instruction: where that reads the target, it reads the source."""
    target, source = first.target, first.source
    is_register = source >= 0
    x_has_registers = second.takes_x & ~second.is_shift
    in_x, in_y = x_has_registers & _reads(second.x, target), _reads(second.y, target)
    in_hl = (target == L) | (target == H)
    is_over = (_written(second, target) >= 0) | second.adjusts & in_hl  # what was moved is overwritten
    # From a register
    y = np.where(is_register, _replace(second.y, target, source), second.y)
    x = np.where(is_register & x_has_registers, _replace(second.x, target, source), second.x)
    has_room, x_moved = _with_moved_register(second, x, source)
    found = is_register & (has_room | is_over & ~in_x)
    x = np.where(is_register & ~is_over, x_moved, x)
    # Of an immediate: as Y, as byte 0 of X, or moved alone
    value = first.imm
    has_room, x_moved = _with_moved_immediate(second, value)
    is_y = in_y & ~in_x & (second.y == 0x7770 | np.maximum(target, 0)) & ~second.has_address
    is_y &= second.imm == 0
    is_x = in_x & ~in_y & (second.x == 0x7770 | np.maximum(target, 0)) & ~second.is_shift
    is_x &= second.d0 & ds.MASK_C == 0
    is_alone = ~in_x & ~in_y & has_room
    found |= ~is_register & (is_y & (is_over | has_room) | is_x | is_alone)
    takes_x_imm = ~is_register & (is_x | (is_alone | is_y) & ~is_over)
    x = np.where(takes_x_imm, np.where(is_x, value | value << 8, x_moved), x)
    y = np.where(~is_register & is_y, ds.NOTHING, y)
    imm = np.where(~is_register & is_y, value, 0)
    d1 = np.where(is_over, second.d1, _put(second.d1, target, MOVED))
    d3 = second.d3 | np.where(takes_x_imm, ds.X_IMM, 0)
    return found & first.is_move & ~second.has(ds.X_SP), (x | y << 16, d1, second.d2 | imm, d3)


def _move_second(first: _Plain, second: _Plain) -> Words:
    """Any instruction, then a move: of a byte that the first has written, or of another as it was."""
    target, source = second.target, second.source
    is_register = source >= 0
    written = _written(first, source)
    is_copy = is_register & (written >= 0)
    is_adjusted = first.adjusts & ((source == L) | (source == H)) & ~is_copy
    has_room, x_moved = _with_moved_register(first, first.x, source)
    has_imm_room, x_imm = _with_moved_immediate(first, second.imm)
    found = np.where(is_register, is_copy | has_room & ~is_adjusted, has_imm_room)
    x = np.where(is_copy, first.x, np.where(is_register, x_moved, x_imm))
    d1 = _put(first.d1, target, np.where(is_copy, written, MOVED))
    d3 = first.d3 | np.where(is_register, 0, ds.X_IMM)
    return found & second.is_move, (x | first.y << 16, d1, first.d2, d3)


def _operate_on_read(first: _Plain, second: _Plain) -> Words:
    """LD A,[address], then an operation on A."""
    is_load = (first.d3 & NOT_TIME & ~(MEMORY | ADD) == ds.SHIFT_NONE) & first.has(ds.READ) & (first.d1 == A_ALONE)
    is_load &= (first.d2 & CONSTANTS == 0) & (first.x == ds.NOTHING)
    is_operation = ~second.has(MEMORY | ds.WRITE | ds.STACK | FLOW | ds.X_SP | ds.X_IMM | ds.TO_SP | ds.SUBTRACT)
    is_operation &= (second.d1 == A_ALONE) & ~(first.adjusts & (second.d2 & ADDS != 0))
    # Of two operands: X is A, and Y, which is to become X, is a register or an immediate
    operand = second.y & 0xF
    has_two = (second.x == FROM_A) & ~second.is_shift
    of_itself = has_two & (operand == A)
    is_fine = has_two & ~of_itself & ~(first.adjusts & ((operand == L) | (operand == H)))
    has_imm = (of_itself & second.has(ds.AND)) | is_fine & (second.y == ds.NOTHING)
    is_fine |= of_itself & second.has(ds.AND | ds.OR)
    x = np.where(of_itself, ds.NOTHING, second.y)
    x = np.where(has_imm, np.where(of_itself, 0xFF, second.imm & 0xFF), x)
    # Of one: Y is A
    has_one = (second.y == FROM_A) & ((second.x == ds.NOTHING) | second.is_shift)
    x = np.where(has_one, second.x, x)
    d3 = first.d3 & MEMORY | np.where(first.adjusts, first.d3, second.d3) & ADD
    d3 = d3 | second.d3 & ~ADD | np.where(has_imm & ~has_one, ds.X_IMM, 0)
    d2 = first.imm | second.d2 & CONSTANTS
    return is_load & is_operation & (is_fine | has_one), (x | first.y << 16, second.d1, d2, d3)


def _read_again(first: _Plain, second: _Plain) -> Words:
    """LD A,[address] twice, as of P1."""
    found = (first.d0 == second.d0) & (first.d1 == second.d1) & (first.d2 & 0xFFFF == second.d2 & 0xFFFF)
    found &= (first.d3 & NOT_TIME == second.d3 & NOT_TIME) & (first.d2 & CONSTANTS == 0)
    found &= (first.d3 & NOT_TIME & ~ds.LOOKAHEAD == ds.SHIFT_NONE | ds.READ) & (first.d1 == A_ALONE)
    found &= (first.x == ds.NOTHING) & (first.y == ds.NOTHING)
    return found, (second.d0, second.d1, second.d2, second.d3)


def _load_pointer(first: _Plain, second: _Plain) -> Words:
    """LD HL,imm16, then an access to [HL]: HL becomes what the address is, plus what is added to it anyway."""
    found = (first.d3 & NOT_TIME == ds.SHIFT_NONE) & (first.d1 == HL_ALONE) & (first.y == ds.NOTHING)
    is_rom = first.imm < hw.VRAM
    found &= (first.imm < hw.OAM) & ~(is_rom & second.has(ds.WRITE)) | (first.imm >= hw.HRAM) & (first.imm < hw.IE)
    return _pointer(first, second, found & (first.d2 & CONSTANTS == 0), first.imm, ds.NOTHING)


def _step_first(first: _Plain, second: _Plain) -> Words:
    """INC HL, then an access to [HL]."""
    found = (first.d3 & NOT_TIME == ds.SHIFT_NONE | ADD_ONE) & (first.d1 == HL_ALONE) & (first.y == FROM_HL)
    found &= first.d2 & CONSTANTS == ds.ADD_ALWAYS
    return _pointer(first, second, found, 1, FROM_HL)


def _pointer(first: _Plain, second: _Plain, found: np.ndarray, imm: np.ndarray | int, y: int) -> Words:
    """HL becomes the address of an access to [HL], plus what is added to it anyway."""
    found = found & first.is_single & (first.x == ds.NOTHING)
    found &= second.has_address & (second.y == FROM_HL) & (second.d2 & ADDS == 0)
    found &= ~second.takes_x | second.is_shift | ~(_reads(second.x, L) | _reads(second.x, H))
    d3 = second.d3 & ~ADD | ds.ADJUST_HL | np.where(second.adjusts, second.d3 & ADD, 0)
    return found, (second.x | y << 16, second.d1, second.d2 | imm, d3)


def _step_pointer(first: _Plain, second: _Plain) -> Words:
    """An access to [HL], then INC HL or DEC HL."""
    found = first.has_address & (first.y == FROM_HL) & ~first.adjusts & (first.d2 & ADDS == 0)
    found &= (_written(first, np.array(L)) < 0) & (_written(first, np.array(H)) < 0)
    found &= (second.d3 & NOT_TIME & ~ADD == ds.SHIFT_NONE) & (second.d1 == HL_ALONE) & (second.y == FROM_HL)
    found &= (second.d2 & CONSTANTS == ds.ADD_ALWAYS) & (second.x == ds.NOTHING)
    d3 = first.d3 & ~ADD | second.d3 & ADD | ds.ADJUST_HL
    return found, (first.d0, first.d1, first.d2, d3)


def _read_word(first: _Plain, second: _Plain) -> Words:
    """LD of a register from [HL+], or from [HL] and INC HL, then of another from [HL]: a word is read."""
    memory, one = ds.READ | ds.ADJUST_HL, ds.SHIFT_NONE
    found = (first.d3 & NOT_TIME == one | memory | ADD_ONE) & (second.d3 & NOT_TIME == one | ds.READ)
    low, high = first.target, second.target
    for plain in (first, second):
        found &= (plain.y == FROM_HL) & (plain.imm == 0) & (plain.x == ds.NOTHING) & (plain.d2 & CONSTANTS == 0)
    found &= (low >= 0) & (high >= 0)  # _step_pointer has seen to it that the first is not L or H
    d1 = _put(first.d1, high, RESULT_HIGH)
    return found, (first.d0, d1, first.d2, first.d3 | ds.READ_WORD)


def _write_word(first: _Plain, second: _Plain) -> Words:
    """LD [HL+] from a register, or LD [HL] and INC HL, then LD [HL] from another: a word is written."""
    memory, one = ds.WRITE | ds.ADJUST_HL, ds.SHIFT_NONE
    found = (first.d3 & NOT_TIME == one | memory | ADD_ONE) & (second.d3 & NOT_TIME == one | ds.WRITE)
    low, high = first.x & 0xF, second.x & 0xF
    for plain, byte in ((first, low), (second, high)):
        found &= (plain.y == FROM_HL) & (plain.imm == 0) & (plain.d1 == NO_WRITE) & (plain.d2 & CONSTANTS == 0)
        found &= plain.x == 0x7770 | byte
    found &= (high != L) & (high != H)
    return found, (0x7700 | high << 4 | low | FROM_HL << 16, first.d1, first.d2, first.d3 | ds.WRITE_WORD)


def _add_to_immediate(first: _Plain, second: _Plain) -> Words:
    """LD HL,imm16, then ADD HL,BC or ADD HL,DE."""
    found = (first.d3 & NOT_TIME == ds.SHIFT_NONE) & (first.d1 == HL_ALONE) & (first.y == ds.NOTHING)
    found &= (first.d2 & CONSTANTS == 0) & (first.x == ds.NOTHING) & first.is_single
    flags = ds.MASK_H | ds.MASK_N | ds.MASK_C | ds.SHIFT_16
    found &= (second.d3 & NOT_TIME == flags) & (second.y == FROM_HL) & (second.x != FROM_HL) & (second.imm == 0)
    return found, (second.x | ds.NOTHING << 16, second.d1, second.d2 | first.imm, second.d3)


def _nothing_first(first: _Plain, second: _Plain) -> Words:
    """NOP, then any instruction."""
    return _is_nothing(first), (second.d0, second.d1, second.d2, second.d3)


def _nothing_second(first: _Plain, second: _Plain) -> Words:
    """Any instruction, then NOP."""
    return _is_nothing(second), (first.d0, first.d1, first.d2, first.d3)


def _is_nothing(plain: _Plain) -> np.ndarray:
    is_nothing = (plain.d0 == ds.NOTHING * 0x10001) & (plain.d1 == NO_WRITE) & (plain.d2 & (CONSTANTS | 0xFFFF) == 0)
    return is_nothing & (plain.d3 & NOT_TIME == ds.SHIFT_NONE)


def _zero_first(first: _Plain, second: _Plain) -> Words:
    """XOR A or SUB A, then what needs no ALU: a store of A, LD HL,imm16, a jump without a condition, RET."""
    found = first.is_single & (first.d1 == A_ALONE) & (first.x == FROM_A) & (first.y == FROM_A)
    found &= first.has(ds.XOR)
    store = ds.WRITE | ds.LOOKAHEAD | ds.ADJUST_HL
    is_store = (second.d3 & NOT_TIME & ~(store | ADD) == ds.SHIFT_NONE) & second.has(ds.WRITE) & (second.x == FROM_A)
    is_store &= second.d1 == NO_WRITE
    is_load = (second.d3 & NOT_TIME == ds.SHIFT_NONE) & (second.d1 == HL_ALONE) & (second.y == ds.NOTHING)
    jump = ds.JUMP | ds.STACK | ds.READ | ds.READ_WORD | ds.LOOKAHEAD
    is_jump = (second.d3 & NOT_TIME & ~(jump | ADD) == ds.SHIFT_NONE) & second.has(FLOW)
    is_jump &= (second.d0 & (ds.MASK_C | ds.MASK_NZ) == 0) & (second.x == ds.NOTHING)
    found &= (second.d2 & CONSTANTS == 0) & (is_store | is_load | is_jump)
    d1 = np.where(is_load, A_ALONE, _put(second.d1, np.array(A), RESULT))
    d3 = second.d3 | ds.AND | ds.MASK_ALL | np.where(is_load, ds.ADJUST_HL, 0)
    return found, (ds.NOTHING | second.y << 16, d1, second.d2, d3)


def _shift_both(first: _Plain, second: _Plain) -> Words:
    """SRL, SRA or RR of a register, then RR of another: two bytes are shifted."""
    top = np.select([first.x == x for x in ZERO_AS_TOP], list(ZERO_AS_TOP.values()), -1)
    found = (top >= 0) & (second.x == RR) & (second.d2 & ds.SET_NZ == 0)
    for plain in (first, second):
        found &= plain.is_single & plain.is_shift & ~plain.has(ACCESS) & (plain.d3 & 0x1F == 1)
        found &= plain.y == 0x7770 | plain.y & 0xF
    high, low = first.y & 0xF, second.y & 0xF
    d1 = _put(second.d1, high, RESULT_HIGH)
    d0 = 0x0010 | top << 8 | low << 16 | high << 20 | 0x77 << 24
    return found & (high != low), (d0, d1, second.d2, second.d3)


def _jump_second(first: _Plain, second: _Plain) -> Words:
    """An operation on a byte, then JR, or JP to a place as near, by its flags: byte 1 of X, or of its selectors, which
    is free then, says how far."""
    conditions = ds.MASK_C | ds.MASK_NZ
    found = second.has(ds.JUMP) & (second.d0 & conditions != 0) & ~second.has(ds.STACK)
    distance = second.imm - second.addresses - second.length
    is_in_bank = second.imm // hw.ROM_BANK_SIZE == second.addresses // hw.ROM_BANK_SIZE
    found &= (distance >= -0x80) & (distance < 0x80) & is_in_bank
    found &= first.has(ds.MASK_NZ) & ~first.has(ds.SHIFT | ds.X_SP) & ~first.moves
    found &= ~first.has(ds.READ) | (first.d1 != NO_WRITE) | ~first.has(ds.AND)  # BIT of memory waits for a register
    is_wanted = np.where(second.d0 & ds.MASK_C != 0, second.d0 >> 15, second.d0 >> 19) & 1
    by_c = ds.JR_BY_C | (1 - is_wanted) * ds.JR_UNLESS_C
    by_nz = ds.JR_BY_NZ | (1 - is_wanted) * ds.JR_UNLESS_NZ
    d0 = first.d0 & ~0xFF00 | (distance & 0xFF) << 8
    return found, (d0, first.d1, first.d2 | np.where(second.d0 & ds.MASK_C != 0, by_c, by_nz), first.d3)


RULES: tuple[Callable[[_Plain, _Plain], Words], ...] = (
    _move_first,
    _move_second,
    _operate_on_read,
    _read_again,
    _load_pointer,
    _step_first,
    _step_pointer,
    _read_word,
    _write_word,
    _add_to_immediate,
    _nothing_first,
    _nothing_second,
    _zero_first,
    _shift_both,
    _jump_second,
)
