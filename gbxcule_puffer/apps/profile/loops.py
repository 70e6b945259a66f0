"""The loops of a game that were executed most, and which of them only wait."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gbxcule_puffer.apps.profile.measure import Counts
from gbxcule_puffer.apps.profile.names import register_text
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu.disassembler import disassemble
from gbxcule_puffer.emulator.hw import counters

LONGEST = 256  # bytes
JR, JP = (0x18, 0x20, 0x28, 0x30, 0x38), (0xC3, 0xC2, 0xCA, 0xD2, 0xDA)
COUNTING = re.compile(r"nop|(inc|dec) \w+|ld [a-l],[a-l]|(or|and|xor|cp|sub|sbc) a,(\w+|\$\w+)|j[rp] .*")
OPERAND = re.compile(r"(?:ldh? a,|(?:add|adc|sub|sbc|and|xor|or|cp) a,|ld [a-l],|bit \d,)(\[.+\])")


@dataclass(frozen=True)
class Loop:
    """A loop from index `begin` of the ROM to the jump back at `end`; executed: instructions of it; repeated: of these,
    those of rounds that changed nothing, or that only counted; lines: (index, text) of its instructions."""

    begin: int
    end: int
    executed: int
    repeated: int
    counts_down: bool
    lines: tuple[tuple[int, str], ...]

    @property
    def what_it_does(self) -> str:
        """The end of a sentence that begins with the loop."""
        if self.counts_down:
            return "only counts: a delay"
        operands = dict.fromkeys(found[1] for _, text in self.lines if (found := OPERAND.fullmatch(text)))
        reads = [register_text(int(name[2:-1], 16)) if name.startswith("[$") else name for name in operands]
        if self.repeated:
            calls = dict.fromkeys(text.removeprefix("call ") for _, text in self.lines if text.startswith("call "))
            doing = [f"reading {', '.join(reads)}"] * bool(reads) + [f"calling {', '.join(calls)}"] * bool(calls)
            return ", ".join(["waits", *doing])
        return "works"


def address_of(index: int) -> tuple[int, int]:
    """(bank, address) of an index of the ROM."""
    bank, offset = divmod(index, hw.ROM_BANK_SIZE)
    return bank, offset + (hw.ROM_BANK_SIZE if bank else 0)


def find_loops(counts: Counts) -> list[Loop]:
    """Loops that do not overlap: first those that waste most, then those that execute most."""
    candidates = sorted(_candidates(counts), key=lambda loop: (-loop.repeated, -loop.executed, loop.end - loop.begin))
    chosen: list[Loop] = []
    for loop in candidates:
        if all(loop.end < other.begin or loop.begin > other.end for other in chosen):
            chosen.append(loop)
    return chosen


def _candidates(counts: Counts) -> Iterator[Loop]:
    """Every jump back that was executed, with what stands between it and its target."""
    rom = counts.cartridge.data
    executed, repeated = counts.rows[counters.EXECUTED], counts.rows[counters.REPEATED]
    for end in np.flatnonzero(executed[: len(rom) - 2]).tolist():
        begin = _target(rom, end)
        if begin is None or not 0 <= end - begin <= LONGEST:
            continue
        lines = tuple(_lines(rom, begin, end, executed))
        total = int(executed[begin : end + 1].sum())
        counts_down = repeated[end] == 0 and len(lines) > 1 and all(COUNTING.fullmatch(text) for _, text in lines)
        yield Loop(begin, end, total, total if counts_down else int(repeated[end]), counts_down, lines)


def _target(rom: bytes, index: int) -> int | None:
    """The index to which a jump leads; None for other instructions, or a jump out of the bank."""
    if rom[index] in JR:
        return index + 2 + (rom[index + 1] ^ 0x80) - 0x80
    if rom[index] in JP:
        bank, _ = address_of(index)
        target = (rom[index + 1] | rom[index + 2] << 8) - (hw.ROM_BANK_SIZE if bank else 0)
        return bank * hw.ROM_BANK_SIZE + target if 0 <= target < hw.ROM_BANK_SIZE else None
    return None


def _lines(rom: bytes, begin: int, end: int, executed: np.ndarray) -> Iterator[tuple[int, str]]:
    """The instructions of a loop that were executed at least once."""
    for index in range(begin, end + 1):
        if executed[index]:
            text, _ = disassemble(rom[index : index + 3], address_of(index)[1])
            yield index, text
