"""PufferLib's own trainer, PuffeRL, on our environments: everything that it needs to find them, without a change to its
files."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def has_trainer() -> bool:
    """True if all of PufferLib is installed. Imports nothing.

    Newer releases of pufferlib-core have a module pufferl, too, but no environments, and another configuration.
    """
    package = importlib.util.find_spec("pufferlib")
    folders = () if package is None else package.submodule_search_locations or ()
    return any(Path(folder, "environments").is_dir() for folder in folders)
