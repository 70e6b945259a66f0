"""The environment's options as flags of a command line, with the same names, types, defaults, help and limits."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import Any

from gbxcule_puffer.env.options import EnvOptions, flag_type

METAVARS = {"StrPath": "PATH", "StrPath | Sequence[StrPath]": "PATH"}


def options(*names: str, subject: str | None = None, **defaults: object) -> type[EnvOptions]:
    """A base class for a dataclass of flags: these options, and those of `defaults` with another default; subject:
    their heading in --help (default: the section of the docs that each stands in)."""
    known, flags = {each.name: each for each in fields(EnvOptions)}, list[Any]()
    for name in (*names, *defaults):
        option = known[name]
        metavar = METAVARS.get(str(option.type).removesuffix(" | None"))
        metadata = {**option.metadata, "metavar": metavar, "subject": subject or option.metadata["subject"]}
        kind, default = flag_type(option), defaults.get(name, option.default)
        flags.append((name, kind | None if default is None else kind, field(default=default, metadata=metadata)))
    return make_dataclass("OptionFlags", flags, frozen=True)
