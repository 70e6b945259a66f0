"""Types of networks that trainers share."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class ActorCritic(Protocol):
    """Observations (n, *layout.shape) -> (logits (n, num_actions), values (n,)), float32."""

    def __call__(self, obs: Tensor, /) -> tuple[Tensor, Tensor]: ...


class RecurrentActorCritic(Protocol):
    """Observations (n, *layout.shape) and memory (n, state_size) -> (logits, values, next memory), float32."""

    @property
    def state_size(self) -> int:
        """Numbers of the memory of an env; 0 without one."""
        ...

    def __call__(self, obs: Tensor, state: Tensor, /) -> tuple[Tensor, Tensor, Tensor]: ...
