"""Observations: the screen as shades or packed, stacked `stack_k` deep, newest last; nothing is allocated per step."""

from __future__ import annotations

from itertools import pairwise

import torch

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
    """The last `stack_k` pictures of each env in `observations` (num_envs, stack_k, rows, row bytes) uint8.

    Without `out` and with stack_k 1 `observations` is a view of the picture itself: no shift, no copy.
    """

    def __init__(self, screen: torch.Tensor, obs: str, stack_k: int, out: torch.Tensor | None = None) -> None:
        shape = observation_shape(obs, stack_k)
        self.screen = screen
        self.frame = screen.new_zeros((len(screen), *shape[1:])) if obs == "packed" else screen
        self.is_view = out is None and stack_k == 1
        if out is None:
            out = self.frame.unsqueeze(1) if self.is_view else screen.new_zeros((len(screen), *shape))
        self.observations = out

    def push(self) -> None:
        """Takes the screen as the newest picture of every env."""
        self._pack()
        if self.is_view:
            return
        planes = self.observations.unbind(1)
        for older, newer in pairwise(planes):
            older.copy_(newer)
        planes[-1].copy_(self.frame)

    def refill(self, mask: torch.Tensor) -> None:
        """Fills the whole stack of the envs in `mask` (num_envs,) bool with the screen: an episode's first picture."""
        self._pack()
        if self.is_view:
            return
        rows = mask[:, None, None]
        for plane in self.observations.unbind(1):
            torch.where(rows, self.frame, plane, out=plane)

    def _pack(self) -> None:
        """Four pixels a byte, leftmost in bits 7-6."""
        if self.frame is self.screen:
            return
        first, *rest = self.screen.unflatten(2, (-1, 4)).unbind(3)
        self.frame.copy_(first)
        for pixel in rest:
            self.frame.mul_(4).add_(pixel)
