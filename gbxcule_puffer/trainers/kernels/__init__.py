"""The scripts' convolutions, PPO's gradients and Adam as our own Triton kernels, for bfloat16 on a GPU."""

from gbxcule_puffer.trainers.kernels.fast import FastConvolutions
from gbxcule_puffer.trainers.kernels.minibatch import FusedGradients
from gbxcule_puffer.trainers.kernels.steps import ClippedAdam

__all__ = ["ClippedAdam", "FastConvolutions", "FusedGradients"]
