"""The scripts' convolutions as our own Triton kernels, for bfloat16 on a GPU."""

from gbxcule_puffer.trainers.kernels.fast import FastConvolutions

__all__ = ["FastConvolutions"]
