"""Files that are made of a game's folder, and kept in Warp's cache: start states, and patched ROMs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import torch

from gbxcule_puffer.emulator.build import cache as kernels
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.saves.state_files import STATE_FILE, load_state_file
from gbxcule_puffer.emulator.snapshot import MAX_ENV_SIZE
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StorageError
from gbxcule_puffer.files import StrPath, read_bytes, write_bytes
from gbxcule_puffer.games.parts import Start, Until
from gbxcule_puffer.games.terms.run import TermRunner
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.goals.traces import ACTIONS_FILE, LIMIT
from gbxcule_puffer.tasks.ram import Numbers, Ram, Symbols
from gbxcule_puffer.tasks.start import play_to_start

KEPT = 1  # version of the states in the cache: raise it when the same actions lead to other states


def made_states(
    source: str, start: Start, header: str, original: Cartridge, cartridge: Cartridge, symbols: Symbols | None = None
) -> str | tuple[str, ...]:
    """The files of start states for the env. Neither the game's folder nor a run's is written to.

    source: the game.toml, for errors; original: the ROM that the states are of, of which `cartridge` may be a patched
    copy; symbols: those that `until` names.

    Raises: StateError, ConfigError or ActionError for a start that does not fit the game, with the field's name.
    """
    try:
        if not start.is_played and original is cartridge:
            for state in start.states:
                load_state_file(state, cartridge)
            return tuple(map(str, start.states))
        paths = [_kept(start, header, original, cartridge, state, symbols) for state in start.states or (None,)]
    except StorageError:
        raise
    except GBxCuLEError as error:
        field = "actions" if start.actions else "states" if start.states else "until"
        raise type(error)(f"{source}: [start] {field}: {error}") from None
    return paths[0] if len(paths) == 1 else tuple(paths)


def _kept(
    start: Start, header: str, original: Cartridge, cartridge: Cartridge, state: Path | None, symbols: Symbols | None
) -> str:
    """The file of a start that is made of a state, or of power-on."""
    data = b"" if state is None else read_bytes(state, STATE_FILE, MAX_ENV_SIZE)
    facts: list[object] = [
        KEPT,
        original.sha256,
        cartridge.sha256,
        cartridge.model,
        vars(start.schedule),
        start.actions,
    ]
    if start.until is not None:
        facts += _facts(start.until, symbols)
    key = hashlib.sha256(json.dumps(facts).encode() + data).hexdigest()

    def write(path: Path) -> None:
        until = None if start.until is None else partial(play_until, start.until, symbols)
        if state is None:
            found = play_to_start(cartridge, start.actions, None, start.schedule, header, None, until)
        elif start.is_played:
            found = play_to_start(original, start.actions, state, start.schedule, header, None, until)
        else:
            found = load_state_file(state, original)
        replace(found, rom_sha256=cartridge.sha256).to_file(path)

    return _kept_file(f"{key}.state", write)


def played_start(cartridge: Cartridge, header: str, actions: StrPath, schedule: Schedule) -> Path:
    """The file of the start state to which the actions of a file lead from power-on (play_to_start).

    Raises: ConfigError or ActionError.
    """
    facts = [KEPT, cartridge.sha256, cartridge.model, vars(schedule)]
    key = hashlib.sha256(json.dumps(facts).encode() + read_bytes(actions, ACTIONS_FILE, LIMIT)).hexdigest()

    def write(path: Path) -> None:
        play_to_start(cartridge, actions, None, schedule, header, None).to_file(path)

    return Path(_kept_file(f"{key}.state", write))


def play_until(until: Until, symbols: Symbols | None, emulator: EmulatorLike, press: Callable[[str], None]) -> None:
    """Repeats the actions of `until` until its condition holds; `press` makes a step of one.

    Raises: ConfigError if it does not hold after its steps.
    """
    ram = Ram(emulator, symbols)
    for node in until.tape.nodes:
        if node.operation == "executions":
            ram.hook(node.value)  # pyright: ignore[reportArgumentType]
    episode = torch.ones(1, dtype=torch.int64)
    runner = TermRunner(until.tape, 1, ram.device, episode, ram.executions, until.most_steps)
    numbers = Numbers(ram, until.numbers) if until.numbers else None

    def read() -> torch.Tensor:
        return episode.new_zeros((1, 0)) if numbers is None else numbers.read()

    runner.begin(read(), torch.ones(1, dtype=torch.bool))
    for step in range(until.most_steps):
        press(until.repeat[step % len(until.repeat)])
        if bool(runner.step(read())[until.node]):
            return
    raise ConfigError(
        f"until {until.text!r:.80} does not hold after {until.most_steps:,} steps of {', '.join(until.repeat):.80}: "
        "play to where the game begins (`puffer play`), save the state there, and give it with --start-state"
    )


def _facts(until: Until, symbols: Symbols | None) -> list[object]:
    """What the end of a start depends on: its text, its actions, and the addresses of its names."""
    wheres = [number.where for number in until.numbers]
    wheres += [node.value for node in until.tape.nodes if node.operation == "executions"]  # pyright: ignore
    found = [str(symbols.find(each)) if isinstance(each, str) and symbols is not None else each for each in wheres]
    return [until.text, *until.repeat, until.most_steps, *found]


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
