"""The games of `puffer bench --suite`: our micro programs, the corpus of homebrew, or a user's own folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.layout import CLONE, ROMS
from gbxcule_puffer.tasks.source import default_rom

SHARED_VARIABLE = "GBXCULE_SHARED"
MICRO = ("alu_loop", "mem_rwb", "joy_diverge_persist")
SUFFIXES = (".gb", ".gbc")


def shared_folder() -> Path | None:
    """The folder of shared ROMs and references: $GBXCULE_SHARED, else ../shared or .shared; None if there is none."""
    named = os.environ.get(SHARED_VARIABLE)
    beside = [CLONE.parent / "shared", CLONE / ".shared"] if CLONE else []
    folders = [Path(named)] if named else beside
    return next((folder for folder in folders if (folder / "roms" / "manifest.json").is_file()), None)


def roms_of_suite(suite: str) -> list[Path]:
    """The ROMs of 'micro', 'corpus' (HOMEWARD, the reference games and the corpus), or a folder; images that cannot run
    are named on stderr and left out.

    Raises: ConfigError if the suite is unknown or has no game.
    """
    if suite == "micro":
        return [ROMS / f"micro/{name}.gb" for name in MICRO]
    if suite == "corpus":
        shared = shared_folder()
        if shared is None:
            raise ConfigError(
                f"--suite corpus needs the folder of shared ROMs: set {SHARED_VARIABLE}, or give --suite FOLDER"
            )
        return [default_rom(), *images(shared / "roms" / "homebrew"), *images(shared / "roms" / "corpus")]
    if not Path(suite).is_dir():
        raise ConfigError(
            f"--suite {suite} is neither 'micro', 'corpus' nor a folder: give a folder of Game Boy images"
        )
    found = [path for path in images(Path(suite)) if _is_playable(path)]
    if not found:
        raise ConfigError(f"--suite {suite} holds no .gb file that can be run: give a folder of Game Boy images")
    return found


def images(folder: Path) -> list[Path]:
    """The Game Boy images of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())


def _is_playable(path: Path) -> bool:
    """True if a ROM can be loaded; otherwise the reason is printed."""
    try:
        load_cartridge(path)
    except RomError as error:
        print(f"left out: {error}", file=sys.stderr)
        return False
    return True
