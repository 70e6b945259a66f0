"""Rex Runner, an action game that is not ours: an example of a Task that pays for lasting (docs/action-games.md)."""

from __future__ import annotations

import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

SCORE, STATE = 0xC1A3, 0xC1A2  # three bytes of decimal digits, the lowest first; PLAYS, PAUSED or OVER
PLAYS, PAUSED, OVER = range(3)
UNIT = 10.0  # points of a reward of 1


class Runner(Task):
    """Pays for the points that the run goes on for; a collision ends the episode as a lost game."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.score = score_of(ram)
        self.paused = torch.zeros(ram.num_envs, device=ram.device)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        score, state = score_of(ram), ram[STATE]
        reward = (score - self.score).clamp(min=0) / UNIT
        self.score, self.paused = score, self.paused + (state == PAUSED)
        statistics = {"score": score, "paused": self.paused / info.length}
        return StepResult(reward, failure=state == OVER, statistics=statistics)


def score_of(ram: Ram) -> torch.Tensor:
    """The points as the screen shows them, (num_envs,) int32."""
    low, middle, high = (ram.bcd(SCORE + byte, 1) for byte in range(3))
    return low + 100 * middle + 10_000 * high
