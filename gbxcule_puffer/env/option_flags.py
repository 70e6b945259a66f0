"""The environment's options as flags of a command line, with the same defaults, help and limits."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from gbxcule_puffer.env.options import EnvOptions

METAVARS = {"StrPath": "PATH", "StrPath | Sequence[StrPath]": "PATH"}
OPTIONS = {each.name: each for each in fields(EnvOptions)}


@dataclass(frozen=True)
class Later:
    """In place of a default: a description of the value that is chosen when the command runs."""

    text: str


def option_flag(name: str, subject: str | None = None, default: object = ...) -> Any:
    """A field of a dataclass of flags, as `commandline.flag` makes it, for this option of the environment. Its default
    is the option's, or another value, or a `Later`, which is None; subject: its heading in --help (default: its section
    in the docs)."""
    option = OPTIONS[name]
    metavar = METAVARS.get(str(option.type).removesuffix(" | None"))
    metadata = {**option.metadata, "metavar": metavar, "subject": subject or option.metadata["subject"]}
    if isinstance(default, Later):
        help = option.metadata["help"].partition(" (default")[0]
        metadata, default = {**metadata, "help": f"{help} (default: {default.text})"}, None
    return field(default=option.default if default is ... else default, metadata=metadata)
