"""The tables [rom] and [start] of a game.toml: which ROM is played, and how episodes begin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from gbxcule_puffer.emulator.cartridge import HEADERS, MODELS
from gbxcule_puffer.games.names import Names
from gbxcule_puffer.games.parts import Start, Until
from gbxcule_puffer.games.roms import RomSource
from gbxcule_puffer.games.table import Table
from gbxcule_puffer.games.terms.nodes import Tape
from gbxcule_puffer.tasks.actions import Schedule, checked_names
from gbxcule_puffer.tasks.goals.traces import read_actions

MOST_STATES, MOST_ACTIONS = 1_024, 100_000  # of [start]
MOST_DIGESTS = 64
STEPS_OF_UNTIL = 10_000  # after which `until` is given up, unless `most_steps` says otherwise

Inside = Callable[[Table, str, str], Path]  # the path of a file in the folder, checked


def read_rom(table: Table, inside: Inside) -> RomSource:
    """The table [rom].

    Raises: ConfigError.
    """
    meaning = "the SHA-256 of the ROM's file, 64 hexadecimal digits"
    digests = table.take_texts("sha256", meaning=f"{meaning}, or a list of them")
    for digest in digests:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digest):
            raise table.error("sha256", f"{digest!r:.70} is not a SHA-256: give 64 hexadecimal digits")
    if not 1 <= len(digests) <= MOST_DIGESTS:
        raise table.error("sha256", f"has {len(digests)} digests: give 1 to {MOST_DIGESTS}")
    file = table.take_path("file", None)
    by_symbols = table.take("by_symbols", False)
    if type(by_symbols) is not bool:
        raise table.error("by_symbols", f"is {by_symbols!r:.40}: give true or false")
    found = RomSource(
        digests[0].lower(),
        None if file is None else inside(table, "file", file),
        table.take_choice("model", MODELS, "dmg"),
        table.take_choice("header", HEADERS, "strict"),
        table.take_text("author", ""),
        table.take_text("license", ""),
        table.take_text("source", ""),
        tuple(each.lower() for each in digests[1:]),
        by_symbols,
    )
    table.done()
    return found


def read_start(table: Table, rom: RomSource, schedule: Schedule, names: Names, inside: Inside) -> Start:
    """The table [start].

    Raises: ConfigError.
    """
    recorded = None
    states = table.take_texts("states", (), "a file in the game's folder, or a list of them")
    given = table.take("actions", [])
    until = _read_until(table, names)
    table.done()
    if len(states) > MOST_STATES:
        raise table.error("states", f"has {len(states):,} files: give at most {MOST_STATES:,}")
    paths = tuple(inside(table, "states", each) for each in states)
    if isinstance(given, str):
        given, recorded = _action_file(table, inside(table, "actions", given), given, rom)
    actions = _actions(table, "actions", given)
    if not paths and not actions and until is None:
        raise table.error("", "has neither states nor actions: give one, or leave it out to start at power-on")
    return Start(paths, actions, recorded or schedule, until)


def _actions(table: Table, field: str, given: object) -> tuple[str, ...]:
    good = isinstance(given, list) and all(isinstance(each, str) for each in given) and len(given) <= MOST_ACTIONS
    if not good or not isinstance(given, list):
        raise table.error(field, f'is not a list of at most {MOST_ACTIONS:,} actions: give e.g. ["NOOP:60", "START"]')
    return tuple(table.checked(field, checked_names, given))


def _read_until(table: Table, names: Names) -> Until | None:
    """The condition that ends the start, and the actions that are repeated until it holds."""
    text = table.take_text("until", None, "a term")
    repeat = table.take("repeat", None)
    most = table.take_whole("most_steps", 1, MOST_ACTIONS, None)
    if text is None:
        if repeat is not None or most is not None:
            raise table.error("repeat", "goes with until, a term at which the start is reached: give it")
        return None
    actions = _actions(table, "repeat", ["NOOP"] if repeat is None else repeat)
    if not actions:
        raise table.error("repeat", 'has no actions: give e.g. ["A", "NOOP"]')
    tape, own = Tape(), names.apart()
    node = table.checked("until", own.parser(tape).condition, text)
    return Until(text, tape, tuple(own.columns), node, actions, most or STEPS_OF_UNTIL)


def _action_file(table: Table, path: Path, text: str, rom: RomSource) -> tuple[list[str], Schedule | None]:
    """The actions of a file of names, or those of a trace and its schedule."""
    names, trace = table.checked("actions", read_actions, path)
    if trace is None:
        return names, None
    if trace.rom_sha256 not in rom.digests:
        raise table.error("actions", f"{text!r:.60} was recorded with another ROM: record it with this one")
    return names, table.checked("actions", Schedule, trace.frames_per_step, trace.release_after_frames)
