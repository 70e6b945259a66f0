"""Loops of a ROM that can be skipped, found in its code: delays that count a register down, polls of RAM, and those of
cpu/loop_codes.py, which copy, fill, add or multiply.

cpu/wait_loops.py skips their rounds; the data path has gpu/loop_skips.py for some of the others than delays and polls.
A delay is `dec r / jr nz`, with any number of `nop`, of jumps to the next instruction and of `push rr / pop rr` before
it, or `dec rr / ld a,high / or low / jr nz`. One in another that counts a pair down, and begins it anew each time, is
nested: GBDK's `delay` is. A poll loads A from WRAM, HRAM, or a register that does not change with
time, works on registers and jumps back: only an event can end it. It may also call routines, keep pairs on the stack
and select rows of P1, as GBDK's `waitpad` does.

Their marks in Machine.code are shared with hooks (probes/hooks.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa, registers
from gbxcule_puffer.emulator.cpu.loop_codes import counted_loops

LONGEST = 20  # bytes before the jump's end
MOST_INSTRUCTIONS, MOST_T_CYCLES = 63, 1023  # of a round
MOST_ON_STACK = 8  # words
# Marks of a place, 7 bits in Machine.code: different loops from 1 on, hooks from FIRST_HOOK on, LCD_POLL
MOST_ENTRIES, MOST_HOOKS = 62, 64
FIRST_HOOK = MOST_ENTRIES + 1
LCD_POLL = 127  # the mark of `ldh a,[LY]` and `ldh a,[STAT]`, with which loops may begin that poll them
LCD_POLL_ROOM = 8  # bytes that such a loop has at most
LCD_POLL_JUMP = 5  # bytes before its jump, at most
JUMPS_RELATIVE, JUMPS_ABSOLUTE = (0x18, 0x20, 0x28, 0x30, 0x38), (0xC3, 0xC2, 0xCA, 0xD2, 0xDA)
NOP, JR, JP, JR_NZ, JP_NZ, CALL, RET = 0x00, 0x18, 0xC3, 0x20, 0xC2, 0xCD, 0xC9
JR_Z, JP_Z, RET_Z = 0x28, 0xCA, 0xC8
PUSHES, POPS = (0xC5, 0xD5, 0xE5, 0xF5), (0xC1, 0xD1, 0xE1, 0xF1)
LDH_READ, LD_READ, LDH_WRITE = 0xF0, 0xFA, 0xE0
# A poll's body. No operand at [hl]: that is often STAT, and what a register shows changes with time.
_LOADS = [opcode for opcode, found in isa.expand().items() if found.family == "load8" and "[" not in found.mnemonic]
_ARITHMETIC = (*(op for op in range(0x80, 0xC0) if op & 7 != 6), 0xC6, 0xCE, 0xD6, 0xDE, 0xE6, 0xEE, 0xF6, 0xFE, 0x2F)
_BIT_TESTS = (0x100 | op for op in range(0x40, 0x80) if op & 7 != 6)
_SWAPS = (0x130, 0x131, 0x132, 0x133, 0x134, 0x135, 0x137)
_OTHERS = (NOP, JR, JP, CALL, RET, *PUSHES, *POPS, LDH_READ, LD_READ, LDH_WRITE)
POLL_BODY = frozenset((*_LOADS, *_ARITHMETIC, *_BIT_TESTS, *_SWAPS, *_OTHERS))
# A loop that begins with one of the second kind counts: hUGEDriver's `sub 3 / cp 3 / jr nc`
LOADS_OF_A = (0x3E, *range(0x78, 0x80), 0x97, 0xAF, 0xF1, LDH_READ, LD_READ)
CHANGES_OF_A = ({*range(0x80, 0xA0), *range(0xA8, 0xB0)} - set(LOADS_OF_A)) | {0xC6, 0xCE, 0xD6, 0xDE, 0xEE, 0x2F}
# Memory, P1, sound, and where a DMG has no register: [first, end)
CONSTANT = ((hw.WRAM, hw.ECHO), *registers.CONSTANT, (hw.HRAM, hw.IE))
COUNTERS = (0x05, 0x0D, 0x15, 0x1D, 0x25, 0x2D, 0x3D)  # dec b c d e h l a
WIDE_COUNTERS = (0x0B, 0x1B, 0x2B)  # dec bc de hl
# Kinds of loops: a poll, or what counts down
POLL, DELAY_B, DELAY_WIDE = 0, 1, 8  # DELAY_B to 7: b c d e h l a; DELAY_WIDE to 10: bc de hl
HOOK = 11  # no loop; the rest of its entry is the hook's number
POLL_WITH_CALLS = 12  # a poll that writes P1 or the stack, or leaves its bank for bank 0
# 13 and up: cpu/loop_codes.py
# An entry of the table: T-cycles of a round, instructions of it, T-cycles of its jump, its kind; then what a counted
# loop counts, or the pair that a delay pushed last (bc de hl are 1 to 3)
INSTRUCTIONS_SHIFT, JUMP_SHIFT, KIND_SHIFT, DETAIL_SHIFT = 10, 16, 21, 26
# Of a delay also, from 1 on, the number of its nest, two words behind the hooks: T-cycles of a round of the outer loop,
# the pair that it counts, T-cycles of its last instruction; then its instructions, and what the delay begins with
NEST_SHIFT, MOST_NESTS, FIRST_NEST = 28, 7, MOST_ENTRIES + MOST_HOOKS
NEST_PAIR_SHIFT, NEST_LAST_SHIFT, NEST_START_SHIFT = 20, 24, 16
LOADS = (0x06, 0x0E, 0x16, 0x1E, 0x26, 0x2E)  # ld r,n, as COUNTERS
LONGEST_NEST = 24  # instructions of the outer loop


class Loop(NamedTuple):
    """A loop that can be skipped: index in the ROM of its first instruction, what Machine.waits holds of it and of its
    nest, and indices of all its instructions."""

    place: int
    entry: int
    instructions: frozenset[int]
    nest: tuple[int, int] | None = None

    @property
    def only_waits(self) -> bool:
        """True for delays and polls."""
        return (self.entry >> KIND_SHIFT) & 0x1F <= POLL_WITH_CALLS


@lru_cache(maxsize=4)
def find_loops(rom: bytes) -> tuple[Loop, ...]:
    """The loops of a ROM. Banks 1 and up are taken as seen at 4000, beside bank 0."""
    banks = range(len(rom) // hw.ROM_BANK_SIZE)
    return tuple(loop for bank in banks for loop in (*_waits(rom, bank), *_counted(rom, bank)))


def mark(code: np.ndarray, rom: bytes) -> np.ndarray:
    """Sets bits 24-30 of the words in `code` (len(rom),) int32 where a loop begins, to its number in the table that is
    returned, counted from 1, or to LCD_POLL. Loops beyond MOST_ENTRIES different ones are left out. Behind those the
    table, int32, has the entries of MOST_HOOKS hooks and MOST_NESTS nests."""
    lcd_reads = np.isin(code & 0xFFFF, [0xF0 | (address & 0xFF) << 8 for address in (hw.LY, hw.STAT)])
    has_room = np.arange(len(code)) % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - LCD_POLL_ROOM
    code[lcd_reads & has_room] |= LCD_POLL << 24
    found_loops = find_loops(rom)
    nests = [nest for nest, _ in Counter(loop.nest for loop in found_loops if loop.nest).most_common(MOST_NESTS)]
    numbers = [nests.index(loop.nest) + 1 if loop.nest in nests else 0 for loop in found_loops]
    places = np.array([loop.place for loop in found_loops], np.int32)
    entries = np.array([loop.entry for loop in found_loops], np.int32) | np.array(numbers, np.int32) << NEST_SHIFT
    kinds, counts = np.unique(entries, return_counts=True)
    loops = kinds[np.argsort(-counts, kind="stable")][:MOST_ENTRIES]
    for number, entry in enumerate(loops, 1):
        found = places[entries == entry]
        code[found] = (code[found] & 0xFFFFFF) | number << 24
    table = np.zeros(FIRST_NEST + 2 * MOST_NESTS, np.int32)
    table[: len(loops)] = loops
    table[MOST_ENTRIES:FIRST_NEST] = HOOK << KIND_SHIFT | np.arange(MOST_HOOKS)
    table[FIRST_NEST:][: 2 * len(nests)] = np.array(nests, np.int32).reshape(-1)
    return table


def _counted(rom: bytes, bank: int) -> Iterator[Loop]:
    """The loops of a bank that cpu/loop_codes.py has."""
    begin, end = bank * hw.ROM_BANK_SIZE, (bank + 1) * hw.ROM_BANK_SIZE
    for code, kind, counter in counted_loops():
        at = rom.find(code, begin, end - 3)
        while at >= 0:
            places = _instructions(rom, at, at + len(code))
            opcodes = [0x100 | rom[place + 1] if rom[place] == 0xCB else rom[place] for place in places]
            t_cycles = sum(4 * isa.expand()[opcode].m_cycles_taken for opcode in opcodes)
            yield Loop(at, _entry(t_cycles, len(places), opcodes[-1], kind, counter), frozenset(places))
            at = rom.find(code, at + 1, end - 3)


def _instructions(rom: bytes, begin: int, end: int) -> list[int]:
    """Places of the instructions from `begin` to `end`."""
    places = []
    while begin < end:
        places.append(begin)
        begin += 2 if rom[begin] == 0xCB else isa.expand()[rom[begin]].length
    return places


def _entry(t_cycles: int, instructions: int, jump: int, kind: int, detail: int) -> int:
    """An entry of the table; jump: its opcode."""
    of_jump = 4 * isa.expand()[jump].m_cycles_taken
    shape = t_cycles | instructions << INSTRUCTIONS_SHIFT | of_jump << JUMP_SHIFT
    return shape | kind << KIND_SHIFT | detail << DETAIL_SHIFT


def _waits(rom: bytes, bank: int) -> Iterator[Loop]:
    """The delays and polls of a bank."""
    first, begin = (hw.ROM_BANK_SIZE, bank * hw.ROM_BANK_SIZE) if bank else (0, 0)
    shown = rom[:first] + rom[begin : begin + hw.ROM_BANK_SIZE]
    code = np.frombuffer(shown, np.uint8).astype(np.int64)
    second, third = np.append(code[1:], 0), np.append(code[2:], (0, 0))
    addresses = np.arange(len(code))
    targets = np.where(np.isin(code, JUMPS_RELATIVE), addresses + 2 + (second ^ 0x80) - 0x80, -1)
    targets = np.where(np.isin(code, JUMPS_ABSOLUTE), second | third << 8, targets)
    near = (targets >= first) & (targets <= addresses) & (addresses - targets < LONGEST)
    for end in np.flatnonzero(near).tolist():
        path = _path(shown, int(targets[end]), end)
        kind = None if path is None else _kind([opcode for _, opcode in path.instructions])
        if path is None or kind is None:
            continue
        if kind == POLL and (path.has_effects or min(path.instructions)[0] < first):
            kind = POLL_WITH_CALLS
        pushed = [PUSHES.index(opcode) + 1 for _, opcode in path.instructions if opcode in PUSHES]
        detail = pushed[-1] if pushed and DELAY_B <= kind < DELAY_WIDE else 0
        entry = _entry(path.t_cycles, len(path.instructions), shown[end], kind, detail)
        instructions, nest = path.instructions, None
        if DELAY_B <= kind < DELAY_WIDE and not detail:
            outer = _outer(shown, path, end)
            if outer:
                instructions, nest = instructions + outer, _nest(path, outer, shown)
        places = [at if at < first else begin + at - first for at, _ in instructions]
        yield Loop(places[0], entry, frozenset(places), nest)


class _Path(NamedTuple):
    """The (address, opcode) of a round's instructions in order, its length, and whether it writes the stack or P1."""

    instructions: list[tuple[int, int]]
    t_cycles: int
    has_effects: bool


def _path(code: bytes, begin: int, end: int) -> _Path | None:
    """The round from `begin` to the jump at `end`, through the routines that it calls, in what is seen from 0000 on.
    None where it may go several ways, or where a second round need not do what the first did."""
    table, at, instructions, t_cycles = isa.expand(), begin, [], 0
    stack: list[int] = []  # where its routines return to; 0 for a pair
    reads, writes_p1, uses_stack = set[int](), False, False
    while len(instructions) < MOST_INSTRUCTIONS:
        is_last = at == end and not stack
        if at % hw.ROM_BANK_SIZE >= hw.ROM_BANK_SIZE - 3 or at >= len(code):
            return None
        opcode = 0x100 | code[at + 1] if code[at] == 0xCB else code[at]
        if not is_last and opcode not in POLL_BODY and opcode not in COUNTERS + WIDE_COUNTERS:
            return None
        instructions.append((at, opcode))
        t_cycles += 4 * table[opcode].m_cycles_taken
        if is_last:
            break
        byte, word = code[at + 1], code[at + 1] | code[at + 2] << 8
        at += table[opcode].length
        address = word if opcode == LD_READ else 0xFF00 | byte
        if opcode in (LDH_READ, LD_READ):
            if not any(first <= address < last for first, last in CONSTANT):
                return None
            if not (address == hw.P1 and writes_p1):
                reads.add(address)
        elif opcode == LDH_WRITE:
            if address != hw.P1:
                return None
            writes_p1 = True
        elif opcode == CALL or opcode in PUSHES:
            uses_stack = True
            stack.append(at if opcode == CALL else 0)
        elif opcode == RET or opcode in POPS:
            if not stack or (stack[-1] != 0) != (opcode == RET):
                return None
            target = stack.pop()
            at = target if opcode == RET else at
        if opcode == JR:
            at += (byte ^ 0x80) - 0x80
        elif opcode in (JP, CALL):
            at = word
        if len(stack) > MOST_ON_STACK or at < 0:
            return None
    else:
        return None
    reads_ram = any(address < hw.IO or address >= hw.HRAM for address in reads)
    if t_cycles > MOST_T_CYCLES or (uses_stack and reads_ram) or (writes_p1 and hw.P1 in reads):
        return None
    return _Path(instructions, t_cycles, uses_stack or writes_p1)


def _outer(code: bytes, delay: _Path, end: int) -> list[tuple[int, int]]:
    """The (address, opcode) of what leads from a delay, whose jump is at `end`, back to its begin, if all of that is
    counting a pair down to 0, loading the delay's counter, and `nop` and jumps; else nothing."""
    table, at, found = isa.expand(), end + isa.expand()[code[end]].length, list[tuple[int, int]]()
    begin, counter = delay.instructions[0][0], COUNTERS.index(delay.instructions[-2][1])
    left = _counting(counter)
    while at != begin:
        is_near = at // hw.ROM_BANK_SIZE == begin // hw.ROM_BANK_SIZE and at % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - 3
        if not is_near or len(found) == LONGEST_NEST:
            return []
        opcode = code[at]
        found.append((at, opcode))
        if opcode not in (NOP, JR, JP):
            left = {steps[1:] for steps in left if steps and steps[0] == opcode}
            if not left:
                return []
        at += table[opcode].length
        if opcode == JR or opcode == JR_NZ:
            at += (code[at - 1] ^ 0x80) - 0x80
        elif opcode in (JP, JP_NZ):
            at = code[at - 2] | code[at - 1] << 8
    return found if () in left else []


def _counting(counter: int) -> set[tuple[int, ...]]:
    """What an outer loop may do, but for `nop` and jumps, whose delay counts register number `counter`."""
    if counter >= len(LOADS):
        return set()
    pairs = [pair for pair in range(3) if counter // 2 != pair]
    return {
        (WIDE_COUNTERS[pair], 0x78 + 2 * pair + half, 0xB0 + 2 * pair + 1 - half, test, LOADS[counter])
        for pair, half, test in product(pairs, (0, 1), (RET_Z, JR_Z, JP_Z, JR_NZ, JP_NZ))
    }


def _nest(delay: _Path, outer: list[tuple[int, int]], code: bytes) -> tuple[int, int]:
    """The two words of a nest."""
    table = isa.expand()
    jump = table[delay.instructions[-1][1]]
    start, pair = 0, 0
    t_cycles, last = -4 * (jump.m_cycles_taken - jump.m_cycles), 0
    for at, opcode in outer:
        is_passed = opcode in (RET_Z, JR_Z, JP_Z)  # where the pair is 0 it leads out
        last = 4 * (table[opcode].m_cycles if is_passed else table[opcode].m_cycles_taken)
        t_cycles += last
        if opcode in LOADS:
            start = code[at + 1]
        elif opcode in WIDE_COUNTERS:
            pair = WIDE_COUNTERS.index(opcode)
    rounds = (start - 1 & 0xFF) + 1
    t_cycles += rounds * delay.t_cycles
    instructions = rounds * len(delay.instructions) + len(outer)
    return t_cycles | pair << NEST_PAIR_SHIFT | last << NEST_LAST_SHIFT, instructions | start << NEST_START_SHIFT


def _kind(round: list[int]) -> int | None:
    """How a loop of these opcodes waits, if it does."""
    *body, jump = round
    if jump in (JR_NZ, JP_NZ) and body:
        if body[-1] in COUNTERS and _does_nothing(body[:-1]):
            return DELAY_B + COUNTERS.index(body[-1])
        if len(body) == 3 and body[0] in WIDE_COUNTERS:
            pair = WIDE_COUNTERS.index(body[0])
            high, low = 2 * pair, 2 * pair + 1
            if body[1:] in ([0x78 + high, 0xB0 + low], [0x78 + low, 0xB0 + high]):
                return DELAY_WIDE + pair
    of_a = next((opcode for opcode in body if opcode in LOADS_OF_A or opcode in CHANGES_OF_A), None)
    return POLL if all(opcode in POLL_BODY for opcode in body) and of_a not in CHANGES_OF_A else None


def _does_nothing(opcodes: list[int]) -> bool:
    """True for `nop`, jumps, and pairs that are pushed and popped at once."""
    rest = iter(opcodes)
    keeps = ((opcode in PUSHES[:3] and next(rest, 0) == opcode - 4) or opcode in (NOP, JR, JP) for opcode in rest)
    return all(keeps)
