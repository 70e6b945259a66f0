"""Levels of a game by number: what varies between episodes, written into its RAM as each of them begins."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import Task

TEST = "test"


@dataclass(frozen=True)
class Levels:
    """The levels first to first + count - 1."""

    first: int
    count: int


def choose_levels(text: str | int | Levels | None, train: Levels, test: Levels | None) -> Levels:
    """The levels that a text asks for: the number of training levels to use, the first ones; `test`; or, for None or an
    empty text, all training levels. Levels are themselves.

    Raises: ConfigError for anything else.
    """
    if isinstance(text, Levels):
        return text
    if text is None or text == "":
        return train
    if text == TEST and test is not None:
        return test
    number = str(text)
    if not (number.isdecimal() and len(number) < 10 and 1 <= int(number) <= train.count):
        rest = ", or test" if test is not None else ""
        raise ConfigError(f"levels {number!r:.40} are unknown: give their number, 1 to {train.count:,}{rest}")
    return Levels(train.first, int(number))


class Leveled(Task):
    """A Task that begins each episode at a level sampled from its own: `begin` writes `level` (num_envs,) int64."""

    def __init__(self, levels: Levels) -> None:
        self.levels = levels

    def setup(self, ram: Ram) -> None:
        self.episode = torch.zeros(ram.num_envs, dtype=torch.int64, device=ram.device)
        self.level = torch.zeros_like(self.episode)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode = self.episode + 1
        self.level = self.levels.first + self.sample(self.levels.count, self.episode)
        self.begin(ram, which)

    def begin(self, ram: Ram, which: torch.Tensor) -> None:
        """Writes the level into the games of `which` (num_envs,) bool."""
        raise NotImplementedError
