"""Thousands of Game Boys in lockstep on one Warp kernel, as a PufferLib environment. Importing this is cheap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gbxcule_puffer.lazily import door

if TYPE_CHECKING:
    from gbxcule_puffer.registry import env_creator

# OpenMP reads this when torch is imported, so it works if this package is imported first. By default torch's threads
# spin while they wait for each other; on cores that other programs use, learning then takes five times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
__all__ = ["__version__", "env_creator"]

# registry.py imports most of the package
__getattr__ = door(__name__, {"env_creator": "registry"})
