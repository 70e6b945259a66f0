"""Loops of a ROM that only wait, found in its code: delays that count a register down, and polls of RAM.

cpu/wait_loops.py skips their rounds in both kernels. A delay is `dec r / jr nz`, with any number of `nop` and of jumps
to the next instruction before it, or `dec rr / ld a,high / or low / jr nz`. A poll loads A from WRAM, HRAM, or a
register that does not change with time, works on A and flags and jumps back: only an event can end it.

Their marks in Machine.code are shared with hooks (probes/hooks.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import isa

LONGEST = 20  # bytes before the jump's end
MOST_INSTRUCTIONS = 16
# Marks of a place, 7 bits in Machine.code: different loops from 1 on, hooks from FIRST_HOOK on, LCD_POLL
MOST_ENTRIES, MOST_HOOKS = 62, 64
FIRST_HOOK = MOST_ENTRIES + 1
LCD_POLL = 127  # the mark of `ldh a,[LY]` and `ldh a,[STAT]`, with which loops may begin that poll them
LCD_POLL_ROOM = 8  # bytes that such a loop has at most
LCD_POLL_JUMP = 5  # bytes before its jump, at most
JUMPS_RELATIVE, JUMPS_ABSOLUTE = (0x18, 0x20, 0x28, 0x30, 0x38), (0xC3, 0xC2, 0xCA, 0xD2, 0xDA)
JR, JR_NZ, JP_NZ = 0x18, 0x20, 0xC2
# A poll's body. No operand at [hl]: that is often STAT, and what a register shows changes with time.
_LOADS = (0xF0, 0xFA, *range(0x78, 0x7E), 0x7F, 0x3E)
_ARITHMETIC = (*(op for op in range(0x80, 0xC0) if op & 7 != 6), 0xC6, 0xCE, 0xD6, 0xDE, 0xE6, 0xEE, 0xF6, 0xFE, 0x2F)
_BIT_TESTS = (0x100 | op for op in range(0x40, 0x80) if op & 7 != 6)
POLL_BODY = frozenset((0x00, *_LOADS, *_ARITHMETIC, *_BIT_TESTS))
# Memory, P1, sound, and where a DMG has no register: [first, end)
CONSTANT = (
    *((hw.WRAM, hw.ECHO), (hw.P1, hw.SB), (0xFF03, hw.DIV), (0xFF08, hw.IF), (hw.NR10, hw.WAVE_RAM_END)),
    *((hw.WX + 1, hw.HRAM), (hw.HRAM, hw.IE)),
)
COUNTERS = (0x05, 0x0D, 0x15, 0x1D, 0x25, 0x2D, 0x3D)  # dec b c d e h l a
WIDE_COUNTERS = (0x0B, 0x1B, 0x2B)  # dec bc de hl
# Kinds of loops: a poll, or what counts down
POLL, DELAY_B, DELAY_WIDE = 0, 1, 8  # DELAY_B to 7: b c d e h l a; DELAY_WIDE to 10: bc de hl
HOOK = 11  # no loop; the rest of its entry is the hook's number
# An entry of the table: T-cycles of a round, instructions of it, T-cycles of its jump, its kind
INSTRUCTIONS_SHIFT, JUMP_SHIFT, KIND_SHIFT = 10, 15, 20


@lru_cache(maxsize=4)
def find_waits(rom: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(places, entries, jumps) of the loops of a ROM, all int32: indices in it of their first instructions, what
    Machine.waits holds of each, and indices of their last instructions. Banks 1 and up are taken as seen at 4000."""
    places, entries, jumps = [], [], []
    for begin in range(0, len(rom), hw.ROM_BANK_SIZE):
        bank = rom[begin : begin + hw.ROM_BANK_SIZE]
        for place, entry, jump in _loops(bank, 0 if begin == 0 else hw.ROM_BANK_SIZE):
            places.append(begin + place)
            entries.append(entry)
            jumps.append(begin + jump)
    return np.array(places, np.int32), np.array(entries, np.int32), np.array(jumps, np.int32)


def mark(code: np.ndarray, rom: bytes) -> np.ndarray:
    """Sets bits 24-30 of the words in `code` (len(rom),) int32 where a loop begins, to its number in the table that is
    returned, counted from 1, or to LCD_POLL. Loops beyond MOST_ENTRIES different ones are left out. Behind those the
    table, int32, has the entries of MOST_HOOKS hooks."""
    lcd_reads = np.isin(code & 0xFFFF, [0xF0 | (address & 0xFF) << 8 for address in (hw.LY, hw.STAT)])
    has_room = np.arange(len(code)) % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - LCD_POLL_ROOM
    code[lcd_reads & has_room] |= LCD_POLL << 24
    places, entries, _ = find_waits(rom)
    kinds, counts = np.unique(entries, return_counts=True)
    loops = kinds[np.argsort(-counts, kind="stable")][:MOST_ENTRIES]
    for number, entry in enumerate(loops, 1):
        found = places[entries == entry]
        code[found] = (code[found] & 0xFFFFFF) | number << 24
    table = np.zeros(MOST_ENTRIES + MOST_HOOKS, np.int32)
    table[: len(loops)] = loops
    table[MOST_ENTRIES:] = HOOK << KIND_SHIFT | np.arange(MOST_HOOKS)
    return table


def _loops(bank: bytes, address: int) -> Iterator[tuple[int, int, int]]:
    """(place, entry, place of the jump) of each loop in a bank that is seen from `address` on."""
    code = np.frombuffer(bank, np.uint8).astype(np.int64)
    second, third = np.append(code[1:], 0), np.append(code[2:], (0, 0))
    places = np.arange(len(code))
    targets = np.where(np.isin(code, JUMPS_RELATIVE), places + 2 + (second ^ 0x80) - 0x80, -1)
    targets = np.where(np.isin(code, JUMPS_ABSOLUTE), (second | third << 8) - address, targets)
    near = (targets >= 0) & (targets <= places) & (places - targets < LONGEST) & (places < len(code) - 3)
    for end in np.flatnonzero(near).tolist():
        entry = _entry(bank, int(targets[end]), end)
        if entry is not None:
            yield int(targets[end]), entry, end


def _entry(code: bytes, begin: int, end: int) -> int | None:
    """The entry of the loop from `begin` to the jump at `end`; None if it does not only wait."""
    table, at, body, t_cycles = isa.expand(), begin, [], 0
    while at < end:
        opcode = 0x100 | code[at + 1] if code[at] == 0xCB else code[at]
        instruction = table.get(opcode)
        if instruction is None or len(body) == MOST_INSTRUCTIONS:
            return None
        is_pause = opcode == JR and code[at + 1] == 0
        t_cycles += 4 * instruction.m_cycles_taken
        address = code[at + 1] | code[at + 2] << 8
        if opcode == 0xF0:
            address = 0xFF00 | code[at + 1]
        if opcode in (0xF0, 0xFA) and not any(first <= address < end for first, end in CONSTANT):
            return None
        body.append(0 if is_pause else opcode)
        at += instruction.length
    kind = _kind(body, code[end]) if at == end else None
    if kind is None:
        return None
    jump = 4 * table[code[end]].m_cycles_taken
    return t_cycles + jump | (len(body) + 1) << INSTRUCTIONS_SHIFT | jump << JUMP_SHIFT | kind << KIND_SHIFT


def _kind(body: list[int], jump: int) -> int | None:
    """How a loop of these opcodes waits, if it does."""
    if jump in (JR_NZ, JP_NZ) and body:
        if body[-1] in COUNTERS and not any(body[:-1]):
            return DELAY_B + COUNTERS.index(body[-1])
        if len(body) == 3 and body[0] in WIDE_COUNTERS:
            pair = WIDE_COUNTERS.index(body[0])
            high, low = 2 * pair, 2 * pair + 1
            if body[1:] in ([0x78 + high, 0xB0 + low], [0x78 + low, 0xB0 + high]):
                return DELAY_WIDE + pair
    return POLL if all(opcode in POLL_BODY for opcode in body) else None
