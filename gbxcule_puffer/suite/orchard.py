"""A player of ORCHARD, a game of reaction: catch the apples, avoid the hailstones."""

from __future__ import annotations

import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy

APPLE, HAIL, ITEMS = 1, 2, 4
# Of roms/orchard/orchard.asm: the range of an item's y, in pixels, in which a basket this near catches it; speeds in
# 1/256 pixels per frame, one per four apples; and the basket's moves in a step.
CATCH_TOP, CATCH_END, CATCH_X, STEP_X = 84, 104, 11, 16
SPEEDS = (0x80, 0xA0, 0xC0, 0xE0, 0x100, 0x120, 0x140, 0x160)


def player(env: GBxCuLEEnv) -> Policy:
    """Moves under the lowest apple, and away from hailstones."""
    codec, ram, step = env.codec, env.ram, env.schedule.frames_per_step
    moves = torch.tensor([0, -STEP_X, STEP_X], device=ram.device)
    actions = torch.tensor([codec.actions.index(name) for name in ("NOOP", "LEFT", "RIGHT")], device=ram.device)
    speeds = torch.tensor(SPEEDS, device=ram.device)

    def play(obs: torch.Tensor, starts: torch.Tensor | None = None) -> torch.Tensor:
        first = ram.locate("items")[1]
        kind, x, y, _ = ram[first : first + 4 * ITEMS].view(-1, ITEMS, 4).unbind(2)
        basket = ram["basket_x"][:, None]
        fall = (step * speeds[(ram["score"] >> 2).long().clamp(max=7)] >> 8)[:, None]
        after = (basket + moves).clamp(8, 136)  # (num_envs, moves)
        lowest = torch.where(kind == APPLE, y, 0).argmax(1, keepdim=True)
        target = torch.where((kind == APPLE).any(1, keepdim=True), x.gather(1, lowest), basket)
        cost = (after - target).abs().float()
        hits = (kind == HAIL) & (y < CATCH_END) & (y + fall >= CATCH_TOP)  # in this step
        near = (after[:, :, None] - x[:, None]).abs() <= CATCH_X + 4
        cost = cost + 1000.0 * (near & hits[:, None]).any(2)
        return actions[cost.argmin(1)]

    return play
