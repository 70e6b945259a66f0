"""Loops of a ROM that can be skipped, found in its code: delays that count a register down, polls of RAM, and the loops
of codes.py, which copy, fill, add or multiply; and the one that a game falls into when it crashes (crash.py).

A delay is `dec r / jr nz`, after any number of `nop`, jumps to the next instruction and `push rr / pop rr`, or `dec rr
/ ld a,high / or low / jr nz`. A delay is nested if it is inside a loop that counts a pair down and restarts the delay
each time, as in GBDK's `delay`. A poll loads A from WRAM, HRAM, or a register that does not change with time, works on
registers and jumps back: only an event can end it. It may also call routines, keep pairs on the stack and select rows
of P1, as GBDK's `waitpad` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa, registers
from gbxcule_puffer.emulator.loops import table
from gbxcule_puffer.emulator.loops.codes import counted_loops
from gbxcule_puffer.emulator.loops.table import Loop

LONGEST = 20  # bytes before the jump's end
LONGEST_NEST = 24  # instructions of the outer loop
JUMPS_RELATIVE, JUMPS_ABSOLUTE = (0x18, 0x20, 0x28, 0x30, 0x38), (0xC3, 0xC2, 0xCA, 0xD2, 0xDA)
RST_38, CRASH = 0xFF, Loop(0x38, table.round_of(16, 1, 16) | table.KIND.put(table.CRASH), frozenset((0x38,)))
NOP, JR, JP, JR_NZ, JP_NZ, CALL, RET = 0x00, 0x18, 0xC3, 0x20, 0xC2, 0xCD, 0xC9
JR_Z, JP_Z, RET_Z = 0x28, 0xCA, 0xC8
PUSHES, POPS = (0xC5, 0xD5, 0xE5, 0xF5), (0xC1, 0xD1, 0xE1, 0xF1)
LDH_READ, LD_READ, LDH_WRITE = 0xF0, 0xFA, 0xE0
COUNTERS = (0x05, 0x0D, 0x15, 0x1D, 0x25, 0x2D, 0x3D)  # dec b c d e h l a
WIDE_COUNTERS = (0x0B, 0x1B, 0x2B)  # dec bc de hl
LOADS = (0x06, 0x0E, 0x16, 0x1E, 0x26, 0x2E)  # ld r,n, as COUNTERS
# The body of a poll. No operand at [hl]: that is often STAT, and registers change with time.
_LOADS = [opcode for opcode, found in isa.expand().items() if found.family == "load8" and "[" not in found.mnemonic]
_ARITHMETIC = (*(op for op in range(0x80, 0xC0) if op & 7 != 6), 0xC6, 0xCE, 0xD6, 0xDE, 0xE6, 0xEE, 0xF6, 0xFE, 0x2F)
_BIT_TESTS = (0x100 | op for op in range(0x40, 0x80) if op & 7 != 6)
_SWAPS = (0x130, 0x131, 0x132, 0x133, 0x134, 0x135, 0x137)
_OTHERS = (NOP, JR, JP, CALL, RET, *PUSHES, *POPS, LDH_READ, LD_READ, LDH_WRITE)
POLL_BODY = frozenset((*_LOADS, *_ARITHMETIC, *_BIT_TESTS, *_SWAPS, *_OTHERS))
BODY = POLL_BODY | {*COUNTERS, *WIDE_COUNTERS}
# A loop that begins with one of the second kind counts, as hUGEDriver's `sub 3 / cp 3 / jr nc`
LOADS_OF_A = (0x3E, *range(0x78, 0x80), 0x97, 0xAF, 0xF1, LDH_READ, LD_READ)
CHANGES_OF_A = ({*range(0x80, 0xA0), *range(0xA8, 0xB0)} - set(LOADS_OF_A)) | {0xC6, 0xCE, 0xD6, 0xDE, 0xEE, 0x2F}
# `ldh a,[LY] / cp n / jr`; `ldh a,[STAT]`, then `and n`, also with `and a`, or `bit 1,a`, and `jr z` or `jr nz`
LCD_POLL = re.compile(
    rb"\xF0(\x44\xFE.[\x20\x28\x30\x38]\xFA|\x41(\xE6.|\xCB\x4F)[\x20\x28]\xFA|\x41\xE6.\xA7[\x20\x28]\xF9)", re.DOTALL
)
# Memory, P1, sound, and addresses without a register on a DMG: [first, end)
CONSTANT = ((hw.WRAM, hw.ECHO), *registers.CONSTANT, (hw.HRAM, hw.IE))
# The registers of a sound unit that works change with time
CHANGING_WITH_SOUND = frozenset(registers.SOUND)


@lru_cache(maxsize=4)
def find_loops(rom: bytes, sound: bool = False) -> tuple[Loop, ...]:
    """The loops of a ROM; sound: whether the sound unit works, whose registers no poll may read then. Banks 1 and up
    are read as at 4000, next to bank 0."""
    banks, changing = range(len(rom) // hw.ROM_BANK_SIZE), CHANGING_WITH_SOUND if sound else frozenset[int]()
    found = tuple(loop for bank in banks for loop in (*_waits(rom, bank, changing), *_counted(rom, bank)))
    return (*found, CRASH) if rom[CRASH.begin] == RST_38 else found


def marked_words(rom: bytes, sound: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Machine's `code` and `waits` of a ROM: three bytes a word with the marks of its loops, and the loops' table.
    sound: as in find_loops."""
    padded = np.frombuffer(rom + bytes(2), np.uint8).astype(np.int32)
    words = padded[:-2] | (padded[1:-1] << 8) | (padded[2:] << 16)
    return words, table.mark(words, find_loops(rom, sound))


def lcd_polls(rom: bytes, reads: np.ndarray) -> np.ndarray:
    """The beginnings of loops that poll LY or STAT, as cpu/marks.py recognises them, bool by ROM index. reads: the
    marked reads, likewise."""
    found = np.zeros(len(rom), bool)
    for index in np.flatnonzero(reads).tolist():
        found[index] = LCD_POLL.match(rom, index) is not None
    return found


class _Instruction(NamedTuple):
    """An instruction at an address; operand: the byte, or the word, after the opcode."""

    address: int
    opcode: int
    byte: int
    word: int

    @property
    def after(self) -> int:
        """The address after the instruction."""
        return self.address + isa.expand()[self.opcode].length

    @property
    def target(self) -> int:
        """The address to which it jumps, if it is a jump."""
        is_relative = self.opcode in JUMPS_RELATIVE
        return self.after + (self.byte ^ 0x80) - 0x80 if is_relative else self.word

    @property
    def t_cycles(self) -> int:
        """Its T-cycles; a jump is taken."""
        return 4 * isa.expand()[self.opcode].m_cycles_taken


def _decode(code: bytes, address: int) -> _Instruction:
    """The instruction at an address, before the last two bytes of the code."""
    first, second, third = code[address : address + 3]
    return _Instruction(address, 0x100 | second if first == 0xCB else first, second, second | third << 8)


def _counted(rom: bytes, bank: int) -> Iterator[Loop]:
    """The loops of a bank that codes.py knows."""
    begin, end = bank * hw.ROM_BANK_SIZE, (bank + 1) * hw.ROM_BANK_SIZE
    for code, kind, counter in counted_loops():
        at = rom.find(code, begin, end - 3)
        while at >= 0:
            found = [_decode(rom, at)]
            while found[-1].after < at + len(code):
                found.append(_decode(rom, found[-1].after))
            entry = _round(found) | table.KIND.put(kind) | table.COUNTER.put(counter)
            yield Loop(at, entry, frozenset(one.address for one in found))
            at = rom.find(code, at + 1, end - 3)


def _round(instructions: Sequence[_Instruction]) -> int:
    """The part of an entry that describes a round of these instructions."""
    t_cycles = sum(one.t_cycles for one in instructions)
    return table.round_of(t_cycles, len(instructions), instructions[-1].t_cycles)


def _waits(rom: bytes, bank: int, changing: frozenset[int]) -> Iterator[Loop]:
    """The delays and polls of a bank; `changing`: registers that no poll may read."""
    first, begin = (hw.ROM_BANK_SIZE, bank * hw.ROM_BANK_SIZE) if bank else (0, 0)
    seen = rom[:first] + rom[begin : begin + hw.ROM_BANK_SIZE]
    code = np.frombuffer(seen, np.uint8).astype(np.int64)
    second, third = np.append(code[1:], 0), np.append(code[2:], (0, 0))
    addresses = np.arange(len(code))
    targets = np.where(np.isin(code, JUMPS_RELATIVE), addresses + 2 + (second ^ 0x80) - 0x80, -1)
    targets = np.where(np.isin(code, JUMPS_ABSOLUTE), second | third << 8, targets)
    near = (targets >= first) & (targets <= addresses) & (addresses - targets < LONGEST)
    for end in np.flatnonzero(near).tolist():
        path = _path(seen, int(targets[end]), end)
        kind = _kind([one.opcode for one in path])
        if kind is None or not _repeats(path[:-1], changing):
            continue
        leaves_bank = min(one.address for one in path) < first
        if kind == table.POLL and (leaves_bank or _writes(path)):
            kind = table.POLL_WITH_CALLS
        entry, nest = _round(path) | table.KIND.put(kind), None
        if kind <= table.COUNTER_A:
            pushed = [PUSHES.index(one.opcode) + 1 for one in path if one.opcode in PUSHES]
            entry |= table.PUSHED.put(pushed[-1] if pushed else 0)
            outer = [] if pushed else _outer(seen, path)
            if outer:
                path, nest = path + outer, _nest(path, outer)
        indices = [one.address if one.address < first else begin + one.address - first for one in path]
        yield Loop(indices[0], entry, frozenset(indices), nest)


def _path(code: bytes, begin: int, end: int) -> list[_Instruction]:
    """The instructions of a round from `begin` to the jump at `end`, through the routines that it calls, in the address
    space from 0000. Empty if there are several paths, or it is too long, or it has an instruction that no waiting loop
    may have."""
    at, found = begin, list[_Instruction]()
    stack: list[int] = []  # return addresses of its routines; 0 for a pair
    while 0 <= at < len(code) and at % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - 3 and len(found) < table.INSTRUCTIONS.most:
        one = _decode(code, at)
        found.append(one)
        if at == end and not stack:
            return found if sum(one.t_cycles for one in found) <= table.T_CYCLES.most else []
        at = _next(one, stack) if one.opcode in BODY else -1
    return []


def _next(one: _Instruction, stack: list[int]) -> int:
    """The address of the next instruction, with the stack of _path; -1 if an instruction pops something that it did not
    push, or the stack is full."""
    if one.opcode == RET or one.opcode in POPS:
        if not stack or (stack[-1] != 0) != (one.opcode == RET):
            return -1
        return stack.pop() or one.after
    if one.opcode == CALL or one.opcode in PUSHES:
        stack.append(one.after if one.opcode == CALL else 0)
    if len(stack) > table.MOST_ON_STACK:
        return -1
    return one.target if one.opcode in (JR, JP, CALL) else one.after


def _writes(path: Sequence[_Instruction]) -> bool:
    """True if a round writes the stack or P1."""
    return any(one.opcode in (LDH_WRITE, CALL, *PUSHES) for one in path)


def _repeats(body: Sequence[_Instruction], changing: frozenset[int]) -> bool:
    """True if a second round finds the same memory as the first. That is so if it reads only memory that events change,
    or P1 after it has selected a row, and writes only P1 and the stack, which it does not read by address."""
    reads, selects_row = set[int](), False
    for one in body:
        address = one.word if one.opcode == LD_READ else 0xFF00 | one.byte
        if one.opcode == LDH_WRITE:
            if address != hw.P1:
                return False
            selects_row = True
        elif one.opcode in (LDH_READ, LD_READ):
            if address in changing or not any(first <= address < end for first, end in CONSTANT):
                return False
            if address != hw.P1 or not selects_row:
                reads.add(address)
    uses_stack = any(one.opcode in (CALL, *PUSHES) for one in body)
    reads_ram = any(address < hw.IO or address >= hw.HRAM for address in reads)
    return not (uses_stack and reads_ram) and not (selects_row and hw.P1 in reads)


def _kind(opcodes: Sequence[int]) -> int | None:
    """The kind of waiting loop that these opcodes form, if they form one."""
    if not opcodes:
        return None
    *body, jump = opcodes
    if jump in (JR_NZ, JP_NZ) and body:
        if body[-1] in COUNTERS and _does_nothing(body[:-1]):
            return COUNTERS.index(body[-1])
        if len(body) == 3 and body[0] in WIDE_COUNTERS:
            pair = WIDE_COUNTERS.index(body[0])
            high, low = 2 * pair, 2 * pair + 1
            if body[1:] in ([0x78 + high, 0xB0 + low], [0x78 + low, 0xB0 + high]):
                return table.WIDE_BC + pair
    of_a = next((opcode for opcode in body if opcode in LOADS_OF_A or opcode in CHANGES_OF_A), None)
    return table.POLL if all(opcode in POLL_BODY for opcode in body) and of_a not in CHANGES_OF_A else None


def _does_nothing(opcodes: Sequence[int]) -> bool:
    """True for `nop`, jumps, and pairs that are pushed and popped at once."""
    rest = iter(opcodes)
    keeps = ((opcode in PUSHES[:3] and next(rest, 0) == opcode - 4) or opcode in (NOP, JR, JP) for opcode in rest)
    return all(keeps)


def _outer(code: bytes, delay: Sequence[_Instruction]) -> list[_Instruction]:
    """The instructions from a delay's jump back to its start, if they only count a pair down to 0, load the delay's
    counter, do nothing and jump; else none."""
    begin, at, found = delay[0].address, delay[-1].after, list[_Instruction]()
    left = _counting(COUNTERS.index(delay[-2].opcode))
    while at != begin:
        is_near = at // hw.ROM_BANK_SIZE == begin // hw.ROM_BANK_SIZE and at % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - 3
        if not is_near or len(found) == LONGEST_NEST:
            return []
        one = _decode(code, at)
        found.append(one)
        if one.opcode not in (NOP, JR, JP):
            left = {steps[1:] for steps in left if steps and steps[0] == one.opcode}
            if not left:
                return []
        at = one.target if one.opcode in (JR, JP, JR_NZ, JP_NZ) else one.after
    return found if () in left else []


def _counting(counter: int) -> set[tuple[int, ...]]:
    """The instructions that an outer loop may have, besides `nop` and jumps, if its delay counts register number
    `counter`."""
    if counter >= len(LOADS):
        return set()
    pairs = [pair for pair in range(3) if counter // 2 != pair]
    return {
        (WIDE_COUNTERS[pair], 0x78 + 2 * pair + half, 0xB0 + 2 * pair + 1 - half, test, LOADS[counter])
        for pair, half, test in product(pairs, (0, 1), (RET_Z, JR_Z, JP_Z, JR_NZ, JP_NZ))
    }


def _nest(delay: Sequence[_Instruction], outer: Sequence[_Instruction]) -> tuple[int, int]:
    """The two words of a nest."""
    cycles = [
        4 * isa.expand()[one.opcode].m_cycles if one.opcode in (RET_Z, JR_Z, JP_Z) else one.t_cycles for one in outer
    ]  # when the pair is 0 they leave the loop
    start = next(one.byte for one in outer if one.opcode in LOADS)
    pair = next(WIDE_COUNTERS.index(one.opcode) for one in outer if one.opcode in WIDE_COUNTERS)
    rounds = (start - 1 & 0xFF) + 1
    not_taken = delay[-1].t_cycles - 4 * isa.expand()[delay[-1].opcode].m_cycles  # of the delay's last jump
    t_cycles = rounds * sum(one.t_cycles for one in delay) + sum(cycles) - not_taken
    first = table.NEST_T_CYCLES.put(t_cycles) | table.NEST_PAIR.put(pair) | table.NEST_LAST.put(cycles[-1])
    instructions = rounds * len(delay) + len(outer)
    return first, table.NEST_INSTRUCTIONS.put(instructions) | table.NEST_START.put(start)
