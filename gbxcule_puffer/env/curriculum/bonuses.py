"""Rewards beside the goal's: for cells seldom visited, and for what a quest's conditions find in RAM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.env.curriculum.visits import VisitCounter
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.tasks.quest import Condition, QuestReward
from gbxcule_puffer.tasks.ram_watch import parse_visit_key


class Incentives:
    """Adds visit_bonus / sqrt(n) and the quest's rewards, then scales the whole reward; each only where asked for, and
    `active` if any is.

    Raises: ConfigError where RAM is asked of an emulator without memory on the device, as PyBoy's.
    """

    def __init__(self, emulator: Any, device: torch.device, quest: Sequence[Condition], options: EnvOptions) -> None:
        self.visit_bonus, self.reward_scale = options.visit_bonus, options.reward_scale
        wanted, cell = options.visit_bonus or options.archive_slots, parse_visit_key(options.visit_key)
        self.visits = VisitCounter(emulator, device, cell) if wanted else None
        self.quest = QuestReward(emulator, list(quest)) if quest else None
        self.active = self.visits is not None or self.quest is not None or self.reward_scale != 1
        self._bonus = torch.zeros(emulator.num_envs, device=device)

    def pay(self, rewards: torch.Tensor) -> None:
        """Counts the step just made and completes its `rewards` (num_envs,)."""
        if self.visits is not None:
            self.visits.visit()
            # Product and sum apart, as everywhere: the GPU would round a fused multiply-add differently.
            torch.mul(self.visits.bonus, self.visit_bonus, out=self._bonus)
            rewards.add_(self._bonus)
        if self.quest is not None:
            self.quest.pay(rewards)
        if self.reward_scale != 1:
            rewards.mul_(self.reward_scale)

    def count(self, ended: torch.Tensor) -> None:
        """Takes note of the episodes that end with this step."""
        if self.quest is not None:
            self.quest.count(ended)

    def begin(self, mask: torch.Tensor) -> None:
        """Takes note of the episodes that begin in the envs of `mask`."""
        if self.quest is not None:
            self.quest.begin(mask)

    def read(self) -> dict[str, float]:
        """Statistics for the infos."""
        parts = [part.read() for part in (self.visits, self.quest) if part is not None]
        return {name: value for part in parts for name, value in part.items()}
