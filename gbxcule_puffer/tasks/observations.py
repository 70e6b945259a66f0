"""Observations: the screen as shades or packed, stacked `stack_k` deep, newest last; nothing is allocated per step."""

from __future__ import annotations

from typing import Any

import torch

from gbxcule_puffer.emulator.launch import words
from gbxcule_puffer.errors import ConfigError

# obs: (rows, columns of the screen, bytes of a row in the observation)
LAYOUTS: dict[str, tuple[int, int, int]] = {"shades": (72, 80, 80), "packed": (72, 80, 20), "full": (144, 160, 160)}


def observation_shape(obs: str, stack_k: int) -> tuple[int, int, int]:
    """(stack_k, rows, bytes of a row) of one env's observation.

    Raises: ConfigError for an unknown kind or an empty stack.
    """
    if obs not in LAYOUTS:
        raise ConfigError(f"obs {obs!r} is unknown: give one of {', '.join(LAYOUTS)}")
    if stack_k < 1:
        raise ConfigError(f"stack_k {stack_k} must be at least 1")
    rows, _, row_bytes = LAYOUTS[obs]
    return stack_k, rows, row_bytes


class FrameStack:
    """The last `stack_k` pictures of each env in `observations` (num_envs, stack_k, rows, row bytes) uint8, newest
    last, for env/step_end/parts.py to fill.

    Without `out`, with stack_k 1 and not packed `observations` is a view of the picture itself: no shift, no copy.
    """

    def __init__(self, screen: torch.Tensor, obs: str, stack_k: int, out: torch.Tensor | None = None) -> None:
        shape = observation_shape(obs, stack_k)
        in_place = out is None and stack_k == 1 and obs != "packed"
        if out is None:
            out = screen.unsqueeze(1) if in_place else screen.new_zeros((len(screen), *shape))
        self.observations = out
        self.members: dict[str, Any] = {
            "screen": words(screen),
            "observations": words(out),
            "stack_k": stack_k,
            "packed": int(obs == "packed"),
            "in_place": int(in_place),
        }
