"""The argument parser of all commands."""

from __future__ import annotations

import argparse
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_header(parser: argparse.ArgumentParser, default: str = "strict") -> None:
    """Adds --header, which says which ROM headers pass (emulator.cartridge.load_cartridge, which checks it)."""
    text = "pyboy also runs images of 16 KiB, and those shorter than their header says (default: strict)"
    parser.add_argument("--header", default=default, metavar="{strict,pyboy}", help=text)


def number(text: str, least: int) -> int:
    """A whole number of at least `least`, as an argument's type."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < least:
        raise argparse.ArgumentTypeError(f"{value} must be at least {least}")
    return value


def positive(text: str) -> int:
    """A whole number of at least 1, as an argument's type."""
    return number(text, 1)
