"""Words for the ways to read a number: u8, s16be, bcd3, digits6-F6. A reading is a Number without its address."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.number import BASES, Number
from gbxcule_puffer.tasks.ram.view import Where

FORMS = (
    "u8 s8, u16 u24 u32 and s16 s24 s32 (the lowest byte first; u16be: the highest first), bcd1 to bcd9 and digits2 to "
    "digits18 (the highest first; bcd3le: the lowest first), digits6-F6 (the digit 0 is F6), bits1 to bits512"
)
_WORD = re.compile(r"(?:([us])(8|16|24|32|40|48|56)(be)?|(bcd|digits|bits)(\d{1,3})(le)?(?:-([0-9A-Fa-f]{2}))?)")
_KINDS = {"u": "number", "s": "signed"}


def word_of(number: Number) -> str:
    """The word of a number's reading; its mask, which has none, is left out."""
    several = number.size > 1
    if number.read in _KINDS.values():
        letter = "s" if number.read == "signed" else "u"
        return f"{letter}{8 * number.size}{'be' if several and number.order == 'big' else ''}"
    low = "le" if several and number.order == "little" and number.read != "bits" else ""
    return f"{number.read}{number.size}{low}{f'-{number.zero:02X}' if number.zero else ''}"


def number_of(word: str, where: Where = 0) -> Number:
    """The number at `where` that a word reads.

    Raises: ConfigError for another word.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ConfigError(f"reading {word!r:.40} is unknown: give one of {FORMS}")
    sign, bits, big, read, size, low, zero = match.groups()
    if sign:
        return Number(where, int(bits) // 8, _KINDS[sign], "big" if big else "little")
    order = "little" if low or read == "bits" or size == "1" else "big"
    return Number(where, int(size), read, order, zero=int(zero, 16) if zero else 0)


def stored(number: Number, value: int, old: Sequence[int]) -> list[int]:
    """The bytes that hold a value; bits that do not count, such as the upper half of a digit, stay as in `old`.

    Raises: ConfigError for a value that does not fit, and for a reading that cannot be written.
    """
    base = BASES[number.read]
    if number.read == "bits":
        raise ConfigError("a count of bits cannot be written: give a number of another reading")
    if number.read in _KINDS.values():
        least, most = number.least, number.most
    else:
        least, most = 0, base**number.size - 1
    if not least <= value <= most:
        raise ConfigError(f"{value:,} does not fit into {word_of(number)}: give {least:,} to {most:,}")
    parts = [(value // base**power) % base for power in range(number.size)]
    if number.read == "bcd":
        parts = [part // 10 << 4 | part % 10 for part in parts]
    elif number.read == "digits":
        parts = [(part + number.zero) & 0xFF for part in parts]
    parts = parts if number.order == "little" else parts[::-1]
    mask = number.mask & (0x0F if number.read == "digits" and not number.zero else 0xFF)
    return [(before & ~mask) | (part & mask) for part, before in zip(parts, old, strict=True)]
