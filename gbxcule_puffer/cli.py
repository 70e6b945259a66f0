"""The command line: `puffer ...` or `python -m gbxcule_puffer ...`. Bad input ends with one line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial

from gbxcule_puffer import __version__, progress
from gbxcule_puffer.apps.commands import COMMANDS, NAMES, find
from gbxcule_puffer.apps.watchdog import supervised
from gbxcule_puffer.commandline import parse, unknown
from gbxcule_puffer.commandline.help import list_of, wrapped
from gbxcule_puffer.errors import ConfigError, exit_code

PROG = "puffer"
DESCRIPTION = "Game Boys as reinforcement learning environments: play, train, film, make goals, check, measure."
COMPLETION = "--completion"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. With the arguments of the command line (None), a command that PyBoy might
    hang runs in a child process."""
    return exit_code(PROG, partial(_run, argv))


def _run(argv: Sequence[str] | None) -> int:
    warnings.formatwarning = lambda message, *_, **__: f"{PROG}: {message}\n"
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["-h"], ["--help"]):
        print(_help(), end="")
        return 0
    if words[:1] == ["--version"]:
        print(f"gbxcule-puffer {__version__}")
        return 0
    if words[:1] == [COMPLETION]:
        from gbxcule_puffer.apps.completion import script

        print(script(PROG, words[1:]))
        return 0
    command, prog, rest = _choose(words)
    flags = parse(command, prog, None, rest)

    if sys.stderr.isatty():
        progress.listen(partial(print, file=sys.stderr, flush=True))

    def work() -> int:
        rom = getattr(flags, "rom", None)
        if isinstance(rom, str) and rom:  # `puffer bench` takes several, and looks at them itself
            from gbxcule_puffer.apps.flags import check_rom

            check_rom(rom, getattr(flags, "header", None) or "strict", getattr(flags, "model", None))
        try:
            return flags.run() or 0
        finally:
            progress.listen(None)

    if argv is None and getattr(command, "may_hang", False):
        return supervised(PROG, partial(exit_code, PROG, work))
    return work()


def _choose(words: Sequence[str]) -> tuple[type, str, Sequence[str]]:
    """(class of the flags, the command as typed, the words after it).

    Raises: ConfigError for a command that does not exist; SystemExit after the help of a command with subcommands.
    """
    name = words[0] if words else ""
    if name not in NAMES:
        raise _no_command(name, NAMES, PROG)
    command, prog, rest = find(name), f"{PROG} {name}", words[1:]
    if isinstance(command, dict):
        if rest[:1] in (["-h"], ["--help"]):
            rows = {each: _first_line(kind) for each, kind in command.items()}
            print(f"usage: {prog} COMMAND ...\n\n{list_of({'Commands': rows})}")
            raise SystemExit(0)
        name = rest[0] if rest else ""
        if name not in command:
            raise _no_command(name, list(command), prog)
        command, prog, rest = command[name], f"{prog} {name}", rest[1:]
    return command, prog, rest


def _no_command(name: str, names: Sequence[str], prog: str) -> ConfigError:
    if not name:
        return ConfigError(f"COMMAND is missing: give one of {', '.join(names)} (see {prog} --help)")
    if name.startswith("-"):
        return ConfigError(f"{name} stands before COMMAND: give {prog} COMMAND {name} ...")
    return unknown("command", name, names, prog)


def _first_line(documented: object) -> str:
    return (documented.__doc__ or "").split("\n")[0].rstrip(".")


def _summary(name: str) -> str:
    command = find(name)
    folder = sys.modules[f"gbxcule_puffer.apps.{name}"]
    return _first_line(folder if isinstance(command, dict) else command)


def _help() -> str:
    """The page of all commands."""
    usage = f"usage: {PROG} COMMAND ...\n       {PROG} COMMAND --help\n       {PROG} --version"
    usage += f"\n       {PROG} {COMPLETION} bash | zsh | fish"
    rows = {heading: {name: _summary(name) for name in names} for heading, names in COMMANDS.items()}
    return f"{usage}\n\n{wrapped(DESCRIPTION)}\n\n{list_of(rows)}\n"
