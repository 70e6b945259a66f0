"""The code that the scripts in cleanrl_style/ share: flags, runs, evaluations, checkpoints, parts of algorithms."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbxcule_puffer.env.protocol import Policy
    from gbxcule_puffer.trainers.checkpoints import load_weights
    from gbxcule_puffer.trainers.distributed import World
    from gbxcule_puffer.trainers.flags import GraphFlags, RunFlags
    from gbxcule_puffer.trainers.meters import Stopwatch
    from gbxcule_puffer.trainers.run import Run

__all__ = ["GraphFlags", "Policy", "Run", "RunFlags", "Stopwatch", "World", "load_weights"]
FILES = {
    "GraphFlags": "trainers.flags",
    "Policy": "env.protocol",
    "Run": "trainers.run",
    "RunFlags": "trainers.flags",
    "Stopwatch": "trainers.meters",
    "World": "trainers.distributed",
    "load_weights": "trainers.checkpoints",
}


def __getattr__(name: str) -> Any:
    """A name of FILES, imported when it is asked for: the process of the wall's server needs none of them."""
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"gbxcule_puffer.{FILES[name]}"), name)
