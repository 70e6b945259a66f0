"""PufferLib's native environment, without what takes seconds for thousands of Game Boys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import gymnasium
import numpy as np
import pufferlib
import pufferlib.pufferlib
import pufferlib.spaces
import torch


class NativeEnv(pufferlib.PufferEnv):  # pyright: ignore[reportAttributeAccessIssue]
    """A PufferEnv whose spaces of all agents are made when they are asked for. PufferEnv makes them at once, and the
    bounds of 16,384 pictures are 375 MB and 2.6 seconds."""

    num_agents: int
    single_observation_space: gymnasium.spaces.Box
    single_action_space: gymnasium.Space

    def __init__(self, buf: Mapping[str, np.ndarray] | Mapping[str, torch.Tensor] | None = None) -> None:
        """buf: PufferLib's buffers to fill, the env's own by default."""
        pufferlib.pufferlib.set_buffers(self, buf)
        self.agent_ids = np.arange(self.num_agents)

    @cached_property
    def observation_space(self) -> gymnasium.Space:
        """The observations of all agents."""
        return pufferlib.spaces.joint_space(self.single_observation_space, self.num_agents)

    @cached_property
    def action_space(self) -> gymnasium.Space:
        """The actions of all agents."""
        return pufferlib.spaces.joint_space(self.single_action_space, self.num_agents)
