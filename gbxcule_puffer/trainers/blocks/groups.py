"""Groups of envs: one group's Game Boys run while the learner works for the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from gbxcule_puffer.env.protocol import EnvLike


def unsettled(envs: Sequence[EnvLike]) -> bool:
    """True if a trial of launch shapes is running, or the first is still to come, in one of the envs."""
    return any(env.launches is not None and env.launches.unsettled for env in envs)


class Group:
    """A share of the Game Boys. On a GPU they run on their own stream, while the model works for the others."""

    def __init__(self, env: EnvLike, state_size: int, overlap: bool) -> None:
        self.env, self.device = env, env.device
        self.memory = torch.zeros((env.num_envs, state_size), device=env.device)  # memory at the start of a round
        # High priority: if both could begin, the Game Boys do.
        self.stream = torch.cuda.Stream(env.device, priority=-1) if overlap and env.device.type == "cuda" else None

    def begin_step(self, actions: Tensor) -> None:
        """Presses the buttons once they are known; `actions` are kept until `end_step`, when they have been read. The
        learner's next work begins after the Game Boys' kernel, in the room that they leave."""
        self.actions = actions
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream) if self.stream else nullcontext():
            _, self.rewards, self.terminals, _, _ = self.env.step(actions)
        if self.stream is not None and self.env.launches is not None:
            torch.cuda.current_stream(self.device).wait_event(self.env.launches.begun)

    def end_step(self, final: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """(rewards, terminals, ends, final observation) of the last step, copied because the next step overwrites them.
        The final observation is None unless requested."""
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
        env = self.env
        observation = env.final_observation.clone() if final else None
        return self.rewards.clone(), self.terminals.clone(), env.final_mask.clone(), observation
