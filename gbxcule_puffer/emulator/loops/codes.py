"""The machine code of loops that copy, fill, add or multiply while they count a register."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from gbxcule_puffer.emulator.loops import table

_DEC = {"b": (0, "05"), "c": (1, "0D"), "d": (2, "15"), "e": (3, "1D"), "a": (6, "3D")}
_WIDE = {table.WIDE_BC: ("0B 78 B1", "0B 79 B0"), table.WIDE_DE: ("1B 7A B3", "1B 7B B2")}
_COPIES = {"2A 12 13": table.COPY_FROM_HL, "1A 22 13": table.COPY_FROM_DE, "1A 13 22": table.COPY_FROM_DE}
_FILLS = {"22": table.FILL, "22 2C 2C 2C": table.FILL_EVERY_4TH}  # `ld [hl+],a`, also with three times `inc l`
# After `xor a`, `ld a,d`, `ld a,e`
_LOADING_FILLS = {"AF 22": table.FILL_0, "7A 22": table.FILL_D, "7B 22": table.FILL_E}
_SUMS = {"09": (table.ADD_BC, "ade"), "19": (table.ADD_DE, "abc"), "29": (table.ADD_HL, "abcde")}  # `add hl,rr`
_PRODUCT = "CB 23 CB 12 30 01 09 29"  # `sla e / rl d / jr nc,+1 / add hl,bc / add hl,hl`: GBDK's multiplication
STAT_POLL = bytes.fromhex("F0 41 E6 02 20 FA")  # `ldh a,[STAT] / and 2 / jr nz`, until VRAM is not locked


class CountedLoop(NamedTuple):
    """The bytes of a loop (`body / counter / jr nz` back to its start), its kind, and the register that it counts."""

    code: bytes
    kind: int
    counter: int


def stat_polls(rom: bytes, begin: int, end: int) -> Iterator[int]:
    """Indices of STAT_POLL between `begin` and `end`."""
    at = rom.find(STAT_POLL, begin, end)
    while at >= 0:
        yield at
        at = rom.find(STAT_POLL, at + 1, end)


@cache
def counted_loops() -> tuple[CountedLoop, ...]:
    """All known loops."""
    return first_loops() + tuple(_loop(body + code, kind, number) for body, code, kind, number in _further())


@cache
def first_loops() -> tuple[CountedLoop, ...]:
    """The loops that the data path skips, too."""
    return tuple(_loop(body + code, kind, number) for body, code, kind, number in _first())


def _loop(head: str, kind: int, counter: int) -> CountedLoop:
    code = bytes.fromhex(head)
    return CountedLoop(code + bytes([0x20, 0x100 - len(code) - 2]), kind, counter)


def _first() -> Iterator[tuple[str, str, int, int]]:
    """Body, counter's code, kind and counter."""
    for (body, kind), name in product((_COPIES | _FILLS).items(), "bc"):
        yield body, _DEC[name][1], kind, _DEC[name][0]
    for body, (kind, names) in _SUMS.items():
        for name in names:
            yield body, _DEC[name][1], kind, _DEC[name][0]
    for (body, kind), code in product(_COPIES.items(), _WIDE[table.WIDE_BC]):
        yield body, code, kind, table.WIDE_BC
    yield "22 2C 2C 2C", "0C", table.FILL_EVERY_4TH, table.INC_C
    yield _PRODUCT, _DEC["a"][1], table.MULTIPLY, _DEC["a"][0]


def _further() -> Iterator[tuple[str, str, int, int]]:
    for (body, kind), name in product(_FILLS.items(), "de"):
        yield body, _DEC[name][1], kind, _DEC[name][0]
    for body, kind in _LOADING_FILLS.items():
        for number, codes in _WIDE.items():
            if number == table.WIDE_BC or kind == table.FILL_0:
                yield from ((body, code, kind, number) for code in codes)
        for name in "bc":
            yield body, _DEC[name][1], kind, _DEC[name][0]
