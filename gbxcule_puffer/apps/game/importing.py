"""A stable-retro folder and its ROM as a game's folder on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gbxcule_puffer.emulator.cartridge import Cartridge, load_cartridge
from gbxcule_puffer.errors import ConfigError, RomError, StateError
from gbxcule_puffer.games.retro.convert import convert
from gbxcule_puffer.games.retro.reading import RetroFolder, read_folder
from gbxcule_puffer.games.retro.states import load_retro_state
from gbxcule_puffer.games.writing import check_new_folder, game_name, write_game


def import_folder(
    folder: str,
    rom: str,
    out: str | None = None,
    *,
    scenario: str = "scenario",
    state: str | None = None,
    start_state: str | None = None,
    start_actions: str | None = None,
    frames_per_step: int = 4,
    header: str = "strict",
) -> tuple[Path, list[str]]:
    """The folder that is written, by default in the current directory, and notes on what is not as in stable-retro.

    Raises: ConfigError for a folder that is not stable-retro's, or an `out` that exists; RomError for a ROM that the
    folder is not of; StateError or ActionError for a start that does not fit.
    """
    retro = read_folder(folder, scenario)
    cartridge = load_cartridge(rom, header, "auto")
    found = convert(retro, cartridge.sha256, cartridge.model, frames_per_step)
    draft, target = found.draft, check_new_folder(out or game_name(retro.name))
    notes = [*_rom_notes(retro, cartridge, rom), *found.notes]
    draft.header = header
    draft.comments = [f"Converted from {retro.path.resolve().name}, a folder of stable-retro."]
    draft.state = _start(retro, cartridge, state, start_state, start_actions, header, notes)
    return write_game(draft, target, symbols=False), notes


def _rom_notes(retro: RetroFolder, cartridge: Cartridge, rom: str) -> list[str]:
    """Raises: RomError for a ROM that is not among those of rom.sha."""
    digest = hashlib.sha1(cartridge.data, usedforsecurity=False).hexdigest()
    if not retro.hashes:
        return [f"rom.sha: there is none in the folder: whether {Path(rom).name} is its ROM was not checked"]
    if digest not in retro.hashes:
        listed = ", ".join(retro.hashes[:4])
        raise RomError(
            f"{rom}: is not the ROM of {retro.path.resolve().name}, its SHA-1 is {digest}, not {listed}: give that one"
        )
    return []


def _start(
    retro: RetroFolder,
    cartridge: Cartridge,
    state: str | None,
    start_state: str | None,
    start_actions: str | None,
    header: str,
    notes: list[str],
):
    """The start's snapshot; None for power-on."""
    if start_state is not None:
        from gbxcule_puffer.emulator.saves.state_files import load_state_file

        return load_state_file(start_state, cartridge)
    if start_actions is not None:
        from gbxcule_puffer.tasks.start import play_to_start

        return play_to_start(cartridge, start_actions, None, None, header, cartridge.model)
    name = state or retro.default_state
    others = [each for each in retro.states if each != name]
    if name is None:
        notes.append("metadata.json: names no default_state: episodes begin at power-on, as in stable-retro")
        return None
    if name not in retro.states:
        if state is not None:
            known = ", ".join([*retro.states][:20]) or "none"
            raise ConfigError(f"{retro.path}: there is no state {state!r:.60}: give one of {known}")
        notes.append(f"metadata.json: default_state {name:.60} is not in the folder: episodes begin at power-on; give "
                     "--start-state or --start-actions")  # fmt: skip
        return None
    if others:
        notes.append(f"states: {', '.join(others[:20])}: are left out (--state NAME takes another one)")
    try:
        snapshot, lost = load_retro_state(retro.states[name], cartridge)
    except StateError as error:
        notes.append(f"{name:.60}.state: {error}; episodes begin at power-on: give --start-state or --start-actions")
        return None
    notes += [f"{name:.60}.state: {each}" for each in lost]
    return snapshot
