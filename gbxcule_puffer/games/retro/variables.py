"""The variables of a data.json as entries of [numbers], and as terms.

What a type means was measured with stable-retro 1.0.1 (docs/games-import.md). Its letters: `<` lowest byte first, `>`
highest first, `|` and `=` as the computer has it, which is lowest first; of two, the first orders words of two bytes;
u unsigned, i two's complement, d two decimal digits a byte, n one digit a byte, in its lower half; then the bytes.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.games.table import LONGEST_NAME, MOST_ENTRIES
from gbxcule_puffer.games.terms.parse import FUNCTIONS
from gbxcule_puffer.tasks.ram.number import Number

READS = {"u": "number", "i": "signed", "d": "bcd", "n": "digits"}
BASES = {"u": 256, "i": 256, "d": 100, "n": 10}
ORDERS = {"<": "little", ">": "big", "|": "little", "=": "little"}
MOST_BYTES, WHOLE_BYTES = 8, 7  # of a variable in stable-retro, of an entry of [numbers]
# What stable-retro's core for Game Boys shows: VRAM, cartridge RAM, WRAM, OAM, HRAM; the banks are the first ones.
REGIONS = ((hw.VRAM, hw.CART_RAM), (hw.CART_RAM, hw.WRAM), (hw.WRAM, hw.ECHO), (hw.OAM, hw.OAM_END), (hw.HRAM, hw.IE))
MOST_MASK = 2**62


class Unconverted(Exception):
    """A part that has no counterpart, with the reason."""


@dataclass
class Names:
    """Names that terms can have, each once."""

    taken: set[str] = field(default_factory=lambda: {*FUNCTIONS, "level"})

    def of(self, text: str) -> str:
        """A name that is as near to `text` as can be."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", text)[: LONGEST_NAME - 8] or "number"
        name = f"_{name}" if name[0].isdigit() else name
        name = f"{name}_" if keyword.iskeyword(name) else name
        found, number = name, 2
        while found in self.taken:
            found, number = f"{name}_{number}", number + 1
        self.taken.add(found)
        return found


@dataclass(frozen=True)
class Variable:
    """A variable: its term, and the entries of [numbers] that the term names."""

    term: str
    numbers: Mapping[str, Number]

    @property
    def delta(self) -> str:
        """The term of its change in a step."""
        return f"{self.term}.delta" if self.term.isidentifier() else f"delta({self.term})"


def read_variables(info: object, names: Names, notes: list[str]) -> dict[str, Variable]:
    """The variables of data.json's info by their own names; what cannot be converted becomes a note."""
    found: dict[str, Variable] = {}
    entries: Iterable[tuple[str, object]] = info.items() if isinstance(info, dict) else ()
    for name, row in entries:
        if sum(len(each.numbers) for each in found.values()) >= MOST_ENTRIES - 2:
            notes.append(f"data.json: has more than {MOST_ENTRIES - 2:,} variables: the others are left out")
            break
        try:
            found[name] = _variable(name, row, names)
        except Unconverted as reason:
            notes.append(f"data.json: {name:.60}: {reason}")
    return found


def _variable(name: str, row: object, names: Names) -> Variable:
    if not isinstance(row, dict) or not isinstance(row.get("type"), str) or type(row.get("address")) is not int:
        raise Unconverted("has no address and type")
    match = re.fullmatch(r"([<>|=]{1,2})([iudn])([1-9]\d?)", row["type"])
    if match is None:
        raise Unconverted(f"type {row['type']!r:.20} is not a number of {', '.join(READS)}")
    order, kind, size = match[1], match[2], int(match[3])
    if size > MOST_BYTES:
        raise Unconverted(f"type {row['type']!r:.20} has more than {MOST_BYTES} bytes, and stable-retro reads none")
    address = row["address"]
    if not any(begin <= address and address + size <= end for begin, end in REGIONS):
        raise Unconverted(f"address {address} ({address:X}) is not in VRAM, cartridge RAM, WRAM, OAM or HRAM")
    own = names.of(name)
    parts = _parts(own, address, order, kind, size, names)
    term = own if len(parts) == 1 else f"({' + '.join(text for text, _ in parts.values())})"
    mask = row.get("mask")
    if mask is not None:
        if type(mask) is not int or not 0 <= mask <= MOST_MASK:
            raise Unconverted(f"mask {mask!r:.40} is not a whole number from 0 to {MOST_MASK:,}")
        term = f"({term} & {mask})"
    return Variable(term, {part: number for part, (_, number) in parts.items()})


def _parts(own: str, address: int, order: str, kind: str, size: int, names: Names) -> dict[str, tuple[str, Number]]:
    """The entries by name, each with its term: one, or two halves where an entry cannot say the order or the size."""
    first, second = ORDERS[order[0]], ORDERS[order[-1]]
    half = size // 2
    if first == second or size == 1:
        if size <= WHOLE_BYTES or kind in "dn":
            return {own: (own, _number(address, kind, size, second))}
    elif size != 4:
        raise Unconverted(f"orders words of two bytes ({order}) in {size} bytes, not in 4")
    ahead, behind = names.of(f"{own}_0"), names.of(f"{own}_1")
    high, low = (ahead, behind) if first == "big" else (behind, ahead)
    # The lower half has no sign; the higher one's products wrap in 64 bits as stable-retro's do.
    kinds = {
        high: "i" if kind == "i" or (size == MOST_BYTES and kind == "u") else kind,
        low: "u" if kind == "i" else kind,
    }
    where = {ahead: address, behind: address + half}
    return {
        name: (
            f"{name} * {BASES[kind] ** half}" if name == high else name,
            _number(where[name], kinds[name], half, second),
        )
        for name in (ahead, behind)
    }


def _number(address: int, kind: str, size: int, order: str) -> Number:
    where = (0, address) if hw.CART_RAM <= address < hw.WRAM else address
    return Number(where, size, READS[kind], order)
