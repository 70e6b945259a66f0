"""The flags for speed alone, whose defaults follow from the device. Imported without torch, for --help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gbxcule_puffer.commandline import flag
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.provenance import cpu_features
from gbxcule_puffer.trainers.flags import RUN, RunFlags, runs_on_gpu

WITH_BF16 = {"avx512_bf16", "amx_bf16"}  # features of a CPU that multiplies bfloat16


@dataclass
class GraphFlags(RunFlags):
    """The flags of a trainer whose steps can be recorded in a CUDA graph."""

    cuda_graph: bool = flag(
        False,
        "record acting and stepping of an update, and the learner's work, as CUDA graphs (default: on a GPU)",
        RUN,
        resumable=True,
    )
    graph_task: bool = flag(
        False,
        "record acting and stepping with --task, too: its code must never wait for the GPU, and do the same each step",
        RUN,
        resumable=True,
    )

    def defaults(self) -> dict[str, Any]:
        recordable = not self.env.startswith("pyboy") and runs_on_gpu(self)
        return super().defaults() | ({"cuda_graph": True} if recordable else {})

    @property
    def graph_steps(self) -> bool:
        """True if a graph has acting and stepping, and not only the learner's work."""
        return self.cuda_graph and (self.task is None or self.graph_task)

    @property
    def left_out(self) -> str | None:
        """A line about work that is not recorded although --cuda-graph is on, else None."""
        if not self.cuda_graph or self.graph_steps:
            return None
        return (
            "CUDA graphs    of the learner's work only: the code of --task may wait for the GPU (if it never does, and "
            "does the same in each step, give --graph-task)"
        )

    def check(self) -> None:
        super().check()
        if self.cuda_graph and (self.device == "cpu" or self.env.startswith("pyboy")):
            raise ConfigError("--cuda-graph needs an env on a GPU: give --device cuda and --env gbxcule")


@dataclass
class SpeedFlags(GraphFlags):
    """The flags of a trainer whose network can also run in bfloat16. fused: its minibatches have kernels of their own
    then (kernels/minibatch.py)."""

    fused: ClassVar[bool] = False
    bf16: bool = flag(
        False,
        "run the network in bfloat16, except the layers of policy and value (default: with pictures, on a GPU from "
        "NVIDIA's Ampere on or a CPU with AVX512-BF16 or AMX)",
        RUN,
    )

    def defaults(self) -> dict[str, Any]:
        fits = self.obs not in ("tiles", "objects")  # whose positions have more digits than bfloat16
        return super().defaults() | ({"bf16": True} if fits and multiplies_bf16(self) else {})


def multiplies_bf16(args: RunFlags) -> bool:
    """True if --device multiplies bfloat16 faster than float32."""
    if not runs_on_gpu(args):
        return bool(WITH_BF16 & cpu_features())
    import torch

    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
