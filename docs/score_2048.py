"""2048-gb learned from its score: an example of a Task for a game that is not ours (docs/your-reward.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

SCORE, BOARD = 0xFFB0, 0xC800  # three bytes of decimal digits; 4 x 4 exponents of two, 0 for an empty cell
CELLS, EXPONENTS, WON = 16, 16, 11
UNIT = 100.0  # points of a reward of 1


class Score(Task):
    """Pays for points; the game is lost where no move is left, and won with a tile of 2048.

    The policy sees the board as a one-hot exponent for each cell.
    """

    observations: ClassVar = {"board": (CELLS, EXPONENTS)}

    def setup(self, ram: Ram) -> None:
        self.exponents = torch.arange(EXPONENTS, device=ram.device)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.score = ram.bcd(SCORE, 3)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        score, board = ram.bcd(SCORE, 3), ram[BOARD : BOARD + CELLS]
        reward = (score - self.score) / UNIT
        self.score = score
        statistics = {"score": score, "largest": 2 ** board.amax(1)}
        won = (board >= WON).any(1)
        return StepResult(reward, terminal=won, failure=is_over(board), statistics=statistics)

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        board = ram[BOARD : BOARD + CELLS]
        return {"board": board[:, :, None] == self.exponents}


def is_over(board: torch.Tensor) -> torch.Tensor:
    """True where no move is left, (n,) bool, on boards (n, 16) of exponents: all cells are full, and no neighbours are
    equal."""
    rows = board.view(-1, 4, 4)
    beside = (rows[:, :, 1:] == rows[:, :, :-1]).flatten(1).any(1)
    below = (rows[:, 1:] == rows[:, :-1]).flatten(1).any(1)
    return (board > 0).all(1) & ~beside & ~below
