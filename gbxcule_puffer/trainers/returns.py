"""Returns of the trainers, as plain functions of tensors: terminal and truncated are never the same thing.

An episode that reaches its end is worth nothing afterwards. One that the time limit cuts is worth what the value
function says of the observation it was cut at, which the env's `final_observation` holds after its autoreset.
"""

from __future__ import annotations

import torch


def td_target(rewards: torch.Tensor, next_values: torch.Tensor, terminals: torch.Tensor, gamma: float) -> torch.Tensor:
    """One-step target of every step, any shape; `next_values` are those of the final observations."""
    return rewards + gamma * next_values * ~terminals


def gae(
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminals: torch.Tensor,
    truncations: torch.Tensor,
    gamma: float,
    gae_lambda: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(advantages, returns) by generalised advantage estimation, all (num_steps, num_envs).

    `values` are of the observations the actions were chosen by, `next_values` of those the actions led to, before any
    autoreset. A truncation cuts the sum like a terminal, but is bootstrapped.
    """
    deltas = td_target(rewards, next_values, terminals, gamma) - values
    ended = terminals | truncations
    advantages = torch.empty_like(deltas)
    later = torch.zeros_like(deltas[0])
    for step in reversed(range(len(deltas))):
        later = deltas[step] + gamma * gae_lambda * later * ~ended[step]
        advantages[step] = later
    return advantages, advantages + values


def n_step_returns(
    rewards: torch.Tensor, terminals: torch.Tensor, truncations: torch.Tensor, n_step: int, gamma: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(returns, discounts, lengths) of the n-step windows in a stretch of consecutive steps.

    The stretch is (num_steps, ...); window i begins at step i, and there are num_steps - n_step + 1 of them. Its target
    is `returns + discounts * value(observation of step i + lengths)`. A terminal ends a window with discount 0. A
    truncation ends it one step earlier, at an observation of the same episode, so that no final observation has to be
    kept; a window that begins with the truncated step itself has length 0 and no target.
    """
    count = len(rewards) - n_step + 1
    returns, discounts = torch.zeros_like(rewards[:count]), torch.ones_like(rewards[:count])
    lengths = torch.zeros_like(rewards[:count], dtype=torch.int64)
    running = torch.ones_like(terminals[:count])
    for offset in range(n_step):
        window = slice(offset, offset + count)
        running = running & ~truncations[window]
        returns = returns + discounts * rewards[window] * running
        discounts = torch.where(running, discounts * gamma, discounts)
        lengths = lengths + running
        ended = running & terminals[window]
        discounts = torch.where(ended, 0.0, discounts)
        running = running & ~ended
    return returns, discounts, lengths
