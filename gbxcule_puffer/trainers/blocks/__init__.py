"""Building blocks that the scripts' algorithms share: layers, memories, policies for other envs, the replay, groups of
envs, CUDA graphs, optimizers."""

from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.trainers.blocks.acting import linear_schedule, own_copy, remembering
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.blocks.groups import Group, unsettled
from gbxcule_puffer.trainers.blocks.layers import Patches, layer_init
from gbxcule_puffer.trainers.blocks.memory import MemoryCell, state_size
from gbxcule_puffer.trainers.blocks.noise import NoiseScale
from gbxcule_puffer.trainers.blocks.novelty import Novelty
from gbxcule_puffer.trainers.blocks.objects import object_layers
from gbxcule_puffer.trainers.blocks.optimizers import Adam, RAdam
from gbxcule_puffer.trainers.blocks.replay import Replay, Sequences
from gbxcule_puffer.trainers.blocks.residual import residual_layers
from gbxcule_puffer.trainers.blocks.returns import ReturnScale
from gbxcule_puffer.trainers.blocks.rollout import rollout_memory, rows

__all__ = [
    "Adam",
    "Group",
    "MemoryCell",
    "NoiseScale",
    "Novelty",
    "Patches",
    "RAdam",
    "Replay",
    "Replayed",
    "ReturnScale",
    "Sequences",
    "layer_init",
    "linear_schedule",
    "object_layers",
    "own_copy",
    "remembering",
    "residual_layers",
    "rollout_memory",
    "rows",
    "signed",
    "state_size",
    "unsettled",
]
