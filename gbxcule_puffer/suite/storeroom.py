"""A player of STOREROOM, a game of planning: push both boxes onto marks."""

from __future__ import annotations

from collections import deque

import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy

PLAYING = 1  # game_state
ROOM, SIZE = 0xC200, 128  # in RAM: 8 rows of 16 cells, of these kinds
MARK, WALL, BOX, STORED = 1, 2, 3, 4
MOVES = {"RIGHT": 1, "LEFT": -1, "DOWN": 16, "UP": -16}


def solve(room: list[int], keeper: int) -> list[str]:
    """The fewest moves from a room in RAM; None if there is no solution.

    The state of the search is (keeper, first box, second box), by cells.
    """
    marks = {cell for cell, kind in enumerate(room) if kind in (MARK, STORED)}
    boxes = tuple(cell for cell, kind in enumerate(room) if kind in (BOX, STORED))
    start = (keeper, *boxes)
    came: dict[tuple[int, ...], tuple[tuple[int, ...], str] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        keeper, *now = state
        if marks.issuperset(now):
            break
        for name, move in MOVES.items():
            cell = keeper + move
            after = now
            if cell in now:
                beyond = cell + move
                if room[beyond] == WALL or beyond in now:
                    continue
                after = sorted(beyond if box == cell else box for box in now)
            elif room[cell] == WALL:
                continue
            found = (cell, *after)
            if found not in came:
                came[found] = (state, name)
                queue.append(found)
    else:
        return []
    way: list[str] = []
    while (step := came[state]) is not None:
        state, name = step
        way.append(name)
    return way[::-1]


def player(env: GBxCuLEEnv) -> Policy:
    """Plans each room once, and then follows the plan."""
    ram, actions = env.ram, env.codec.actions
    plans: list[list[str] | None] = [None] * env.num_envs

    def play(obs: torch.Tensor, starts: torch.Tensor | None = None) -> torch.Tensor:
        states, keepers = (part.tolist() for part in ram[["game_state", "keeper"]].unbind(1))
        rooms = ram[ROOM : ROOM + SIZE].tolist()
        chosen = []
        for i, state in enumerate(states):
            if state != PLAYING:
                plans[i] = None
            elif plans[i] is None:
                plans[i] = solve(rooms[i], keepers[i])[::-1]
            plan = plans[i]
            chosen.append(actions.index(plan.pop() if plan else "NOOP"))
        return torch.tensor(chosen, device=ram.device)

    return play
