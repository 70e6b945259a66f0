"""The commands of `puffer`. A new one is a folder here with a command.py, and its name in COMMANDS."""

from __future__ import annotations

import importlib

# In the order of --help.
COMMANDS = {
    "Play and train": ("play", "train", "eval", "watch", "record", "plot", "show", "copy"),
    "Find out and make goals": ("scan", "game", "goal", "stage"),
    "Compare agents and settings": ("arena", "sweep"),
    "Check and measure": ("verify", "bench", "profile", "size", "warm"),
    "For programs in C": ("native",),
    "PufferLib's own modes": ("autotune", "export"),
}
NAMES = [name for names in COMMANDS.values() for name in names]


def find(name: str) -> type | dict[str, type]:
    """The COMMAND of a folder: the class of its flags, whose method `run` runs it, or those of its subcommands."""
    return importlib.import_module(f"{__package__}.{name}.command").COMMAND
