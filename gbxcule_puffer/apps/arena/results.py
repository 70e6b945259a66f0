"""Records of several agents on several games, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gbxcule_puffer.apps.arena.records import STEPS, TEST, Record
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games import load_game, own_games
from gbxcule_puffer.games.parts import Scores

POINTS = 100  # of a curve that is drawn
LEAST_SHARE = 3  # an agent with fewer than 1/3 of the games would leave few games for the aggregates


@dataclass(frozen=True)
class Results:
    """Records by agent and game. left_out: games whose scores are not known here, so that nothing can be normalised."""

    records: Sequence[Record]

    @cached_property
    def scales(self) -> dict[str, Scores]:
        """The scores of each game, by its name, in the order of their names."""
        known = own_games()
        names = sorted({each.game for each in self.records})
        found = {name: load_game(name).scores for name in names if name in known}
        return {name: scores for name, scores in found.items() if scores is not None}

    @property
    def left_out(self) -> list[str]:
        """Games whose records cannot be normalised, because they have no scores."""
        return sorted({each.game for each in self.records} - self.scales.keys())

    @cached_property
    def agents(self) -> list[str]:
        """The agents, the best one first."""
        names = {each.agent for each in self.records if each.game in self.scales}
        if not names:
            raise ConfigError("none of the records is of a game with [scores], which are compared: give others")
        whole = {name: np.mean([runs.mean() for runs in self.scores(name, self.games_of(name))]) for name in names}
        return sorted(names, key=lambda name: (-len(self.games_of(name)), -whole[name], name))

    def games_of(self, agent: str) -> list[str]:
        """The games that an agent has records of."""
        return [game for game in self.scales if self.runs(agent, game)]

    @cached_property
    def compared(self) -> list[str]:
        """The agents of the aggregates: those with records of a third of the games at least."""
        return [agent for agent in self.agents if len(self.games_of(agent)) * LEAST_SHARE >= len(self.scales)]

    @cached_property
    def common(self) -> list[str]:
        """The games that all compared agents have records of."""
        return self.shared(*self.compared)

    def shared(self, *agents: str) -> list[str]:
        """The games that all these agents have records of."""
        return [game for game in self.scales if agents and all(self.runs(agent, game) for agent in agents)]

    def runs(self, agent: str, game: str) -> list[Record]:
        """An agent's records of a game."""
        return [each for each in self.records if (each.agent, each.game) == (agent, game)]

    def scores(self, agent: str, games: Sequence[str], evaluation: str | None = None) -> list[np.ndarray]:
        """Normalised scores of an agent's final evaluations (runs,), for each game."""
        return [
            np.array([self.scales[game].normalised(self.score(run, evaluation)) for run in self.runs(agent, game)])
            for game in games
        ]

    def score(self, run: Record, evaluation: str | None = None) -> float:
        """The score of a run, as its game counts it now. Raises: as Record.score."""
        return run.score(self.scales[run.game].statistic, evaluation)

    def with_tests(self) -> list[str]:
        """The games with test levels."""
        tested = {each.game for each in self.records if TEST in each.evaluations}
        return [game for game in self.scales if game in tested]

    def end(self, game: str, column: str, agents: Sequence[str]) -> float:
        """The steps or seconds to which all runs of some agents on a game have come, at least."""
        return min(last(run, column) for agent in agents for run in self.runs(agent, game))

    def curves(self, agent: str, games: Sequence[str], column: str, at: np.ndarray) -> list[np.ndarray]:
        """Normalised scores of an agent's training episodes at some steps or seconds (runs, points), for each game;
        before the first episodes that of random play."""
        found = []
        for game in games:
            scale, rows = self.scales[game], []
            for run in self.runs(agent, game):
                y = run.curve.get(scale.statistic, [])
                x = run.curve[column][: len(y)]
                rows.append(np.interp(at, [0.0, *x], [0.0, *map(scale.normalised, y)]))
            found.append(np.array(rows))
        return found

    def at_equal(self, agent: str, other: str, games: Sequence[str], column: str) -> list[np.ndarray]:
        """Normalised scores of an agent's training episodes (runs,), of each game at the step or second where the
        first of its runs or of another agent's ends."""
        ends = [np.array([self.end(game, column, (agent, other))]) for game in games]
        return [self.curves(agent, [game], column, end)[0][:, 0] for game, end in zip(games, ends, strict=True)]

    def solved(self, agent: str, game: str) -> bool:
        """True if the mean of an agent's runs is what counts as solved."""
        scale = self.scales[game]
        return float(self.scores(agent, [game])[0].mean()) >= scale.normalised(scale.solved)

    def beyond_random(self, agent: str, game: str, times: float = 10) -> bool:
        """True if the mean of an agent's runs is beyond `times` that of random play, or solved."""
        scale, mean = self.scales[game], np.mean([self.score(run) for run in self.runs(agent, game)])
        return self.solved(agent, game) or bool(scale.played > scale.random >= 0 and mean > times * scale.random)


def last(run: Record, column: str) -> float:
    """The steps or seconds at the end of a run; its curve may end before, with the last episode."""
    return run.steps if column == STEPS else run.seconds
