"""Schedules for exploration, and policies that play in another env."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from gbxcule_puffer.env.protocol import PlayedEnv, Policy

Network = TypeVar("Network", bound=nn.Module)


def linear_schedule(start: float, end: float, duration: int, step: int) -> float:
    """A straight line from `start` at step 0 to `end` at step `duration`; `end` afterwards."""
    return start + (end - start) * min(1.0, step / duration)


def own_copy(model: Network, env: PlayedEnv, seed: int) -> tuple[Network, torch.Generator]:
    """A copy of the model on the env's device, and a random stream: it can play while the model continues to learn."""
    return copy.deepcopy(model).to(env.device), torch.Generator(env.device).manual_seed(seed)


def remembering(act: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], env: PlayedEnv, size: int) -> Policy:
    """A policy for `env` from act(observations, memory (num_envs, size)) -> (actions, next memory); an episode begins
    with a memory of zeros."""
    memory = torch.zeros((env.num_envs, size), device=env.device)

    def policy(obs: Tensor, starts: Tensor | None = None) -> Tensor:
        nonlocal memory
        actions, memory = act(obs, memory * ~(env.final_mask if starts is None else starts)[:, None])
        return actions

    return policy
