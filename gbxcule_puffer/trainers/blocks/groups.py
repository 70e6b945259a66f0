"""Groups of envs: one group's Game Boys run while the learner works for the others."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor


class Group:
    """A share of the Game Boys: on a GPU they run on a stream of their own, beside the model's work for the others."""

    def __init__(self, env: Any, state_size: int, overlap: bool) -> None:
        self.env, self.device = env, env.device
        self.state = torch.zeros((env.num_envs, state_size), device=env.device)  # the GRU's, where a round begins
        self.stream = torch.cuda.Stream(env.device) if overlap and env.device.type == "cuda" else None

    def begin_step(self, actions: Tensor) -> None:
        """Presses the buttons once they are known; `actions` are held until `end_step`, when they have been read."""
        self.actions = actions
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream) if self.stream else nullcontext():
            _, self.rewards, self.terminals, _, _ = self.env.step(actions)

    def end_step(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(rewards, terminals, ends, final observation) of the step begun last, copied: the next overwrites them."""
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
        env = self.env
        return self.rewards.clone(), self.terminals.clone(), env.final_mask.clone(), env.final_observation.clone()
