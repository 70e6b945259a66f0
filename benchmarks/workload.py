"""The workloads that benchmarks and tests share: games, where their ROMs are found, and seeded button streams."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

import numpy as np

from gbxcule_puffer.apps.bench.suites import SHARED_VARIABLE, shared_folder

ROOT = Path(__file__).resolve().parents[1]

# The eight reference games: name -> slug, which also seeds the reference actions.
GAMES = {
    "2048": "2048gb",
    "libbet": "libbet",
    "tobu": "tobutobugirl",
    "shocklobster": "shock-lobster",
    "snake": "snake",
    "PostBot": "postbot",
    "rex-runner": "rex-runner-gb",
    "totp-gb": "totp-gb",
}

# Action of pokemonred_puffer_v1 (NOOP A B START UP DOWN LEFT RIGHT) -> button mask of Emulator.step. Written out here,
# so that the references do not depend on the package's codecs.
V1_BUTTONS = np.array([0x00, 0x10, 0x20, 0x80, 0x04, 0x08, 0x02, 0x01], dtype=np.uint8)


def find_rom(name: str) -> Path:
    """The ROM file of a path, or of a game by its name: one of the project's own, of the references or of the corpus.

    Raises: FileNotFoundError with the names that can be given.
    """
    shared = shared_folder()
    files = [Path(name), ROOT / "roms" / f"{name}.gb"]
    if shared is not None:
        files += [shared / "roms" / folder / f"{name}.gb" for folder in ("homebrew", "corpus")]
    for file in files:
        if file.is_file():
            return file
    names = ", ".join(GAMES)
    raise FileNotFoundError(
        f"no ROM '{name}': give a file, 'homeward', or, with {SHARED_VARIABLE} set, {names} or one of the corpus"
    )


def sha256(rom: bytes) -> str:
    """The ROM's sha256 in hex."""
    return hashlib.sha256(rom).hexdigest()


def seed_of(text: str) -> int:
    """The seed that a name stands for."""
    return zlib.crc32(text.encode("utf-8"))


def random_buttons(seed: int, steps: int, num_envs: int) -> np.ndarray:
    """Button masks of uniform v1 actions, shape (steps, num_envs), uint8; env i's do not depend on num_envs."""
    actions = np.random.Generator(np.random.PCG64(seed)).integers(0, 8, size=(num_envs, steps))
    return np.ascontiguousarray(V1_BUTTONS[actions].T)
