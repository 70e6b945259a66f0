"""The end of a step, one launch a stage (env/step_end/kernels.py), over tensors that stay where they are."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator.launch import Launcher
from gbxcule_puffer.env.step_end import kernels
from gbxcule_puffer.env.step_end.parts import Episode


class Epilog:
    """The stages of the step of `num_envs` envs, once `use` has named all tensors and numbers of their parts."""

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._launcher = Launcher(device)
        self._dim, self._episode = (num_envs, self._launcher.lanes), Episode()
        self._kept: list[torch.Tensor] = []

    def use(self, **fields: Any) -> None:
        """Sets fields of hw.epilog.Episode, tensors without a copy. All of them before the first `run`."""
        for name, value in fields.items():
            if isinstance(value, torch.Tensor):
                self._kept.append(value)
                value = wp.from_torch(value)
            setattr(self._episode, name, value)

    def run(self, stage: str) -> None:
        """Runs a stage, on a GPU on torch's current stream. No host synchronisation and, but for the first time, no
        allocation."""
        self._launcher(kernels.kernel(stage), self._dim, self._episode, self._launcher.lanes)
