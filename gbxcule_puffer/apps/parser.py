"""The argument parser of all commands."""

from __future__ import annotations

import argparse
from typing import NoReturn

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, ActionCodec, get_codec


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_header(parser: argparse.ArgumentParser, default: str = "strict") -> None:
    """Adds --header, which says which ROM headers pass (emulator.cartridge.load_cartridge, which checks it)."""
    text = "pyboy also runs images of 16 KiB, and those shorter than their header says (default: strict)"
    parser.add_argument("--header", default=default, metavar="{strict,pyboy}", help=text)


def add_model(parser: argparse.ArgumentParser, default: str | None = "dmg") -> None:
    """Adds --model, the Game Boy (emulator.cartridge.load_cartridge, which checks it)."""
    text = "cgb: a Game Boy Color; auto: what PyBoy takes the game for (default: dmg)"
    parser.add_argument("--model", default=default, metavar="{dmg,cgb,auto}", help=text)


def add_action_codec(parser: argparse.ArgumentParser, default: str | None = DEFAULT_CODEC) -> None:
    """Adds --action-codec, of which `plain_codec` is to read the value."""
    text = f"a name, or a list such as NOOP,A,B,SELECT,UP+B (default: {DEFAULT_CODEC})"
    parser.add_argument("--action-codec", default=default, help=text)


def plain_codec(text: str) -> ActionCodec:
    """The codec of a command that plays steps of one length and one choice each.

    Raises: ConfigError for an unknown one, and for one of actions with frames of their own or of several choices.
    """
    codec = get_codec(text)
    if codec.frames or codec.factors:
        has = "actions with frames of their own" if codec.frames else "several choices in a step"
        raise ConfigError(f"action_codec {text!r:.80} has {has}: give a list such as NOOP,A,B,SELECT,UP+B")
    return codec


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
