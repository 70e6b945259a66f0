"""Files that are made of a game's folder, and kept in Warp's cache: start states, and patched ROMs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from gbxcule_puffer.emulator.build import cache as kernels
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.saves.state_files import STATE_FILE, load_state_file
from gbxcule_puffer.emulator.snapshot import MAX_ENV_SIZE
from gbxcule_puffer.errors import GBxCuLEError, StorageError
from gbxcule_puffer.files import read_bytes, write_bytes
from gbxcule_puffer.games.parts import Start
from gbxcule_puffer.tasks.start import play_to_start

KEPT = 1  # changes where a state in the cache would not be what it is made as today


def made_states(
    source: str, start: Start, header: str, original: Cartridge, cartridge: Cartridge
) -> str | tuple[str, ...]:
    """The files of start states for the env. Neither the game's folder nor a run's is written to.

    source: the game.toml, for errors; original: the ROM that the states are of, of which `cartridge` may be a patched
    copy.

    Raises: StateError, ConfigError or ActionError for a start that does not fit the game, with the field's name.
    """
    try:
        if not start.actions and original is cartridge:
            for state in start.states:
                load_state_file(state, cartridge)
            return tuple(map(str, start.states))
        paths = [_kept(start, header, original, cartridge, state) for state in start.states or (None,)]
    except StorageError:
        raise
    except GBxCuLEError as error:
        raise type(error)(f"{source}: [start] {'actions' if start.actions else 'states'}: {error}") from None
    return paths[0] if len(paths) == 1 else tuple(paths)


def _kept(start: Start, header: str, original: Cartridge, cartridge: Cartridge, state: Path | None) -> str:
    """The file of a start that is made of a state, or of power-on."""
    data = b"" if state is None else read_bytes(state, STATE_FILE, MAX_ENV_SIZE)
    facts = [KEPT, original.sha256, cartridge.sha256, cartridge.model, vars(start.schedule), start.actions]
    key = hashlib.sha256(json.dumps(facts).encode() + data).hexdigest()

    def write(path: Path) -> None:
        if state is None:
            found = play_to_start(cartridge, start.actions, None, start.schedule, header, None)
        elif start.actions:
            found = play_to_start(original, start.actions, state, start.schedule, header, None)
        else:
            found = load_state_file(state, original)
        replace(found, rom_sha256=cartridge.sha256).to_file(path)

    return _kept_file(f"{key}.state", write)


def kept_rom(cartridge: Cartridge) -> str:
    """A file of a patched ROM, for what takes a path."""
    return _kept_file(f"{cartridge.sha256}.gb", lambda path: write_bytes(path, cartridge.data))


def _kept_file(name: str, write: Callable[[Path], object]) -> str:
    """The file of this name in Warp's cache, or where that is read-only, in a folder of this process; `write` makes
    it."""
    path = kernels.directory() / "games" / name
    if not path.is_file():
        with contextlib.suppress(OSError):
            os.makedirs(path.parent, exist_ok=True)
        try:
            write(path)
        except StorageError:
            path = _temporary() / name
            write(path)
    return str(path)


@cache
def _temporary() -> Path:
    """A folder of this process."""
    return Path(_held().name)


@cache
def _held() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gbxcule-starts-")
