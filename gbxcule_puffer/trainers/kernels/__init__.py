"""The scripts' convolutions as kernels of our own (Triton), for bfloat16 on a GPU."""

from gbxcule_puffer.trainers.kernels.fast import FastConvolutions

__all__ = ["FastConvolutions"]
