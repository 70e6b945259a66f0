"""A game played well by a search: many Game Boys try bursts of random buttons, and the best of them are copied."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gbxcule_puffer.apps.game.playing import SEED, Episode, play_episode, statistic_key
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.games.make import make_game_env

MOST_BACK = 64  # bursts that are kept, to go back to from where every Game Boy's episode has failed


@dataclass(frozen=True)
class Search:
    """A search: after each burst of `burst` steps, `keep` Game Boys survive, and each of the others becomes a copy of a
    survivor. In a burst, a button is held for 1 to `hold` steps. It ends after `seconds`, or when all have reached the
    end."""

    num_envs: int = 251
    keep: int = 24
    burst: int = 8
    hold: int = 4
    seconds: float = 60.0
    seed: int = 0


@torch.no_grad()
def solve(
    game: Game, search: Search, rom: StrPath | None = None, say: Callable[[str], object] = lambda _: None
) -> Episode:
    """The best episode that the search finds: by its score and then its return, or without [scores] its return; among
    those that succeed, if any does. say: is called with a line for each improvement.

    Raises: ConfigError where no episode ends in the given time; the errors of make_game_env.
    """
    levels = game.scored_levels
    first = None if levels is None else Levels(levels.first, 1)
    options = {"io": "torch", "autotune": False, "obs": "shades", "seed": SEED}
    env = make_game_env(game, GBxCuLEEnv, search.num_envs, levels=first, rom=rom, **options)
    try:
        best = _Searching(env, game, search, say).run()
    finally:
        env.close()
    if best is None:
        raise ConfigError(
            f"{game.source}: no episode ended in {search.seconds:g} seconds: give more, or fewer max_steps"
        )
    return play_episode(game, best, rom)


class _Searching:
    def __init__(self, env: GBxCuLEEnv, game: Game, search: Search, say: Callable[[str], object]) -> None:
        self.env, self.game, self.search, self.say = env, game, search, say
        self.best: tuple[tuple[float, ...], list[str]] | None = None
        self.generator = torch.Generator().manual_seed(search.seed)
        self.allowed = torch.tensor(env.allowed).nonzero()[:, 0]
        self.totals = torch.zeros(search.num_envs, dtype=torch.float64)
        self.actions = torch.zeros((search.num_envs, 0), dtype=torch.int64)

    def run(self) -> list[str] | None:
        """The names of the best episode's actions."""
        env, search = self.env, self.search
        env.reset(seed=SEED)
        state = copied(env.state_dict(), torch.zeros(search.num_envs, dtype=torch.int64))
        env.load_state_dict(state)
        kept, back, end = [(state, self.totals, self.actions)], 1, time.monotonic() + search.seconds
        while time.monotonic() < end:
            running, has_come_to_the_end = self._burst()
            if bool(running.any()):
                rows = self._survivors(running)
                self.totals, self.actions = self.totals[rows], self.actions[rows]
                kept = [*kept[-MOST_BACK:], (copied(env.state_dict(), rows), self.totals, self.actions)]
                back = 1
            elif has_come_to_the_end:
                break
            else:  # every episode has failed: try other bursts from further and further back
                del kept[max(1, len(kept) - back) :]
                back *= 2
            state, self.totals, self.actions = kept[-1]
            env.load_state_dict(state)
        return None if self.best is None else self.best[1]

    def _burst(self) -> tuple[torch.Tensor, bool]:
        """The envs whose episode goes on after a burst (num_envs,) bool, and whether another one came to its end other
        than by a failure."""
        env, n = self.env, self.search.num_envs
        running, at_end = torch.ones(n, dtype=torch.bool), False
        held, left = torch.zeros(n, dtype=torch.int64), torch.zeros(n, dtype=torch.int64)
        for _ in range(self.search.burst):
            new = self.allowed[torch.randint(len(self.allowed), (n,), generator=self.generator)]
            length = torch.randint(self.search.hold, (n,), generator=self.generator)
            held, left = torch.where(left == 0, new, held), torch.where(left == 0, length, left - 1)
            self.actions = torch.cat([self.actions, held[:, None]], 1)
            _, rewards, terminals, truncations, _ = env.step(held)
            self.totals = self.totals + torch.where(running, rewards.double(), 0)
            ended = running & (terminals | truncations)
            if bool(ended.any()):
                at_end |= bool((ended & ~env.failures).any())
                self._note(ended, terminals & ~env.failures)
                running &= ~ended
        return running, at_end

    def _note(self, ended: torch.Tensor, succeeded: torch.Tensor) -> None:
        """Keeps the best of the episodes that have just ended."""
        scores, values = self.game.scores, self.env.statistics() | {"success": succeeded.double()}
        score = self.totals if scores is None else values[statistic_key(values, scores.statistic)].double()
        for row in ended.nonzero()[:, 0].tolist():
            rank = (float(succeeded[row]), float(score[row]), float(self.totals[row]))
            if self.best is None or rank > self.best[0]:
                self.best = (rank, [self.env.codec.actions[action] for action in self.actions[row].tolist()])
                word = "success" if rank[0] else "end"
                self.say(f"{word}: score {rank[1]:g}, return {rank[2]:g}, {len(self.best[1]):,} steps")

    def _survivors(self, running: torch.Tensor) -> torch.Tensor:
        """The row that each env becomes a copy of (num_envs,): of those with the highest return so far."""
        noise = torch.rand(len(running), generator=self.generator, dtype=torch.float64) * 1e-6
        order = torch.where(running, self.totals + noise, -torch.inf).argsort(descending=True)
        best = order[: min(self.search.keep, int(running.sum()))]
        return best[torch.arange(len(running)) % len(best)]


def copied(state: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    """An env's saved state whose env i is a copy of env rows[i]. The number of envs must be that of no other axis."""
    n = len(rows)

    def of(tensor: torch.Tensor) -> torch.Tensor:
        axes = [axis for axis, size in enumerate(tensor.shape) if size == n]
        return tensor.index_select(axes[0], rows) if axes else tensor

    machines = {name: of(tensor) for name, tensor in state["machines"].items()}
    return state | {"tensors": {name: of(tensor) for name, tensor in state["tensors"].items()}, "machines": machines}
