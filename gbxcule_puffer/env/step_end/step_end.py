"""The end of a step: one launch per sequence of parts (kernels.py), over tensors that keep their addresses."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator.launch import Launcher, fill
from gbxcule_puffer.env.fields import Episode
from gbxcule_puffer.env.step_end import kernels


class StepEnd:
    """The parts of the step's end of `num_envs` envs, once `use` has been given all tensors and numbers that they
    need."""

    def __init__(self, num_envs: int, device: torch.device, in_color: bool = False) -> None:
        """in_color: True if the observations are in colour."""
        self.in_color = in_color
        self._launcher = Launcher(device)
        self._dim, self._episode = (num_envs, self._launcher.lanes), Episode()

    def use(self, **members: object) -> None:
        """Sets members of env.fields.Episode; tensors are not copied. All of them must be set before the first
        `run`."""
        fill(self._episode, **members)

    def run(self, sequence: str) -> None:
        """Runs the parts of a sequence; on a GPU on torch's current stream. No host synchronisation and, except for the
        first time, no allocation."""
        self._launcher(kernels.kernel(sequence, self.in_color), self._dim, self._episode, self._launcher.lanes)
