"""Types that the rooms above the environment share."""

from __future__ import annotations

from typing import Protocol

import torch


class Policy(Protocol):
    """(observations (n, ...), starts (n,) bool: where an episode begins with this observation) -> actions (n,) int64.

    A policy is made for one env; without `starts` it looks at the env's final_mask.
    """

    def __call__(self, obs: torch.Tensor, starts: torch.Tensor | None = None, /) -> torch.Tensor: ...
