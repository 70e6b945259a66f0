"""A game's terms as a Task: reward, ends, statistics and milestones, levels, and what variants write."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.parts import LevelTable, Terms
from gbxcule_puffer.games.terms.run import TermRunner
from gbxcule_puffer.games.variants import Variant
from gbxcule_puffer.tasks.ram import Numbers, Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task


class GameTask(Task):
    """Plays by a game.toml. Its memory is made in `setup`, and only written in place later.

    level (num_envs,) int64: the episode's level, 0 without [levels]; variant (num_envs,) int64: which of the variants
    an env plays, in the given order.
    """

    def __init__(
        self,
        terms: Terms,
        table: LevelTable | None,
        levels: Levels | None,
        variants: Sequence[Variant],
        max_steps: int,
    ) -> None:
        self.terms, self.table, self.levels = terms, table, levels
        self.variants, self.max_steps = tuple(variants), max_steps
        self.of_some = len(self.variants) > 1
        self.milestones, self.blocks = tuple(terms.milestones), tuple(terms.blocked)

    def setup(self, ram: Ram) -> None:
        n, device = ram.num_envs, ram.device
        self.episode = torch.zeros(n, dtype=torch.int64, device=device)
        self.level, self.variant = torch.zeros_like(self.episode), torch.zeros_like(self.episode)
        self.paid = torch.zeros(n, dtype=torch.float64, device=device)
        self.reached = torch.zeros((len(self.terms.milestones), n), dtype=torch.bool, device=device)
        tape = self.terms.tape
        for location in {node.value for node in tape.nodes if node.operation == "executions"}:
            ram.hook(location)  # pyright: ignore[reportArgumentType]
        self._numbers = Numbers(ram, self.terms.numbers) if self.terms.numbers else None
        self._runner = TermRunner(tape, n, device, self.episode, ram.executions, self.max_steps)
        for name, tensor in self._runner.memory.items():
            setattr(self, name, tensor)
        table = self.table
        self._level_runner = (
            None if table is None else TermRunner(table.tape, n, device, self.episode, ram.executions, 1)
        )  # pyright: ignore[reportArgumentType]
        self._first_draw = torch.zeros_like(self.episode)
        self._no_numbers = self.episode.new_zeros((n, 0))
        self._no_reward = torch.zeros(n, device=device)

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.episode.add_(which)
        if self.levels is not None:
            level = self.levels.first + self.sample(self.levels.count, self.episode)
            torch.where(which, level, self.level, out=self.level)
            self._write_level(ram, which)
        if len(self.variants) > 1:  # the same in every episode: the counter of episodes begins with 1
            torch.where(which, self.sample(len(self.variants), self._first_draw), self.variant, out=self.variant)
        self._poke(ram, which)
        numbers = self._read()
        self._runner.begin(numbers, which)
        self.reached.logical_and_(~which)
        self.paid.masked_fill_(which, 0)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        self._poke(ram, None)
        found = self._runner.step(self._read())
        terms, n = self.terms, ram.num_envs

        def result(node: int | None) -> torch.Tensor | None:
            return None if node is None else found[node].expand(n)

        reward = self._no_reward if terms.reward is None else found[terms.reward].float().expand(n)
        statistics = {name: found[node].expand(n) for name, node in terms.statistics.items()}
        for row, (name, node) in zip(self.reached, terms.milestones.items(), strict=True):
            row.logical_or_(found[node])
            statistics[name] = row
        success = result(terms.success)
        if self.of_some:
            statistics |= self._of_variants(reward, success)
        return StepResult(reward, success, result(terms.truncation), statistics, result(terms.failure))

    def holds(self, ram: Ram) -> torch.Tensor:
        return self._now(ram, list(self.terms.milestones.values()))

    def blocked(self, ram: Ram) -> torch.Tensor:
        return self._now(ram, list(self.terms.blocked.values()))

    def _now(self, ram: Ram, nodes: list[int]) -> torch.Tensor:
        """The results of some conditions as they are, (nodes, num_envs) bool."""
        last = self._runner.results  # of the step, until episodes begin
        found = self._runner.at_start(self._read(), nodes) if last is None else last
        return torch.stack([found[node].expand(ram.num_envs) for node in nodes])

    def _of_variants(self, reward: torch.Tensor, success: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """The return of each variant's episodes, and whether they succeed; NaN in the envs of the others."""
        self.paid.add_(reward)
        own = {"return": self.paid} | ({} if success is None else {"success": success.double()})
        return {
            f"{variant.name}/{name}": torch.where(self.variant == number, values, math.nan)
            for number, variant in enumerate(self.variants)
            for name, values in own.items()
        }

    def _read(self) -> torch.Tensor:
        return self._no_numbers if self._numbers is None else self._numbers.read()

    def _write_level(self, ram: Ram, which: torch.Tensor) -> None:
        assert self.table is not None and self._level_runner is not None and self.table.where is not None
        found = self._level_runner.step(self.level[:, None])
        columns = [found[node].expand(ram.num_envs) for node in self.table.values]
        ram.poke(self.table.where, torch.stack(columns, 1), which)

    def _poke(self, ram: Ram, which: torch.Tensor | None) -> None:
        """Writes what the variants say: at the start of the episodes of `which`, or, for None, after a step."""
        for number, variant in enumerate(self.variants):
            pokes = [poke for poke in variant.pokes if which is not None or poke.always]
            if not pokes:
                continue
            mask = which
            if len(self.variants) > 1:
                own = self.variant == number
                mask = own if which is None else own & which
            for poke in pokes:
                ram.poke(poke.where, poke.data, mask)
