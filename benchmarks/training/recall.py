"""A Task that only an agent with a memory learns: a cue is shown at the start of an episode, and counts at its end.

    python cleanrl_style/ppo_recurrent.py --rom homeward --task benchmarks/training/recall.py:Recall \
        --action-codec NOOP,LEFT,RIGHT --max-steps 8

In any game, for --max-steps steps; without a memory, half of the episodes succeed at best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

LEFT, RIGHT = 1, 2  # the actions NOOP,LEFT,RIGHT that a cue asks for


class Recall(Task):
    """A cue of two, in the first observation of an episode only; the action of its last step must be the one that was
    asked for."""

    observations: ClassVar = {"cue": (2,)}

    def setup(self, ram: Ram) -> None:
        self.episode, self.cue = (torch.zeros(ram.num_envs, dtype=torch.int64, device=ram.device) for _ in range(2))
        self.shown = torch.ones_like(self.cue, dtype=torch.bool)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode = torch.where(which, self.episode + 1, self.episode)
        self.cue = torch.where(which, self.sample(2, self.episode), self.cue)
        self.shown = self.shown | which

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        self.shown = torch.zeros_like(self.shown)
        right = info.actions == torch.where(self.cue == 0, LEFT, RIGHT)
        success, failure = info.truncation & right, info.truncation & ~right
        return StepResult(success.float(), terminal=success, failure=failure)

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        return {"cue": (torch.nn.functional.one_hot(self.cue, 2) * self.shown[:, None]).float()}
