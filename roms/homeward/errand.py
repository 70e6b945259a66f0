"""Errand: HOMEWARD learned from its memory. An example of a Task (docs/your-reward.md)."""

from __future__ import annotations

import torch

from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

MAPS, ROWS, COLUMNS, FLAGS = 3, 32, 40, 4
FLAG, CELL = 3.0, 0.01  # rewards: an episode that ends early has to pay more than one that looks around
DELIVERED = 4


class Errand(Task):
    """Pays for each of the quest's three flags, and for each cell that the hero comes to for the first time in an
    episode with that many flags. The episode ends when the parcel is delivered. Needs `symbols`."""

    place = ("player_map", "player_y", "player_x")

    def setup(self, ram: Ram) -> None:
        # The number of the episode in which a cell was seen last: nothing has to be cleared for a new one.
        self.seen = torch.zeros((ram.num_envs, FLAGS * MAPS * ROWS * COLUMNS), dtype=torch.int32, device=ram.device)
        self.episode = torch.zeros(ram.num_envs, dtype=torch.int32, device=ram.device)
        self.cells = torch.zeros_like(self.episode)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode = self.episode + 1  # as everything that is assigned here, only for `which`
        self.flags = ram.popcount("quest_flags")
        self.cells = torch.zeros_like(self.cells)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        flags = ram.popcount("quest_flags")
        place = ram[list(self.place)].long()
        cell = ((flags * MAPS + place[:, 0]) * ROWS + place[:, 1]) * COLUMNS + place[:, 2]
        is_new = self.seen.gather(1, cell[:, None]).squeeze(1) != self.episode
        self.seen.scatter_(1, cell[:, None], self.episode[:, None])
        reward = FLAG * (flags - self.flags) + CELL * is_new
        self.flags, self.cells = flags, self.cells + is_new
        done = (ram["quest_flags"] & DELIVERED) != 0
        return StepResult(reward, terminal=done, statistics={"flags": flags, "cells": self.cells})
