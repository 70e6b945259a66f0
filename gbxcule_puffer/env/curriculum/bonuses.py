"""The visit bonus as a Task: a reward for rarely visited cells."""

from __future__ import annotations

from typing import ClassVar

import torch

from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task


class VisitBonus(Task):
    """Counts the cells of the envs, and pays `weight` / sqrt(n) for the n-th visit. Allocates only in `setup`."""

    prefix: ClassVar[str] = "visits"
    checks_numbers: ClassVar[bool] = False

    def __init__(self, visits: VisitCounter, weight: float) -> None:
        self.visits, self.weight = visits, weight

    def setup(self, ram: Ram) -> None:
        self._result = StepResult(torch.zeros(ram.num_envs, device=ram.device))

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        self.visits.visit()
        # Product and sum are separate, as everywhere: a GPU would round a fused multiply-add differently.
        torch.mul(self.visits.bonus, self.weight, out=self._result.reward)
        return self._result

    def read(self) -> dict[str, float]:
        return self.visits.read()
