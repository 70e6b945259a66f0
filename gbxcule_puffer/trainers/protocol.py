"""Types of envs, policies and networks for trainers."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from gbxcule_puffer.env.protocol import EnvLike, PlayedEnv, Policy

__all__ = ["ActorCritic", "EnvLike", "PlayedEnv", "Policy", "RecurrentActorCritic"]


class ActorCritic(Protocol):
    """Observations (n, *layout.shape) -> (logits (n, num_actions), values (n,)), float32."""

    def __call__(self, obs: Tensor, /) -> tuple[Tensor, Tensor]: ...


class RecurrentActorCritic(Protocol):
    """Observations (n, *layout.shape) and memory (n, state_size) -> (logits, values, next memory), float32."""

    @property
    def state_size(self) -> int:
        """Size of an env's memory; 0 without one."""
        ...

    def __call__(self, obs: Tensor, state: Tensor, /) -> tuple[Tensor, Tensor, Tensor]: ...
