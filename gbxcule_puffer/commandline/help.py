"""--help: the usage, then the flags under their headings, each with its default once."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from gbxcule_puffer.commandline.flags import Flag, option_name
from gbxcule_puffer.commandline.terminal import page_width

COLUMN = 30  # at which the texts begin
FLAGS = "Flags"


def help_text(prog: str, description: str, known: Sequence[Flag]) -> str:
    """The page of a command, as wide as the terminal."""
    words = [each for each in known if each.positional]
    options = [each for each in known if not each.positional]
    usage = [*(_usage(each) for each in words), *(f"{each.text} {each.metavar}" for each in options if each.required)]
    parts = [f"usage: {' '.join([prog, *usage])}{' [flags]' if options else ''}", wrapped(description)]
    parts.append(table([(each.text, _described(each)) for each in words]))
    subjects = dict.fromkeys(each.metadata.get("subject") or FLAGS for each in options)
    for subject in subjects:
        rows = [each for each in options if (each.metadata.get("subject") or FLAGS) == subject]
        parts.append(f"{subject}\n{table([(_typed(each), _described(each)) for each in rows])}")
    return "\n\n".join(part for part in parts if part) + "\n"


def table(rows: Iterable[tuple[str, str]], column: int = COLUMN) -> str:
    """Two columns; if the left side is too wide, the text begins on the next line."""
    lines = []
    for left, text in rows:
        texts = textwrap.wrap(text, page_width() - column, break_long_words=False, break_on_hyphens=False) or [""]
        fits = len(left) + 4 <= column
        lines += [f"  {left:{column - 2}}{texts[0]}".rstrip()] if fits else [f"  {left}", " " * column + texts[0]]
        lines += [" " * column + each for each in texts[1:]]
    return "\n".join(lines)


def wrapped(text: str) -> str:
    """Paragraphs of a description, wrapped; indented ones as they are."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        each if each.startswith("    ") else textwrap.fill(" ".join(each.split()), page_width()) for each in paragraphs
    )


def _usage(each: Flag) -> str:
    if "rest" in each.metadata:
        return each.text
    text = f"{each.text} ..." if each.is_tuple else each.text
    return text if each.required else f"[{text}]"


def _typed(each: Flag) -> str:
    """A flag as it is typed; for a flag that is on by default, also the form that turns it off."""
    if each.type is bool:
        return f"{each.text}, {option_name(f'no-{each.name}')}" if each.default is True else each.text
    value = f"[{each.metavar}]" if each.metadata.get("bare") is not None else each.metavar
    return (
        f"{each.text} {value}{' ...' if each.is_tuple and not (each.has_commas or each.metadata.get('repeat')) else ''}"
    )


def _described(each: Flag) -> str:
    """A flag's help, its choices unless the left column has them, and its default."""
    text = each.help
    if each.one_of and each.one_of[0] not in each.metavar and each.one_of[-1] not in text:
        text += f": {', '.join(each.one_of)}"
    if each.required and not each.positional:
        return f"{text} (required)"
    defaults = (
        [] if each.required or each.default in (None, (), "") or each.default is False else [_shown(each.default)]
    )
    if "gpu" in each.metadata and (gpu := _shown(each.metadata["gpu"])) != _shown(each.default):
        defaults = [*(defaults or [_shown(each.default)]), f"on a GPU {gpu}"]
    return f"{text} (default: {'; '.join(defaults)})" if defaults else text


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:_}".replace("_", ",") if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def list_of(commands: Mapping[str, Mapping[str, str]]) -> str:
    """Commands under headings, each with its description."""
    return "\n\n".join(f"{heading}\n{table(rows.items(), 14)}" for heading, rows in commands.items())
