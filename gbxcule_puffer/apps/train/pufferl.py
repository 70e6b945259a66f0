"""PufferLib's own modes as commands."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from pathlib import Path

from gbxcule_puffer.errors import ConfigError

OWN = "gbxcule"  # environments for which PufferLib's trainer has our .ini
SUBJECT, REST = "gbxcule, or an environment of PufferLib", "PufferLib's flags; ENV --help lists them"


def run_mode(mode: str, subject: str, words: Sequence[str]) -> None:
    """Runs a mode of PufferLib's command line.

    Raises: ConfigError if only pufferlib-core is installed.
    """
    # Before torch, which warns about a package that PufferLib has installed.
    warnings.filterwarnings("ignore", "The pynvml package is deprecated", FutureWarning)
    from gbxcule_puffer.integrations.pufferl.modes import run

    run(mode, subject, words)


def may_know(subject: str) -> bool:
    """False for a name that is not ours, if there is no PufferLib that could know it."""
    package = importlib.util.find_spec("pufferlib")  # not its module pufferl: that would import torch
    folders = () if package is None else package.submodule_search_locations or ()
    return subject == OWN or any(Path(folder, "pufferl.py").exists() for folder in folders)


def check_subject(kind: str, subject: str, remedy: str) -> None:
    """Raises: ConfigError for a name that neither we nor PufferLib can know."""
    if not may_know(subject):
        rest = "other names are PufferLib's environments, and only pufferlib-core is installed"
        raise ConfigError(f"{kind} {subject!r:.60} is unknown: {remedy} ({rest})")
