"""The names that the scripts in cleanrl_style/ share: flags, runs and their parts."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbxcule_puffer.commandline import flag
    from gbxcule_puffer.errors import ConfigError
    from gbxcule_puffer.tasks.observe.layout import ObservationLayout
    from gbxcule_puffer.trainers.checkpoints import load_weights
    from gbxcule_puffer.trainers.distributed import World
    from gbxcule_puffer.trainers.flags import RunFlags
    from gbxcule_puffer.trainers.meters import Stopwatch
    from gbxcule_puffer.trainers.processes import in_all
    from gbxcule_puffer.trainers.run import Run
    from gbxcule_puffer.trainers.speed import GraphFlags, SpeedFlags

__all__ = [
    "ConfigError",
    "GraphFlags",
    "ObservationLayout",
    "Run",
    "RunFlags",
    "SpeedFlags",
    "Stopwatch",
    "World",
    "flag",
    "in_all",
    "load_weights",
]
FILES = {
    "ConfigError": "errors",
    "GraphFlags": "trainers.speed",
    "ObservationLayout": "tasks.observe.layout",
    "Run": "trainers.run",
    "RunFlags": "trainers.flags",
    "SpeedFlags": "trainers.speed",
    "Stopwatch": "trainers.meters",
    "World": "trainers.distributed",
    "flag": "commandline",
    "in_all": "trainers.processes",
    "load_weights": "trainers.checkpoints",
}


def __getattr__(name: str) -> Any:
    """A name of FILES, imported when it is asked for: --help and the wall's server need few of them."""
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"gbxcule_puffer.{FILES[name]}"), name)
