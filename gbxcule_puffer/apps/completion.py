"""`puffer --completion SHELL`: tyro's script that completes commands, flags and their values in a shell."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union

import tyro

from gbxcule_puffer.apps.commands import NAMES, find
from gbxcule_puffer.apps.train.scripts import FLAGS, flags_module
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.commandline.parsing import tyro_class
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import trainers

SHELLS = ("bash", "zsh", "fish")


def script(prog: str, words: Sequence[str]) -> str:
    """The script of the shell that `words` name, for the program `prog`.

    Raises: ConfigError for another shell.
    """
    if len(words) != 1 or words[0] not in SHELLS:
        given = " ".join(words) or os.path.basename(os.environ.get("SHELL", ""))
        raise ConfigError(f"--completion {given!r:.40} is unknown: give one of {', '.join(SHELLS)}")
    commands: dict[str, Any] = {name: find(name) for name in NAMES}
    commands["train"] = {name: getattr(flags_module(path), FLAGS) for name, path in trainers().items()}
    output, arguments = io.StringIO(), ["--tyro-print-completion", words[0]]
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        tyro.cli(_one_of(commands), prog=prog, args=arguments, config=(tyro.conf.DisallowNone,))
    return output.getvalue().replace("complete -F ", "complete -o default -F ")  # files, where bash has nothing else


def _one_of(commands: Mapping[str, Any]) -> type:
    """Commands by name as tyro takes them, those in a mapping as subcommands."""
    kinds = []
    for name, kind in commands.items():
        known = _one_of(kind) if isinstance(kind, Mapping) else tyro_class(flags_of(kind), choices=True)
        kinds.append(Annotated[Any, tyro.conf.subcommand(name, constructor=known, prefix_name=False)])
    union: Any = Union[tuple(kinds)]  # noqa: UP007
    return union
