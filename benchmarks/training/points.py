"""Free games that pay for points read from RAM, as a newcomer would write it: without scaling, without shaping.

Games of benchmarks.training.seconds_to_score; docs/rex_runner.py and docs/score_2048.py have two more.
"""

from __future__ import annotations

import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task


class Points(Task):
    """Pays for each point; `points` reads them, `over` where the game has ended."""

    def points(self, ram: Ram) -> torch.Tensor:
        """The points that the screen shows, (num_envs,)."""
        raise NotImplementedError

    def over(self, ram: Ram) -> torch.Tensor | None:
        """True where the game has ended, (num_envs,) bool."""
        return None

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.before = self.points(ram)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        now = self.points(ram)
        reward = (now - self.before).clamp(min=0).float()
        self.before = now
        return StepResult(reward, failure=self.over(ram), statistics={"points": now})


class Snake(Points):
    """Eggs; two digits of text."""

    def points(self, ram: Ram) -> torch.Tensor:
        tens, ones = (ram[address].int() - 48 for address in (0xFFBB, 0xFFBC))
        return (10 * tens + ones).clamp(0, 99)


class RenegadeRush(Points):
    """Dollars; two bytes of decimal digits, the lowest first."""

    def points(self, ram: Ram) -> torch.Tensor:
        return ram.bcd(0xC621, 1) + 100 * ram.bcd(0xC622, 1)


class Wyrmhole(Points):
    """Points; two bytes of decimal digits, the lowest first."""

    def points(self, ram: Ram) -> torch.Tensor:
        return ram.bcd(0xC0E6, 1) + 100 * ram.bcd(0xC0E7, 1)

    def over(self, ram: Ram) -> torch.Tensor:
        return ram[0xC0C2] == 7
