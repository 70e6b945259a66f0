"""Reference hashes of the eight games and of the corpus, and those of a step."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.workload import V1_BUTTONS

WRAM, HRAM = (0xC000, 0x2000), (0xFF80, 0x7F)  # first address and length of what the `ram` hashes are of
KINDS = ("ram", "full", "half")  # the order of a report: a RAM difference explains a picture difference


def hash64(data: bytes) -> int:
    """The hash of the references: blake2b with digest_size 8, read as a big-endian number."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


@dataclass(frozen=True)
class GameReference:
    """What PyBoy showed of one game: 40 steps from the booted state."""

    rom: bytes
    buttons: np.ndarray
    """Button mask of each step, shape (40,), uint8."""
    hashes: dict[str, np.ndarray]
    """`ram`, `full` and `half`, each of shape (40,), uint64."""


def game_reference(shared: Path, game: str, folder: str = "homebrew") -> GameReference:
    """The reference of one of GAMES, or of a game in another folder of the shared ROMs."""
    data = np.load(shared / "conformance" / f"{folder}_reference.npz")
    file = f"{folder}/{game}.gb"
    row = data["files"].tolist().index(file)
    rom = (shared / "roms" / file).read_bytes()
    return GameReference(rom, V1_BUTTONS[data["actions"][row]], {kind: data[kind][row] for kind in KINDS})


def step_hashes(wram: np.ndarray, hram: np.ndarray, picture: np.ndarray) -> dict[str, int]:
    """The three hashes of the state after a step, as the references have them."""
    assert len(wram) == WRAM[1] and len(hram) == HRAM[1] and picture.shape == (144, 160)
    return {
        "ram": hash64(wram.tobytes() + hram.tobytes()),
        "full": hash64(np.ascontiguousarray(picture).tobytes()),
        "half": hash64(np.ascontiguousarray(picture[::2, ::2]).tobytes()),
    }
