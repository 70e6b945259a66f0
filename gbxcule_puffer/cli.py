"""The command line: `puffer ...` or `python -m gbxcule_puffer ...`. Bad input is one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gbxcule_puffer.commands import bench, goal, play, plot, record, size, stock, verify
from gbxcule_puffer.commands.parser import OneLineParser
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
