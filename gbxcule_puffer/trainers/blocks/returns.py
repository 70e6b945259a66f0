"""Rewards in units of the returns that they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gbxcule_puffer.trainers.checkpoints import check_like
from gbxcule_puffer.trainers.distributed import World

MEMORY = 0.95  # of the deviation, from rollout to rollout
LEAST = 1e-10  # variance that is one, and not rounding
LARGEST = 10.0  # scaled reward: the first of a game have no returns to be compared with


class ReturnScale:
    """Divides the rewards of rollouts by the running deviation of the discounted returns, so that the same settings fit
    games of points and of hundreds of thousands of points.

    A positive reward stays positive: the rewards are scaled, not shifted. The layer that gives the values is rescaled
    with each new deviation: its values of the game's own rewards stay as they are.
    """

    def __init__(self, num_envs: int, gamma: float, world: World, device: torch.device) -> None:
        self.gamma, self.world = gamma, world
        self.returns = torch.zeros(num_envs, device=device)  # so far, discounted, of the running episodes
        self.moments = torch.zeros(3, device=device)  # weight, mean and mean square of all returns, weighted by age
        self.deviation = torch.zeros((), device=device)  # 0 as long as there was no reward

    @torch.no_grad()
    def scale(self, rollout: Mapping[str, Tensor], head: nn.Linear) -> None:
        """Counts the rewards of a rollout, (num_steps, num_envs), and divides them in place; its values, and those
        that `head` gives, get the new unit."""
        rewards, ended = rollout["rewards"], rollout["terminals"] | rollout["truncations"]
        sums = torch.zeros(2, device=rewards.device)
        for step in range(len(rewards)):
            self.returns.mul_(self.gamma).add_(rewards[step])
            sums += torch.stack([self.returns.sum(), self.returns.square().sum()])
            self.returns.mul_(~ended[step])
        sums /= rewards.numel()
        self.world.average(sums)
        self.moments.mul_(MEMORY).add_(torch.cat([torch.ones_like(sums[:1]), sums]), alpha=1 - MEMORY)
        mean, square = self.moments[1:] / self.moments[0]
        variance, before = square - mean.square(), self.deviation
        now = torch.where(variance > LEAST, variance.clamp(min=LEAST).sqrt(), before)
        # The first values are of no game yet, and already of the size of scaled ones.
        factor = torch.where(before > 0, before / now, 1.0)
        kept = [rollout[name] for name in ("values", "next_values") if name in rollout]
        for values in (head.weight, head.bias, *kept):
            values.mul_(factor)
        rewards.div_(torch.where(now > 0, now, 1.0)).clamp_(-LARGEST, LARGEST)
        self.deviation.copy_(now)

    def state_dict(self) -> dict[str, Any]:
        return {"returns": self.returns, "moments": self.moments, "deviation": self.deviation}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_like(state, self.state_dict(), "return scale")
        for name, own in self.state_dict().items():
            own.copy_(state[name])
