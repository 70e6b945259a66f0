"""The table of a ROM's loops: the entries of Machine.waits, and the marks in Machine.code at the start of each loop.

Loops that take equally long and do the same share an entry. Hooks (probes/hooks.py) have marks, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.bits import Bits, check

# Marks, 7 bits in Machine.code: different loops from 1 on, hooks from FIRST_HOOK on, LCD_POLL
MOST_ENTRIES, MOST_HOOKS, MOST_NESTS = 62, 64, 7
FIRST_HOOK = MOST_ENTRIES + 1
LCD_POLL = 127  # the mark of `ldh a,[LY]` and `ldh a,[STAT]`, with which polls may begin
LCD_POLL_JUMP = 5  # bytes before its jump, at most
LCD_POLL_ROOM = 8  # bytes that such a loop has at most
MARK_SHIFT = 24
MOST_ON_STACK = 8  # words that a round may push
FIRST_NEST = MOST_ENTRIES + MOST_HOOKS  # index of the nests' words

# Counters: 0 to 6 are `dec` of b c d e h l a, then `inc c`, then `dec rr / ld a,r / or r` of bc de hl
COUNTER_A, INC_C, WIDE_BC, WIDE_DE, WIDE_HL = 6, 7, 8, 9, 10
# Kinds of loops. 0 to 6 and 8 to 10 are delays that only count; the kind is the counter.
POLL = 7  # of RAM, or of a register that does not change with time
POLL_WITH_CALLS = 11  # a poll that writes P1 or the stack, or leaves its bank for bank 0
HOOK = 12  # no loop
# Fills store A; or 0, D or E, which they load into A in each round
COPY_FROM_HL, COPY_FROM_DE, FILL, FILL_0, FILL_D, FILL_E, FILL_EVERY_4TH = range(13, 20)
ADD_BC, ADD_DE, ADD_HL, MULTIPLY = range(20, 24)
CRASH = 24  # `rst 38` at 0038 (loops/crash.py)
NO_LOOP = 31

# An entry: T-cycles and instructions of a round, T-cycles of the jump that ends it, and the kind
T_CYCLES, INSTRUCTIONS = Bits("T_CYCLES", 0, 0, 10), Bits("INSTRUCTIONS", 0, 10, 6)
JUMP, KIND = Bits("JUMP", 0, 16, 5), Bits("KIND", 0, 21, 5)
# of a delay: the pair that each round pushes last (bc de hl are 1 to 3), and its nest, counted from 1
PUSHED, NEST = Bits("PUSHED", 0, 26, 2), Bits("NEST", 0, 28, 3)
# of a loop that copies, fills, adds or multiplies
COUNTER = Bits("COUNTER", 0, 26, 4)
# of a hook, in place of the round
HOOK_NUMBER = Bits("HOOK_NUMBER", 0, 0, 21)
# A nest: T-cycles of a round of the outer loop, the pair that it counts, T-cycles of its last instruction; in a second
# word its instructions, and the start value of the delay's counter
NEST_T_CYCLES, NEST_PAIR = Bits("NEST_T_CYCLES", 0, 0, 20), Bits("NEST_PAIR", 0, 20, 2)
NEST_LAST = Bits("NEST_LAST", 0, 24, 5)
NEST_INSTRUCTIONS, NEST_START = Bits("NEST_INSTRUCTIONS", 1, 0, 16), Bits("NEST_START", 1, 16, 8)
NONE = KIND.put(NO_LOOP)  # an entry that is in no table
for _record in (
    (T_CYCLES, INSTRUCTIONS, JUMP, KIND, PUSHED, NEST),
    (T_CYCLES, INSTRUCTIONS, JUMP, KIND, COUNTER),
    (HOOK_NUMBER, KIND),
    (NEST_T_CYCLES, NEST_PAIR, NEST_LAST, NEST_INSTRUCTIONS, NEST_START),
):
    check(_record)


class Loop(NamedTuple):
    """A loop that can be skipped: index in the ROM of its first instruction, its entry without the number of its nest,
    the indices of all its instructions, and the two words of its nest."""

    begin: int
    entry: int
    instructions: frozenset[int]
    nest: tuple[int, int] | None = None

    @property
    def only_waits(self) -> bool:
        """True for delays and polls."""
        return KIND.get(self.entry) <= POLL_WITH_CALLS


def round_of(t_cycles: int, instructions: int, jump: int) -> int:
    """The part of an entry that describes a round; jump: T-cycles."""
    return T_CYCLES.put(t_cycles) | INSTRUCTIONS.put(instructions) | JUMP.put(jump)


def mark(code: np.ndarray, loops: Sequence[Loop]) -> np.ndarray:
    """Marks the words in `code` (size of the ROM,) int32 at which loops begin. Returns the table, int32: MOST_ENTRIES
    entries, then those of MOST_HOOKS hooks, then MOST_NESTS nests. If there are more entries or nests, it has the most
    frequent."""
    lcd_reads = np.isin(code & 0xFFFF, [0xF0 | (address & 0xFF) << 8 for address in (hw.LY, hw.STAT)])
    has_room = np.arange(len(code)) % hw.ROM_BANK_SIZE < hw.ROM_BANK_SIZE - LCD_POLL_ROOM
    code[lcd_reads & has_room] |= LCD_POLL << MARK_SHIFT
    nests = [nest for nest, _ in Counter(loop.nest for loop in loops if loop.nest).most_common(MOST_NESTS)]
    numbers = np.array([nests.index(loop.nest) + 1 if loop.nest in nests else 0 for loop in loops], np.int32)
    entries = np.array([loop.entry for loop in loops], np.int32) | NEST.put(numbers)
    begins = np.array([loop.begin for loop in loops], np.int32)
    different, counts = np.unique(entries, return_counts=True)
    kept = different[np.argsort(-counts, kind="stable")][:MOST_ENTRIES]
    for number, entry in enumerate(kept, 1):
        found = begins[entries == entry]
        code[found] = (code[found] & 0xFFFFFF) | number << MARK_SHIFT
    table = np.zeros(FIRST_NEST + 2 * MOST_NESTS, np.int32)
    table[: len(kept)] = kept
    table[MOST_ENTRIES:FIRST_NEST] = KIND.put(HOOK) | HOOK_NUMBER.put(np.arange(MOST_HOOKS))
    table[FIRST_NEST:][: 2 * len(nests)] = np.array(nests, np.int32).reshape(-1)
    return table
