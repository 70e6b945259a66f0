"""The names that the scripts in cleanrl_style/ share: flags, runs and their parts."""

from typing import TYPE_CHECKING

from gbxcule_puffer.errors import catch_interrupts
from gbxcule_puffer.lazily import door

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
catch_interrupts()  # torch takes seconds to import, and a script imports it before its `main`

# --help and the wall's server need few of them
__getattr__ = door(__name__, FILES)
