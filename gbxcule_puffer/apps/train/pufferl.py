"""PufferLib's own modes as commands."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pufferl import has_trainer

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
    return subject == OWN or has_trainer()


def check_subject(kind: str, subject: str, remedy: str) -> None:
    """Raises: ConfigError for a name that neither we nor PufferLib can know."""
    if not may_know(subject):
        rest = "other names are PufferLib's environments, and only pufferlib-core is installed"
        raise ConfigError(f"{kind} {subject!r:.60} is unknown: {remedy} ({rest})")
