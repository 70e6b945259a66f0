"""Levels of a game by number: a seed in its RAM, from which it generates everything that varies."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import Task

TRAIN, TEST = 16_384, 0x8000  # training levels: from 0; test levels: the same number, from TEST
SEED_SET = 0xA5  # after the seed: the game begins at once, with this level


@dataclass(frozen=True)
class Levels:
    """The levels first to first + count - 1."""

    first: int = 0
    count: int = TRAIN

    @classmethod
    def parse(cls, text: str) -> Levels:
        """The levels from the text after "-" in the name of an environment: a number, or `test`; empty for all training
        levels.

        Raises: ConfigError for anything else.
        """
        if text == "test":
            return cls(TEST)
        if not text:
            return cls()
        if not (text.isdecimal() and 1 <= int(text) <= TRAIN):
            raise ConfigError(f"levels {text!r:.40} are unknown: give their number, 1 to {TRAIN:,}, or test")
        return cls(0, int(text))


class Leveled(Task):
    """A Task that begins each episode at a level sampled from its own."""

    def __init__(self, levels: Levels | None = None) -> None:
        self.levels = levels or Levels()

    def setup(self, ram: Ram) -> None:
        self.episode = torch.zeros(ram.num_envs, dtype=torch.int64, device=ram.device)
        self.level = torch.zeros_like(self.episode)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode = self.episode + 1
        self.level = self.levels.first + self.sample(self.levels.count, self.episode)
        self.begin(ram, which)

    def begin(self, ram: Ram, which: torch.Tensor) -> None:
        """Writes `level` into the game at power-on."""
        seed = torch.stack([self.level & 0xFF, self.level >> 8, torch.full_like(self.level, SEED_SET)], 1)
        ram.poke("seed", seed, which)
