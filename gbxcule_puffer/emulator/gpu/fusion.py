"""Up to four instructions that the data path executes in one turn, with one descriptor.

    ld a,[hl]      Y is read at HL, A = Y            \\
    and 15         Y = 15, X = A, A = X & Y, flags    >  Y is read at HL, X = 15, A = X & Y, flags, jump by Z
    jr nz,near     PC = near, by Z                   /

Instructions may form a group if they use different parts of the data path, or if one can be rewritten so that they do.
RULES lists these pairs and their rewrites. Only the last instruction of a group may jump. Each byte of the ROM has the
group that begins there, so jumps may lead anywhere. If an event is due before the last instruction, or the access is
not to plain memory, the data path executes only the first instruction (slow_path.part).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.descriptors import Descriptor

MOST_INSTRUCTIONS, MOST_BYTES, MOST_LEAD = 4, 7, 7
A, L, H, RESULT, RESULT_HIGH, MOVED = 6, 4, 5, 4, 5, 6  # byte numbers, and selectors of a write-back
A_ALONE, HL_ALONE = 0x34103210, 0x32543210
FROM_A, FROM_HL, ONE_BYTE = 0x7776, 0x7754, 0x7770
ACCESS, ADDS = ds.READ | ds.WRITE, ds.ADD_CARRY | ds.ADD_ALWAYS
JUMPS = ds.JR_BY_C | ds.JR_UNLESS_C | ds.JR_BY_NZ | ds.JR_UNLESS_NZ
# The parts of the data path that a descriptor may use: the flags of word 3, registers as X and Y, IMM, the ALU's flags
# and its ADD, a condition
X, Y, IMM, ALU, ADDER, CONDITION = (1 << bit for bit in range(32, 38))
RR = 0x01E0
ZERO_AS_TOP = {0x0110: 2, 0x0180: 9, RR: 0xE}  # SRL, SRA, RR: selector of the byte that enters bit 7, after two bytes


@dataclass
class Parts(Descriptor[np.ndarray]):
    """Descriptors and the addresses of their instructions; each field is an array with one element per instruction."""

    address: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Parts:
        return Parts(*(column[rows] for column in vars(self).values()))

    def __setitem__(self, rows: np.ndarray, others: Parts) -> None:
        for column, values in zip(vars(self).values(), vars(others).values(), strict=True):
            column[rows] = values

    def but(self, **changes: np.ndarray | int) -> Parts:
        """The same with other values of some fields."""
        arrays = (value if isinstance(value, np.ndarray) else np.full_like(self.x, value) for value in changes.values())
        return Parts(**{**vars(self), **dict(zip(changes, arrays, strict=True))})

    def has(self, flags: int) -> np.ndarray:
        """True for any of the flags of word 3."""
        return self.flags & flags != 0

    def source(self) -> np.ndarray:
        """The register that a move reads, -1 for an immediate."""
        return np.where(self.y == ds.NOTHING, -1, self.y & 0xF)

    def target(self) -> np.ndarray:
        """The only byte that is written back, from byte 0 of the result, or -1."""
        alone = [self.write_back == (ds.KEEP & ~(0xF << 4 * byte) | RESULT << 4 * byte) for byte in range(7)]
        return np.select(alone, range(7), -1)

    def written(self, byte: np.ndarray | int) -> np.ndarray:
        """The selector of a byte's write-back, -1 where it is not written."""
        byte = np.maximum(byte, 0)
        nibble = self.write_back >> 4 * byte & 0xF
        return np.where(nibble == byte % 4, -1, nibble)

    def writing(self, byte: np.ndarray | int, selector: np.ndarray | int) -> np.ndarray:
        """The write-back with another selector for a byte."""
        return self.write_back & ~(0xF << 4 * byte) | selector << 4 * byte

    def writes(self, selector: int) -> np.ndarray:
        """True where a selector is written back to any byte."""
        return _has_nibble(self.write_back & 0xFFFFFFF, selector, 0x1111111)

    def reads_in_x(self, byte: np.ndarray | int) -> np.ndarray:
        """True where X has the byte of a register."""
        return ~self.has(ds.X_IMM | ds.X_SP | ds.SHIFT) & _has_nibble(self.x, byte, 0x1111)

    def carrying(self, source: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, Parts]:
        """True where byte 2 of X is free to carry a register (or a value, if `source` is -1), and the descriptors with
        it there."""
        is_imm, has_imm = source < 0, self.has(ds.X_IMM)
        shifts_two = self.has(ds.SHIFT) & self.writes(RESULT_HIGH)
        free = has_imm & (self.x < 0x100) | ~self.has(ds.X_IMM | ds.X_SP | ds.SHIFT) & (self.x == ds.NOTHING)
        free &= self.condition & ds.IF_C == 0  # it wants bit 15 of X
        free = np.where(is_imm, free, ~self.has(ds.X_IMM | ds.X_SP) & ~shifts_two) & ~self.writes(MOVED)
        x = np.where(is_imm, self.x * has_imm & 0xFF | value << 8, self.x & 0xF0FF | np.maximum(source, 0) << 8)
        return free, self.but(x=x, flags=self.flags | is_imm * ds.X_IMM)


def _has_nibble(word: np.ndarray, value: np.ndarray | int, ones: int) -> np.ndarray:
    """True where one of the nibbles of a word is `value`. ones: a word whose nibbles to compare are 1."""
    differs = word ^ value * ones
    return (differs - ones) & ~differs & ones << 3 != 0


def _replace(selector: np.ndarray, byte: np.ndarray, by: np.ndarray) -> np.ndarray:
    """A selector in which one byte is replaced by another."""
    nibbles = [selector >> shift & 0xF for shift in (0, 4, 8, 12)]
    return np.bitwise_or.reduce([np.where(n == byte, by, n) << 4 * k for k, n in enumerate(nibbles)])


def _is_hl(byte: np.ndarray) -> np.ndarray:
    return (byte == L) | (byte == H)


def patterns(p: Parts) -> dict[str, np.ndarray]:
    """True where a descriptor matches, for each pattern of RULES. `[hl]`: an access that leaves the adder to HL."""
    uses = p.flags | (p.x != ds.NOTHING) * X | (p.y != ds.NOTHING) * Y | (p.imm != 0) * IMM
    uses |= ((p.shift_by != ds.SHIFT_NONE) | (p.constants & ~ADDS != 0)) * ALU
    uses |= (p.constants & ADDS != 0) * ADDER | (p.condition != 0) * CONDITION

    def only(*parts: int) -> np.ndarray:
        return uses & ~sum(parts) == 0

    single, target = p.count == 1, p.target()
    x_is_byte, y_is_byte = (selector == (selector & 0xF | ONE_BYTE) for selector in (p.x, p.y))
    keeps, to_a, to_hl = (p.write_back == write_back for write_back in (ds.KEEP, A_ALONE, HL_ALONE))
    at_hl = p.has(ACCESS) & ~p.has(ds.STACK) & (p.y == FROM_HL) & (p.constants & ADDS == 0)
    load_a = only(ds.READ, ds.LOOKAHEAD, ds.ADJUST_HL, Y, IMM) & p.has(ds.READ) & to_a
    load_hl = single & only(IMM) & to_hl
    store_a = only(ds.WRITE, ds.LOOKAHEAD, ds.ADJUST_HL, X, Y, IMM) & p.has(ds.WRITE) & (p.x == FROM_A) & keeps
    jump = only(ds.JUMP, ds.STACK, ds.READ, ds.READ_WORD, Y, IMM) & p.has(ds.JUMP)
    operations = ds.MASK_ALL, ds.AND, ds.XOR, ds.OR, ds.SHIFT
    shift = single & p.has(ds.SHIFT) & ~p.has(ACCESS) & (p.shift_by == 1) & y_is_byte
    is_8_bit = y_is_byte & (p.imm == 0) | (p.y == ds.NOTHING) & (p.imm < 0x100)
    return {
        "any": np.ones(len(uses), bool),
        "any but sp": ~p.has(ds.X_SP),
        "nop": only(0) & keeps,
        "ld r": single & only(Y, IMM) & (target >= 0) & is_8_bit,
        "ld a,[address]": load_a,
        "ld a,[imm16]": load_a & only(ds.READ, IMM),
        "operation on a": only(*operations, X, Y, IMM, ALU, ADDER) & to_a,
        "ld hl,imm16": load_hl,
        "inc hl": single & only(Y, ADDER) & to_hl & (p.y == FROM_HL),
        "add hl,rr": only(ds.MASK_H, ds.MASK_N, ds.MASK_C, ALU, X, Y) & (p.shift_by == ds.SHIFT_16) & (p.y == FROM_HL),
        "[hl]": at_hl,
        "ld r,[hl]": only(ds.READ, ds.ADJUST_HL, Y) & p.has(ds.READ) & at_hl & (target >= 0),
        "ld [hl],r": only(ds.WRITE, ds.ADJUST_HL, X, Y) & p.has(ds.WRITE) & at_hl & keeps & x_is_byte,
        "xor a": single & p.has(ds.XOR) & (p.x == FROM_A) & (p.y == FROM_A) & to_a,
        "no alu": store_a | load_hl | jump,
        "srl r": shift,
        "operation": p.has(ds.MASK_NZ) & ~p.has(ds.SHIFT | ds.X_SP),
        "jr cond": p.has(ds.JUMP) & ~p.has(ds.STACK) & (p.condition != 0),
    }


def _is_special(p: Parts) -> np.ndarray:
    """True where the immediate alone says that the address is not plain memory."""
    is_plain = (p.imm < hw.OAM) & ~(p.has(ds.WRITE) & (p.imm < hw.VRAM)) | (p.imm >= hw.HRAM) & (p.imm != hw.IE)
    is_plain |= np.where(p.y == ds.NOTHING, (p.imm == hw.P1) & ~p.has(ds.WRITE), p.imm <= 1)
    return p.has(ACCESS) & ~p.has(ds.STACK) & ~is_plain


Rewrite = tuple[np.ndarray | bool, Parts]
"""Where a rule applies after all, and what the two become."""


def _move_first(move: Parts, other: Parts) -> Rewrite:
    """Readers of the target read the source instead. Unless the target is overwritten, byte 2 of X carries the value
    there."""
    target, source, value = move.target(), move.source(), move.imm
    is_register = source >= 0
    in_x, in_y = other.reads_in_x(target), _has_nibble(other.y, target, 0x1111)
    is_x = ~is_register & in_x & ~in_y & (other.x == (ONE_BYTE | target)) & (other.condition & ds.IF_C == 0)
    is_y = ~is_register & in_y & ~in_x & (other.y == (ONE_BYTE | target)) & ~other.has(ACCESS) & (other.imm == 0)
    x = np.where(is_register & in_x, _replace(other.x, target, source), other.x)
    y = np.where(is_register, _replace(other.y, target, source), other.y)
    reading = other.but(
        x=np.where(is_x, value | value << 8, x),
        y=np.where(is_y, ds.NOTHING, y),
        imm=np.where(is_y, value, other.imm),
        flags=other.flags | is_x * ds.X_IMM,
    )
    is_over = (other.written(target) >= 0) | other.has(ds.ADJUST_HL) & _is_hl(target)
    is_free, carrying = reading.carrying(source, value)
    stays = is_over | is_x
    joined = reading.but(
        x=np.where(stays, reading.x, carrying.x),
        flags=np.where(stays, reading.flags, carrying.flags),
        write_back=np.where(is_over, other.write_back, other.writing(target, MOVED)),
    )
    return (is_register | is_x | is_y | ~in_x & ~in_y) & (stays | is_free), joined


def _move_second(other: Parts, move: Parts) -> Rewrite:
    """A value that the other instruction wrote to the source goes to the target, too. Otherwise byte 2 of X carries it
    there."""
    source, written = move.source(), other.written(move.source())
    is_copy = (source >= 0) & (written >= 0)
    is_free, carrying = other.carrying(source, move.imm)
    joined = other.but(
        x=np.where(is_copy, other.x, carrying.x),
        flags=np.where(is_copy, other.flags, carrying.flags),
        write_back=other.writing(move.target(), np.where(is_copy, written, MOVED)),
    )
    return is_copy | is_free & ~(other.has(ds.ADJUST_HL) & _is_hl(source)), joined


def _operate_on_read(load: Parts, operation: Parts) -> Rewrite:
    """The byte that is read becomes Y, so the other operand becomes X."""
    adjusts, operand = load.has(ds.ADJUST_HL), operation.y & 0xF
    has_one = (operation.y == FROM_A) & ((operation.x == ds.NOTHING) | operation.has(ds.SHIFT))
    has_two = (operation.x == FROM_A) & ~operation.has(ds.SHIFT)
    of_itself = has_two & (operand == A)
    has_imm = has_two & np.where(of_itself, operation.has(ds.AND), operation.y == ds.NOTHING)
    is_fine = np.where(of_itself, operation.has(ds.AND | ds.OR), has_two & ~(adjusts & _is_hl(operand)))
    x = np.where(of_itself, ds.NOTHING, operation.y)
    x = np.where(has_imm, np.where(of_itself, 0xFF, operation.imm & 0xFF), x)
    joined = operation.but(
        x=np.where(has_one, operation.x, x),
        y=load.y,
        imm=load.imm,
        add=np.where(adjusts, load.add, operation.add),
        flags=load.flags | operation.flags | has_imm * ds.X_IMM,
    )
    return (has_one | is_fine) & ~(adjusts & (operation.constants & ADDS != 0)), joined


def _read_again(first: Parts, second: Parts) -> Rewrite:
    """A byte that both read, such as P1, is read once."""
    return first.imm == second.imm, second


def _load_pointer(load: Parts, access: Parts) -> Rewrite:
    """HL becomes the address, which is an immediate."""
    is_plain = (load.imm < hw.OAM) & ~((load.imm < hw.VRAM) & access.has(ds.WRITE))
    found, joined = _step_first(load.but(add=1), access)
    return found & (is_plain | (load.imm >= hw.HRAM) & (load.imm < hw.IE)), joined.but(y=ds.NOTHING, imm=load.imm)


def _step_first(step: Parts, access: Parts) -> Rewrite:
    """HL becomes the address, HL + 1, plus the amount that the access adds anyway."""
    found = (step.add == 1) & ~(access.reads_in_x(L) | access.reads_in_x(H))
    return found, access.but(imm=1, flags=access.flags | ds.ADJUST_HL)


def _step_second(access: Parts, step: Parts) -> Rewrite:
    """HL becomes the address plus the amount that is added."""
    found = ~access.has(ds.ADJUST_HL) & (access.written(L) < 0) & (access.written(H) < 0)
    return found, access.but(add=step.add, flags=access.flags | ds.ADJUST_HL)


def _read_word(low: Parts, high: Parts) -> Rewrite:
    """From [hl+], then [hl]: a word is read."""
    found = low.has(ds.ADJUST_HL) & (low.add == 1) & ~high.has(ds.ADJUST_HL)
    return found, low.but(write_back=low.writing(high.target(), RESULT_HIGH), flags=low.flags | ds.READ_WORD)


def _write_word(low: Parts, high: Parts) -> Rewrite:
    """To [hl+], then [hl]: a word is written."""
    found = low.has(ds.ADJUST_HL) & (low.add == 1) & ~high.has(ds.ADJUST_HL) & ~_is_hl(high.x & 0xF)
    return found, low.but(x=0x7700 | (high.x & 0xF) << 4 | low.x & 0xF, flags=low.flags | ds.WRITE_WORD)


def _clear_first(clear: Parts, other: Parts) -> Rewrite:
    """A becomes 0 & 0; HL, if it is loaded, becomes the address."""
    loads_hl = other.write_back == HL_ALONE
    return True, other.but(
        x=ds.NOTHING,
        write_back=np.where(loads_hl, A_ALONE, other.writing(A, RESULT)),
        flags=other.flags | ds.AND | ds.MASK_ALL | loads_hl * ds.ADJUST_HL,
    )


def _shift_both(first: Parts, second: Parts) -> Rewrite:
    """SRL, SRA or RR, then RR: two bytes are shifted."""
    top = np.select([first.x == x for x in ZERO_AS_TOP], list(ZERO_AS_TOP.values()), -1)
    high, low = first.y & 0xF, second.y & 0xF
    found = (top >= 0) & (second.x == RR) & (second.constants & ds.SET_NZ == 0) & (high != low)
    write_back = second.writing(high, RESULT_HIGH)
    return found, second.but(x=0x0010 | top << 8, y=low | high << 4 | 0x7700, write_back=write_back)


def _jump_second(operation: Parts, jump: Parts) -> Rewrite:
    """Byte 1 of X, or of its selector, is free and has the distance of the jump, if a JR could jump that far."""
    distance = jump.imm - jump.address - jump.length
    is_in_bank = jump.imm // hw.ROM_BANK_SIZE == jump.address // hw.ROM_BANK_SIZE
    waits = operation.has(ds.READ) & operation.has(ds.AND) & (operation.write_back == ds.KEEP)  # BIT, for a register
    found = (distance >= -0x80) & (distance < 0x80) & is_in_bank & ~operation.writes(MOVED) & ~waits
    unless = jump.condition & (ds.WANT_C | ds.WANT_NZ) == 0
    by_c, by_nz = ds.JR_BY_C | unless * ds.JR_UNLESS_C, ds.JR_BY_NZ | unless * ds.JR_UNLESS_NZ
    constants = operation.constants | np.where(jump.condition & ds.IF_C != 0, by_c, by_nz)
    return found, operation.but(x=operation.x & 0xFF | (distance & 0xFF) << 8, constants=constants)


# The first rule that applies is used.
RULES: tuple[tuple[str, str, Callable[[Parts, Parts], Rewrite]], ...] = (
    ("ld r", "any but sp", _move_first),
    ("any", "ld r", _move_second),
    ("ld a,[address]", "operation on a", _operate_on_read),
    ("ld a,[imm16]", "ld a,[imm16]", _read_again),
    ("ld hl,imm16", "[hl]", _load_pointer),
    ("inc hl", "[hl]", _step_first),
    ("[hl]", "inc hl", _step_second),  # or DEC HL
    ("ld r,[hl]", "ld r,[hl]", _read_word),
    ("ld [hl],r", "ld [hl],r", _write_word),
    ("ld hl,imm16", "add hl,rr", lambda load, add: (add.x != FROM_HL, add.but(y=ds.NOTHING, imm=load.imm))),
    ("nop", "any", lambda nop, other: (True, other)),
    ("any", "nop", lambda other, nop: (True, other)),
    ("xor a", "no alu", _clear_first),
    ("srl r", "srl r", _shift_both),
    ("operation", "jr cond", _jump_second),  # or JP to an address as near, in the same bank
)


def fuse(single: Parts) -> Parts:
    """Descriptors of a bank's bytes, with groups where possible."""
    fused, second = single[np.arange(len(single.x))], patterns(single)
    is_plain = ~single.has(ds.RARE) & (single.constants & ds.MARKS == 0) & (single.length != 0)
    is_special, at = _is_special(single), np.flatnonzero(is_plain)
    for _ in range(MOST_INSTRUCTIONS - 1):
        at = at[~fused.has(ds.JUMP)[at]]
        behind = np.minimum(at + fused.length[at], len(single.x) - 1)  # the last is RARE
        at, behind = at[is_plain[behind]], behind[is_plain[behind]]
        groups = fused[at]
        first, ends = patterns(groups), (groups.count > 1) & (groups.constants & JUMPS != 0)
        free = ~_is_special(groups) & ~is_special[behind] & ~ends & (groups.m_cycles <= MOST_LEAD)
        free &= groups.length + single.length[behind] <= MOST_BYTES
        grown = np.zeros(len(at), bool)
        for one, other, rewrite in RULES:
            rows = np.flatnonzero(free & ~grown & first[one] & second[other][behind])
            if not len(rows):
                continue
            found, joined = _join(groups[rows], single[behind[rows]], rewrite)
            fused[at[rows[found]]] = joined[found]
            grown[rows[found]] = True
        at = at[grown]
    return fused


def _join(first: Parts, second: Parts, rewrite: Callable[[Parts, Parts], Rewrite]) -> tuple[np.ndarray, Parts]:
    """True where a rule applies, and the descriptors that it makes there."""
    found, joined = rewrite(first, second)
    m_cycles = first.m_cycles + second.m_cycles - (joined.constants & JUMPS != 0)  # a jump that is not taken: one less
    fits = m_cycles - ds.flow_m_cycles(joined.flags) <= ds.TIME.most
    length, count = first.length + second.length, first.count + 1
    return np.flatnonzero(found & fits), joined.but(m_cycles=m_cycles, length=length, count=count, lead=first.m_cycles)
