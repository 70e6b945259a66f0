"""The command line: `puffer ...` or `python -m gbxcule_puffer ...`. Bad input is one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gbxcule_puffer.apps.bench import command as bench
from gbxcule_puffer.apps.goal import command as goal
from gbxcule_puffer.apps.parser import OneLineParser
from gbxcule_puffer.apps.play import command as play
from gbxcule_puffer.apps.plot import command as plot
from gbxcule_puffer.apps.record import command as record
from gbxcule_puffer.apps.size import command as size
from gbxcule_puffer.apps.train import command as stock
from gbxcule_puffer.apps.verify import command as verify
from gbxcule_puffer.errors import GBxCuLEError

COMMANDS = (bench, goal, play, plot, record, verify, size, stock)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = OneLineParser(prog="puffer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for command in COMMANDS:
        command.add(commands)
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except GBxCuLEError as error:
        print(f"puffer: {error}", file=sys.stderr)
        return 2
