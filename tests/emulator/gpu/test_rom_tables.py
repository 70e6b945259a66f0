"""The tables of descriptors of many ROMs are those of before, bit for bit: then the GPU is as fast as before, too.

`python -m tests.emulator.gpu.test_rom_tables` writes rom_tables.json anew, where a table is meant to change.
"""

from __future__ import annotations

import hashlib
import json
from itertools import count
from pathlib import Path

import pytest

from benchmarks.workload import find_rom, shared_folder
from gbxcule_puffer.emulator import isa
from gbxcule_puffer.emulator.gpu.descriptor_table import rom_table
from tests.emulator.gpu.test_fusion import USUAL

DIGESTS = Path(__file__).with_name("rom_tables.json")
ROMS = Path(__file__).parents[3] / "roms"
GENERATED_SIZE = 1 << 18


def random_bytes(opcodes: bytes, name: str) -> bytes:
    """A ROM of which each byte is one of `opcodes`, the same on every machine."""
    blocks = (hashlib.sha512(f"{name} {number}".encode()).digest() for number in count())
    chosen = bytearray()
    while len(chosen) < GENERATED_SIZE:
        chosen += bytes(opcodes[byte * len(opcodes) >> 8] for byte in next(blocks))
    return bytes(chosen[:GENERATED_SIZE])


def generated(name: str) -> bytes | None:
    """One of the ROMs made here: of any bytes, of opcodes without operands, or of what groups consist of."""
    single = bytes(opcode for opcode, each in isa.expand().items() if each.length == 1)
    choices = {
        "bytes": bytes(range(256)),
        "single": single,
        "usual": bytes(op & 0xFF for op in USUAL) + b"\xcb\x00\x01",
    }
    return random_bytes(choices[name], name) if name in choices else None


def load(name: str) -> bytes:
    """A ROM of rom_tables.json; one of the shared games is skipped where those are missing."""
    rom = generated(name)
    if rom is not None:
        return rom
    if (ROMS / f"{name}.gb").is_file():
        return (ROMS / f"{name}.gb").read_bytes()
    if shared_folder() is None:
        pytest.skip(f"{name} is one of the shared games, which are not here")
    return find_rom(name).read_bytes()


def digest(data: bytes) -> str:
    """The SHA-256 of a text or table."""
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", json.loads(DIGESTS.read_text()) if DIGESTS.exists() else [])
def test_table_of(name: str) -> None:
    expected, rom = json.loads(DIGESTS.read_text())[name], load(name)
    assert digest(rom) == expected["rom"], f"{name} is another ROM: write the digests anew"
    assert digest(rom_table(rom).tobytes()) == expected["table"]


def write() -> None:
    """Write the digests of all ROMs that are here."""
    shared = shared_folder()
    assert shared is not None, "the shared games are needed"
    own = [path.relative_to(ROMS).with_suffix("").as_posix() for path in sorted(ROMS.rglob("*.gb"))]
    games = [path.stem for folder in ("homebrew", "corpus") for path in sorted((shared / "roms" / folder).glob("*.gb"))]
    roms = {name: load(name) for name in ["bytes", "single", "usual", *own, *games]}
    digests = {name: {"rom": digest(rom), "table": digest(rom_table(rom).tobytes())} for name, rom in roms.items()}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    write()
