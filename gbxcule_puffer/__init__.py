"""Thousands of Game Boys in lockstep on one Warp kernel, as a PufferLib environment. Importing this is cheap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gbxcule_puffer.registry import env_creator

# OpenMP reads this when torch is imported, so it works if this package is imported first. By default torch's threads
# spin while they wait for each other; on cores that other programs use, learning then takes five times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
__all__ = ["__version__", "env_creator"]


def __getattr__(name: str) -> object:
    """`env_creator`, imported at its first use, because registry.py imports most of the package."""
    if name == "env_creator":
        from gbxcule_puffer.registry import env_creator

        return env_creator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
