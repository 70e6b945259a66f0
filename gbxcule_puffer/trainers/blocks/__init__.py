"""Building blocks of the scripts' algorithms: layers, choice of actions, rollouts, replay, groups of envs, graphs,
optimizers."""

from gbxcule_puffer.trainers.blocks.acting import explore, linear_schedule, own_copy, remembering, sample
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.blocks.groups import Group, unsettled
from gbxcule_puffer.trainers.blocks.networks import FEATURES, Patches, Trunk, layer_init
from gbxcule_puffer.trainers.blocks.optimizers import Adam, RAdam
from gbxcule_puffer.trainers.blocks.replay import Replay, Sequences
from gbxcule_puffer.trainers.blocks.rollout import Minibatches, allocate_rollout, rollout_memory, store

__all__ = [
    "FEATURES",
    "Adam",
    "Group",
    "Minibatches",
    "Patches",
    "RAdam",
    "Replay",
    "Replayed",
    "Sequences",
    "Trunk",
    "allocate_rollout",
    "explore",
    "layer_init",
    "linear_schedule",
    "own_copy",
    "remembering",
    "rollout_memory",
    "sample",
    "store",
    "unsettled",
]
