"""A dataclass of flags as a command line: parsing, --help, one-line errors. It imports neither torch nor Warp."""

from gbxcule_puffer.commandline.flags import (
    Flag,
    as_words,
    at_most_one,
    check,
    command,
    flag,
    flags_of,
    option_name,
    word,
)
from gbxcule_puffer.commandline.help import help_text
from gbxcule_puffer.commandline.parsing import parse, unknown
from gbxcule_puffer.commandline.terminal import page_width

__all__ = [
    "Flag",
    "as_words",
    "at_most_one",
    "check",
    "command",
    "flag",
    "flags_of",
    "help_text",
    "option_name",
    "page_width",
    "parse",
    "unknown",
    "word",
]
