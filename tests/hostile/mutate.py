"""Mutants of a valid file: bytes changed anywhere, and JSON whose values are replaced by odd ones."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

ODD_BYTES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x00" * 8,
    b"\xff" * 8,
    b"\n",
    b"\xc3",
)
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 255, 256, 65536, 2**31, -(2**31), 2**63, 2**64, 10**30, 10**400, 0.5,
    -0.0, 1e-308, 1e308, "", "x", "../x", "/etc/x", "a\x00b", "\x1b[2J", "x" * 3000, "\u202e", [], {},
    [[]], [None], [-1, -1], [2**40], {"": {}},
)  # fmt: skip
RAW_JSON = (b"NaN", b"Infinity", b"1e999", b"[" * 5000, b'{"a":' * 40, b'"\\ud800"', b"9" * 5000, b"'x'", b"//")


def mutant(data: bytes, generator: random.Random) -> bytes:
    """One mutant of a file's bytes; of JSON, half of them are valid JSON with another value somewhere."""
    if data[:1] in (b"{", b"[") and generator.random() < 0.7:
        try:
            return mutant_of_json(json.loads(data), generator)
        except ValueError:
            pass
    return mutant_of_bytes(data, generator)


def mutant_of_bytes(data: bytes, generator: random.Random) -> bytes:
    """One to four changes: a bit, a byte or several, something left out, put in, moved, cut off."""
    result = bytearray(data)
    # The beginning, where headers are, as often as all the rest.
    reach = len(result) if generator.random() < 0.5 else min(len(result), 256)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        at = generator.randrange(max(1, min(reach, len(result))))
        length = generator.choice((1, 1, 2, 4, 16, 256))
        kind = generator.randrange(8)
        if kind == 0 and result:
            result[at % len(result)] ^= 1 << generator.randrange(8)
        elif kind == 1 and result:
            result[at % len(result)] = generator.randrange(256)
        elif kind == 2:
            odd = generator.choice(ODD_BYTES)
            result[at : at + len(odd)] = odd
        elif kind == 3:
            del result[at : at + length]
        elif kind == 4:
            result[at:at] = generator.randbytes(length)
        elif kind == 5:
            other = generator.randrange(max(1, len(result)))
            result[at : at + length] = result[other : other + length]
        elif kind == 6:
            del result[at:]
        else:
            result += generator.choice((b"\x00", bytes(result[:length]), generator.randbytes(length)))
    return bytes(result)


def mutant_of_number(data: bytes, generator: random.Random) -> bytes:
    """Another number of as many bytes, lowest first: a small one, a large one, one nearby, any."""
    old, bits = int.from_bytes(data, "little"), 8 * len(data)
    near = old + generator.choice((-1, 1, 4, -4, 16, 256, -256, 456, 70224))
    odd = generator.choice((*range(9), 15, 31, 63, 127, 128, 143, 144, 153, 255, 2**20, 2**31, 2**45, 2**63))
    new = generator.choice((near, odd, old ^ 1 << generator.randrange(bits), -1, generator.getrandbits(bits)))
    return (new % 2**bits).to_bytes(len(data), "little")


def mutant_of_json(content: Any, generator: random.Random) -> bytes:
    """JSON text in which values are replaced, left out, doubled, or exchanged with others of the same file."""
    content = copy.deepcopy(content)
    places = list(_places(content))
    for _ in range(generator.choice((1, 1, 2))):
        if not places:
            break
        parent, key = generator.choice(places)
        kind = generator.randrange(6)
        try:
            if kind == 0:
                del parent[key]
            elif kind == 1:
                other, other_key = generator.choice(places)
                parent[key] = copy.deepcopy(other[other_key])
            elif kind == 2 and isinstance(parent, dict):
                parent[f"{key}x"] = parent[key]
            elif kind == 3 and isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            elif kind == 4 and type(parent[key]) is int:
                parent[key] += generator.choice((-1, 1, 2**31, 1000))
            else:
                parent[key] = generator.choice(ODD_VALUES)
        except (KeyError, IndexError):
            continue
    text = json.dumps(content).encode()
    if generator.random() < 0.1:  # what json.dumps never writes
        values = [at for at in range(len(text)) if text[at : at + 2] == b": "]
        at = generator.choice(values) + 2 if values else 0
        text = text[:at] + generator.choice(RAW_JSON) + text[at + 1 :]
    return text


def _places(content: Any) -> Any:
    """(container, key) of every value."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(pairs):
        yield content, key
        yield from _places(value)
