"""The table [env] of a game.toml: options of the environment under their own names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gbxcule_puffer.env.options import RUNNING, EnvOptions, checked
from gbxcule_puffer.games.names import Names
from gbxcule_puffer.games.table import Table, nearest
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, Schedule, allowed_actions, get_codec
from gbxcule_puffer.tasks.observe.observers import parse_ram_obs
from gbxcule_puffer.tasks.ram.addresses import parse_visit_key
from gbxcule_puffer.tasks.ram.position import find_position, parse_position
from gbxcule_puffer.tasks.ram.until import parse_until

# Options that have a table of their own, belong to a goal of pictures, or are the user's.
NOT_IN_ENV = {"start_state", "goal_dir", "stages", "chain", "tau", "k_consecutive", "alpha", "goal_bonus", "task"}
ENV = {
    each.name: each
    for each in fields(EnvOptions)
    if each.name not in NOT_IN_ENV and each.metadata["subject"] != RUNNING
}


def read_env(table: Table, names: Names, rom_sha256: str) -> dict[str, Any]:
    """The options of [env], checked; names of [numbers] in them become addresses.

    Raises: ConfigError.
    """
    found: dict[str, Any] = {}
    for name in table.names():
        if name not in ENV:
            known = [*ENV, "symbols"]
            close = nearest(name, known)
            own = {"start_state": "[start] states", "model": "[rom] model", "header": "[rom] header"}.get(name)
            remedy = (
                f"it is {own}"
                if own
                else f"did you mean {close[:-2]}?"
                if close
                else f"give some of {', '.join(known)}"
            )
            raise table.error(name, f"is not an option that a game may set: {remedy}")
        value = table.take(name)
        found[name] = table.checked(name, checked, ENV[name], value)
    table.checked("", EnvOptions, **found)
    schedule = schedule_of(found)
    symbols, texts = names.symbols, _with_addresses(found, names)
    tests: dict[str, Any] = {
        "position": lambda text: parse_position(text, symbols),
        "ram_obs": lambda text: parse_ram_obs(text, symbols),
        "visit_key": lambda text: parse_visit_key(text, symbols),
        "until": lambda text: parse_until(text, schedule, symbols),
    }
    for name, text in texts.items():
        table.checked(name, tests[name], text)
    codec = get_codec(found.get("action_codec", DEFAULT_CODEC))
    table.checked("blocked_actions", allowed_actions, codec, found.get("blocked_actions", ()))
    given = texts.get("position")
    if found.get("visited_obs") and find_position(given, None, rom_sha256, symbols) is None:
        raise table.error("visited_obs", "needs position: give MAP,ROW,COLUMN or ROW,COLUMN in RAM")
    return found | texts


def schedule_of(options: Mapping[str, Any]) -> Schedule:
    """The schedule of a step in these options."""
    names = ("frames_per_step", "release_after_frames")
    return Schedule(**{name: options[name] for name in names if name in options})


def _with_addresses(options: Mapping[str, Any], names: Names) -> dict[str, str]:
    """The options that name RAM, with the addresses of [numbers] in place of their names."""

    def address(match: re.Match[str]) -> str:
        number = names.numbers.get(match[0])
        if number is None:
            return match[0]
        where = number.where
        if isinstance(where, str):
            return where
        return f"{where[0]:X}:{where[1]:04X}" if isinstance(where, tuple) else f"{where:04X}"

    known = ("position", "ram_obs", "visit_key", "until")
    pattern = re.compile(r"(?<![\w.+:])[A-Za-z_]\w*(?![\w.])")
    found = {name: text for name in known if isinstance(text := options.get(name), str)}
    for name, text in found.items():
        kind, colon, rest = text.partition(":") if name == "visit_key" else ("", "", text)
        found[name] = kind + colon + pattern.sub(address, rest)
    return found
