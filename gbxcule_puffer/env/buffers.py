"""The results of a step: device tensors, and their way to PufferLib's NumPy buffers."""

from __future__ import annotations

from collections.abc import Mapping

import gymnasium
import numpy as np
import pufferlib
import torch

if not hasattr(pufferlib, "APIUsageError"):  # pufferlib-core raises it in vector.make, and only PufferLib defines it
    setattr(pufferlib, "APIUsageError", type("APIUsageError", (RuntimeError,), {}))  # noqa: B010


class StepBuffers:
    """`rewards`, `terminals`, `truncations` (num_envs,) and `observations`, the tensors that the device code fills.

    Without `numpy_buffers` they are tensors of their own, and `observations` is None: the frame stack provides it.
    With them, on a CPU, they are views of the NumPy buffers; on a GPU they lie in one block of memory, so that
    `publish` is one device-to-host copy.

    space: of one env's observation.
    """

    def __init__(
        self,
        num_envs: int,
        space: gymnasium.spaces.Box,
        device: torch.device,
        numpy_buffers: Mapping[str, np.ndarray] | None,
    ) -> None:
        self.observations: torch.Tensor | None = None
        self._device_block: torch.Tensor | None = None
        if numpy_buffers is None:
            self.rewards = torch.zeros(num_envs, dtype=torch.float32, device=device)
            self.terminals = torch.zeros(num_envs, dtype=torch.bool, device=device)
            self.truncations = torch.zeros(num_envs, dtype=torch.bool, device=device)
        elif device.type == "cpu":
            self.rewards = torch.from_numpy(numpy_buffers["rewards"])
            self.terminals = torch.from_numpy(numpy_buffers["terminals"])
            self.truncations = torch.from_numpy(numpy_buffers["truncations"])
            self.observations = torch.from_numpy(numpy_buffers["observations"])
        else:
            kind = getattr(torch, str(space.dtype))
            size = num_envs * (6 + int(np.prod(space.shape)) * kind.itemsize)
            self._device_block = torch.zeros(size, dtype=torch.uint8, device=device)
            self._host_block = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
            form = (num_envs, *space.shape), kind
            self.rewards, self.terminals, self.truncations, self.observations = _split(self._device_block, *form)
            names = ("rewards", "terminals", "truncations", "observations")
            parts = _split(self._host_block, *form)
            self._copies = [(numpy_buffers[name], part.numpy()) for name, part in zip(names, parts, strict=True)]

    def publish(self) -> None:
        """Makes the step visible in the NumPy buffers; does nothing if both are the same memory."""
        if self._device_block is not None:
            self._host_block.copy_(self._device_block)
            for target, source in self._copies:
                np.copyto(target, source)


def _split(block: torch.Tensor, shape: tuple[int, ...], kind: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Rewards, terminals, truncations and observations in a block of bytes; observations and rewards come first,
    because they need alignment."""
    n = shape[0]
    observations, rewards, terminals, truncations = block.split([len(block) - 6 * n, 4 * n, n, n])
    return (
        rewards.view(torch.float32),
        terminals.view(torch.bool),
        truncations.view(torch.bool),
        observations.view(kind).view(shape),
    )
