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
from gbxcule_puffer.tasks.ram.symbol_files import LARGEST_FILE, SYMBOL_FILE, files_beside

MOST_LOOKED_AT = 100_000  # files of a folder
SHOWN = 8  # digits of a digest in a file's name


def fetch_roms(games: Sequence[Game], source: StrPath) -> dict[str, Path]:
    """Copies the games' ROMs from the folder `source`, or one below it, into the user's folder; their paths there by
    the games' names. A game whose ROM is not in `source` is not in the result. Where a game's addresses come from a
    symbol file, the one beside the ROM is copied, too.

    Raises: RomError if `source` is not a folder; StorageError if a copy cannot be written.
    """
    if not Path(source).is_dir():
        raise RomError(f"{source}: is not a folder: give the one that has the ROMs")
    wanted = {digest: game for game in games for digest in game.rom.digests}
    found: dict[str, Path] = {}
    for path in islice(images_below(Path(source)), MOST_LOOKED_AT):
        game, own = None, ""
        with contextlib.suppress(GBxCuLEError):  # cannot be read
            own = digest(path)
            game = wanted.get(own)
        if game is not None and game.name not in found:
            target = make_folder(fetched_folder()) / f"{game.name}-{own[:SHOWN]}{path.suffix.lower()}"
            write_bytes(target, read_bytes(path, ROM_FILE, MAX_ROM_SIZE))
            for symbols in files_beside(str(path)) if game.rom.by_symbols else ():
                write_bytes(target.with_suffix(Path(symbols).suffix), read_bytes(symbols, SYMBOL_FILE, LARGEST_FILE))
            found[game.name] = target
        if len(found) == len(games):
            break
    return found
