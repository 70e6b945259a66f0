"""The comparison of agents in Markdown: tables from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gbxcule_puffer.apps.arena.aggregates import Scores, bootstrap, iqm, probability_of_improvement
from gbxcule_puffer.apps.arena.records import SECONDS, STEPS, TEST, TRAIN
from gbxcule_puffer.apps.arena.results import Results

HEAD = """Scores are normalised: 0 is random play, 1 is the played episode. The first table compares the agents that
have records of a third of the games or more, over the {} games that all of them have played.

- *IQM* is the interquartile mean of all runs. In brackets stands its 95 % interval, by a stratified bootstrap, if there
  are several seeds.
- *Final* is the evaluation after the training, on test levels if the game has some.
- *Seconds* and *million steps* are medians over the runs of an agent."""

EQUAL = """Each agent beside `{0}`, after equal steps and after equal seconds: IQMs of the training's own episodes in
the games that both have, where the first of their runs of a game ends. There these episodes are still few and short,
so scores below 0 are possible."""


def report(results: Results) -> str:
    """All tables."""
    games = results.common
    parts = [HEAD.format(len(games))]
    parts.append(of_agents(results, games) if games else "No game has records of all these agents.")
    if len(results.compared) > 1:
        parts += [EQUAL.format(results.compared[0]), of_equal(results)]
    if len(results.agents) > 1:
        parts += [
            "The probability that the agent of a row beats the agent of a column, over the games that both have:",
            improvement(results),
        ]
    parts += [
        "Mean scores of the final evaluations. **Bold**: the game is solved. In brackets: the number of runs, if an "
        "agent has fewer than others have in this game.",
        of_games(results),
    ]
    if tested := results.with_tests():
        parts += ["Mean scores on the levels of the training, and on the test levels:", of_levels(results, tested)]
    if results.left_out:
        parts.append(f"Left out, because they have no scores: {', '.join(results.left_out)}.")
    return "\n\n".join(parts) + "\n"


def of_agents(results: Results, games: Sequence[str]) -> str:
    """A row for each agent."""
    rows = []
    for agent in results.agents:
        own = results.games_of(agent)
        seeds = [len(results.runs(agent, game)) for game in own]
        steps = [run.steps for game in own for run in results.runs(agent, game)]
        seconds = [run.seconds for game in own for run in results.runs(agent, game)]
        rows.append([
            f"`{agent}`",
            len(own),
            _span(seeds),
            interval(iqm, results.scores(agent, games)) if agent in results.compared else "",
            f"{np.median(seconds):.0f}",
            f"{np.median(steps) / 1e6:.2f}",
            sum(results.solved(agent, game) for game in own),
            sum(results.beyond_random(agent, game) for game in own),
        ])  # fmt: skip
    head = ["agent", "games", "seeds", "final, IQM", "seconds", "million steps", "solved", "solved, or 10 x random"]
    return table(head, rows)


def of_equal(results: Results) -> str:
    """A row for each compared agent but the best one."""
    best, *others = results.compared
    rows = []
    for agent in others:
        games, cells = results.shared(agent, best), list[object]()
        for column, unit in ((STEPS, 1e6), (SECONDS, 1.0)):
            ends = [results.end(game, column, (agent, best)) / unit for game in games]
            both = (results.at_equal(one, other, games, column) for one, other in ((agent, best), (best, agent)))
            cells += [f"{np.median(ends):.2g}", *(interval(iqm, each) for each in both)]
        rows.append([f"`{agent}`", len(games), *cells])
    head = ["agent", "games", "million steps, median", "score then", f"`{best}`"]
    return table([*head, "seconds, median", "score then", f"`{best}`"], rows)


def improvement(results: Results) -> str:
    """A row and a column for each agent."""

    def cell(one: str, other: str) -> str:
        games = results.shared(one, other)
        if one == other or not games:
            return ""
        return interval(probability_of_improvement, results.scores(one, games), results.scores(other, games))

    rows = [[f"`{one}`", *(cell(one, other) for other in results.agents)] for one in results.agents]
    return table(["agent", *(f"`{agent}`" for agent in results.agents)], rows)


def of_games(results: Results) -> str:
    """A row for each game, with the raw scores."""
    rows = []
    for game, scale in results.scales.items():
        most = max(len(results.runs(agent, game)) for agent in results.agents)
        cells: list[object] = [
            game,
            scale.statistic,
            *map(number, (scale.noop, scale.random, scale.played, scale.solved)),
        ]
        for agent in results.agents:
            runs = results.runs(agent, game)
            text = number(float(np.mean([results.score(run) for run in runs]))) if runs else ""
            text = f"**{text}**" if runs and results.solved(agent, game) else text
            cells.append(text + (f" ({len(runs)})" if 0 < len(runs) < most else ""))
        rows.append(cells)
    head = ["game", "score", "no button", "random", "played", "solved"]
    return table([*head, *(f"`{agent}`" for agent in results.agents)], rows)


def of_levels(results: Results, games: Sequence[str]) -> str:
    """A row for each game, with the raw scores on both kinds of levels."""
    rows = []
    for game in games:
        cells = [game]
        for agent in results.agents:
            runs = results.runs(agent, game)
            scores = [[results.score(run, name) for run in runs] for name in (TRAIN, TEST)] if runs else []
            cells.append(" / ".join(number(float(np.mean(each))) for each in scores))
        rows.append(cells)
    return table(["game, training / test", *(f"`{agent}`" for agent in results.agents)], rows)


def interval(function: Callable[..., Any], *scores: Scores) -> str:
    """A function of agents' scores with its interval, which single runs do not have."""
    text = f"{function(*scores):.2f}"
    if all(len(runs) == 1 for own in scores for runs in own):
        return text
    low, high = bootstrap(function, *scores)
    return f"{text} ({low:.2f}, {high:.2f})"


def number(value: float) -> str:
    """A score in three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, the first column to the left."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _span(values: Sequence[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"
