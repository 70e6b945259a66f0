"""The comparison of agents in pictures: aggregates over all games, and the curves of each game."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from gbxcule_puffer.apps.arena.aggregates import bootstrap, iqm, profile
from gbxcule_puffer.apps.arena.records import SECONDS, STEPS
from gbxcule_puffer.apps.arena.results import POINTS, Results, last
from gbxcule_puffer.apps.plot.plot import COLOURS
from gbxcule_puffer.files import new_file

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PALE = "#333333", "#999999"
COLUMNS = 4  # of the games' panels
LEGEND = "seconds of training; dots: final evaluation; dashed: solved, dotted: random play"
STYLE = {
    "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": PALE, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.6,
    "legend.frameon": False, "lines.linewidth": 1.8,
}  # fmt: skip


def draw_aggregates(results: Results, out: Path) -> None:
    """IQMs with their intervals, performance profiles, and IQMs over steps and seconds, as one PNG."""
    plt, games = pyplot(), results.common
    with plt.rc_context(STYLE):
        figure, ((bars, profiles), (steps, seconds)) = plt.subplots(2, 2, figsize=(10, 6.6), layout="constrained")
        top, right = 1.0, 0.1
        for row, agent in enumerate(results.compared):
            colour, scores = colour_of(results, agent), results.scores(agent, games)
            low, high = bootstrap(iqm, scores)
            right = max(right, high)
            bars.barh(row, high - low, left=low, height=0.55, color=colour, alpha=0.35, lw=0)
            bars.plot([iqm(scores)] * 2, [row - 0.28, row + 0.28], color=colour, lw=2.5)
            top = max(top, *(np.quantile(runs, 0.9) for runs in scores))
        bars.set_yticks(range(len(results.compared)), results.compared)
        bars.set_ylim(len(results.compared) - 0.4, -0.6)
        bars.set_xlim(min(0.0, bars.get_xlim()[0]), 1.1 * right)
        bars.grid(axis="y", visible=False)
        bars.set(title="After the training", xlabel="normalised score, IQM and 95 % interval")
        thresholds = np.linspace(0, min(top, 3.0), POINTS)
        for agent in results.compared:
            scores = results.scores(agent, games)
            band = bootstrap(partial(profile, thresholds=thresholds), scores)
            _line(profiles, agent, colour_of(results, agent), thresholds, profile(scores, thresholds), band)
        profiles.set(title="Performance profile", xlabel="normalised score", ylabel="share of runs above it")
        _over(results, steps, STEPS)
        steps.set(title="Equal steps", xlabel="million steps", ylabel="normalised score, IQM")
        _over(results, seconds, SECONDS)
        seconds.set(title="Equal seconds", xlabel="seconds of training", ylabel="normalised score, IQM")
        profiles.legend()
        save(figure, out)


def _over(results: Results, axes: Axes, column: str) -> None:
    """The IQMs of the training's own episodes, up to where half of an agent's runs have ended; those that have keep
    their last score."""
    games = results.common
    for agent in results.compared:
        runs = [run for game in games for run in results.runs(agent, game)]
        if not runs:
            continue
        at = np.linspace(0, np.median([last(run, column) for run in runs]), POINTS)
        curves = results.curves(agent, games, column, at)
        _line(
            axes,
            agent,
            colour_of(results, agent),
            at / (1e6 if column == STEPS else 1),
            iqm(curves),
            bootstrap(iqm, curves),
        )


def draw_games(results: Results, out: Path) -> None:
    """A panel for each game: the score of the training's own episodes over seconds, median and range of the seeds, and
    the mean of the final evaluations, beside random play and what counts as solved, as one PNG."""
    plt, games = pyplot(), list(results.scales)
    rows = -(-len(games) // COLUMNS)
    with plt.rc_context(STYLE):
        size = {"figsize": (2.9 * min(COLUMNS, len(games)), 2.2 * rows + 0.5), "layout": "constrained"}
        figure, panels = plt.subplots(rows, min(COLUMNS, len(games)), squeeze=False, **size)
        for game, axes in zip(games, panels.flat, strict=False):
            scale = results.scales[game]
            for value, style in ((scale.solved, (0, (4, 3))), (scale.random, (0, (1, 2)))):
                axes.axhline(value, color=INK, ls=style, lw=1)
            for agent in results.agents:
                _runs(results, axes, agent, game)
            axes.set_title(game)
        for axes in panels.flat[len(games) :]:
            axes.set_axis_off()
        handles: dict[str, Artist] = {}
        for axes in panels.flat:
            handles |= {label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
        figure.supxlabel(LEGEND, fontsize=9, color=INK)
        save(figure, out)


def _runs(results: Results, axes: Axes, agent: str, game: str) -> None:
    """An agent's runs of a game: the median and the range of their curves, and a dot for their final evaluations."""
    runs, scale, colour = results.runs(agent, game), results.scales[game], colour_of(results, agent)
    if not runs:
        return
    end = np.median([last(run, SECONDS) for run in runs])
    if any(run.curve[SECONDS] for run in runs):  # else no episode has ended
        at = np.linspace(0, end, POINTS)
        own = scale.random + (scale.played - scale.random) * results.curves(agent, [game], SECONDS, at)[0]
        _line(axes, agent, colour, at, np.median(own, 0), np.array([own.min(0), own.max(0)]))
    axes.plot(end, np.mean([results.score(run) for run in runs]), "o", color=colour, ms=4, clip_on=False, zorder=3)


def colour_of(results: Results, agent: str) -> str:
    """An agent's colour in all pictures."""
    return COLOURS[results.agents.index(agent) % len(COLOURS)]


def _line(axes: Axes, agent: str, colour: str, x: np.ndarray, y: np.ndarray, band: np.ndarray) -> None:
    axes.fill_between(x, *band, color=colour, alpha=0.16, lw=0)
    axes.plot(x, y, color=colour, label=agent)


def pyplot() -> ModuleType:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save(figure: Figure, out: Path) -> None:
    with new_file(out) as file:
        figure.savefig(file, format="png", dpi=120)
    figure.clear()
