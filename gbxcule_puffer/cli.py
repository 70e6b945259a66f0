"""The command line: `puffer ...` or `python -m gbxcule_puffer ...`. Bad input is one line and exit code 2."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

from gbxcule_puffer import __version__
from gbxcule_puffer.apps.bench import command as bench
from gbxcule_puffer.apps.goal import command as goal
from gbxcule_puffer.apps.parser import OneLineParser
from gbxcule_puffer.apps.play import command as play
from gbxcule_puffer.apps.plot import command as plot
from gbxcule_puffer.apps.profile import command as profile
from gbxcule_puffer.apps.record import command as record
from gbxcule_puffer.apps.size import command as size
from gbxcule_puffer.apps.train import command as train
from gbxcule_puffer.apps.verify import command as verify
from gbxcule_puffer.apps.watch import command as watch
from gbxcule_puffer.apps.watchdog import supervised
from gbxcule_puffer.errors import exit_code

PROG = "puffer"
DESCRIPTION = "Game Boys as reinforcement learning environments: play, make goals, check, measure, train, film."
COMMANDS = (play, goal, verify, bench, profile, record, watch, plot, train, size)  # as --help lists them


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. With the arguments of the command line (None), a command that PyBoy could
    make hang runs in a child process."""
    return exit_code(PROG, partial(_run, argv))


def _run(argv: Sequence[str] | None) -> int:
    warnings.formatwarning = lambda message, *_, **__: f"{PROG}: {message}\n"
    parser = OneLineParser(prog=PROG, description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"gbxcule-puffer {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=OneLineParser)
    for command in COMMANDS:
        command.add(commands)
    args = parser.parse_args(argv)

    def work() -> int:
        return args.run(args) or 0

    if argv is None and getattr(args, "may_hang", False):
        return supervised(PROG, partial(exit_code, PROG, work))
    return work()
