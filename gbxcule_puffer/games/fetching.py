"""ROMs that do not come with the package, taken by their digests from a folder that the user has."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from gbxcule_puffer.emulator.cartridge import MAX_ROM_SIZE, ROM_FILE
from gbxcule_puffer.errors import GBxCuLEError, RomError
from gbxcule_puffer.files import StrPath, make_folder, read_bytes, write_bytes
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.roms import digest, fetched_folder, images_below

MOST_LOOKED_AT = 100_000  # files of a folder
SHOWN = 8  # digits of a digest in a file's name


def fetch_roms(games: Sequence[Game], source: StrPath) -> dict[str, Path]:
    """Copies the games' ROMs from the folder `source`, or one below it, into the user's folder; their paths there by
    the games' names. A game whose ROM is not in `source` is not in the result.

    Raises: RomError if `source` is not a folder; StorageError if a copy cannot be written.
    """
    if not Path(source).is_dir():
        raise RomError(f"{source}: is not a folder: give the one that has the ROMs")
    wanted = {game.rom.sha256: game for game in games}
    found: dict[str, Path] = {}
    for path in islice(images_below(Path(source)), MOST_LOOKED_AT):
        game = None
        with contextlib.suppress(GBxCuLEError):  # cannot be read
            game = wanted.pop(digest(path), None)
        if game is not None:
            target = make_folder(fetched_folder()) / f"{game.name}-{game.rom.sha256[:SHOWN]}{path.suffix.lower()}"
            write_bytes(target, read_bytes(path, ROM_FILE, MAX_ROM_SIZE))
            found[game.name] = target
        if not wanted:
            break
    return found
