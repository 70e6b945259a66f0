"""The code that the scripts in cleanrl_style/ share: flags, runs, evaluations, checkpoints, parts of algorithms."""

from gbxcule_puffer.trainers.checkpoints import load_weights
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import Policy
from gbxcule_puffer.trainers.flags import GraphFlags, RunFlags
from gbxcule_puffer.trainers.meters import Stopwatch
from gbxcule_puffer.trainers.run import Run

__all__ = ["GraphFlags", "Policy", "Run", "RunFlags", "Stopwatch", "World", "load_weights"]
