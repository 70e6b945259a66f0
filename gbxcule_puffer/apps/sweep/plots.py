"""A sweep in pictures: its history, which flags matter, the curves of its trials, and the values of each flag."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from gbxcule_puffer.apps.arena.plots import INK, PALE, STYLE, pyplot, save
from gbxcule_puffer.apps.plot.plot import COLOURS
from gbxcule_puffer.apps.sweep.search import RUNS, Plan, ranked
from gbxcule_puffer.apps.sweep.space import Dimension
from gbxcule_puffer.trainers.curves import curve_of, last_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
LEAST = 4  # whole trials for an importance that says something
WHOLE, EARLY, BEST = COLOURS[0], PALE, COLOURS[1]


def draw(plan: Plan, study: optuna.Study, out: Path) -> None:
    """Writes the PNG of a sweep in which a trial has come to its end. Marks at the foot of a panel are trials that
    ended early."""
    plt, trials = pyplot(), ranked(study)
    whole = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    rows = 1 + -(-len(plan.space) // COLUMNS)
    with plt.rc_context(STYLE):
        size = {"figsize": (3.5 * COLUMNS, 2.7 * rows), "layout": "constrained"}
        figure, panels = plt.subplots(rows, COLUMNS, squeeze=False, **size)
        early = [trial for trial in trials if trial.state == TrialState.PRUNED]
        _history(plan, study, whole, panels[0, 0])
        _foot(panels[0, 0], [trial.number for trial in early])
        _importance(study, whole, panels[0, 1])
        _curves(plan, trials, panels[0, 2])
        for axes, each in zip(panels[1:].flat, plan.space, strict=False):
            _slice(plan, each, whole, axes)
            _foot(axes, _along(each, early))
        for axes in panels.flat[COLUMNS + len(plan.space) :]:
            axes.set_axis_off()
        save(figure, out)


def _history(plan: Plan, study: optuna.Study, whole: list[FrozenTrial], axes: Axes) -> None:
    """The value of each whole trial, and the best so far."""
    by_number = sorted(whole, key=lambda trial: trial.number)
    numbers, values = [trial.number for trial in by_number], np.array([trial.value for trial in by_number])
    best = np.minimum if study.direction == StudyDirection.MINIMIZE else np.maximum
    axes.scatter(numbers, values, s=14, color=WHOLE)
    axes.plot(numbers, best.accumulate(values), color=BEST, drawstyle="steps-post")
    axes.set_xlim(-0.5, max(trial.number for trial in study.get_trials(deepcopy=False)) + 0.5)
    locator: Any = axes.xaxis.get_major_locator()
    locator.set_params(integer=True)
    axes.set(title="Trials, and the best so far", xlabel="trial", ylabel=_objective(plan))


def _importance(study: optuna.Study, whole: list[FrozenTrial], axes: Axes) -> None:
    """The share of the values' spread that each flag explains."""
    axes.set(title="Importance")
    if len(whole) < LEAST or len({trial.value for trial in whole}) < 2:
        axes.text(0.5, 0.5, f"from {LEAST} whole trials on", ha="center", transform=axes.transAxes, color=INK)
        axes.set_axis_off()
        return
    found = optuna.importance.get_param_importances(study, evaluator=optuna.importance.PedAnovaImportanceEvaluator())
    names = sorted(found, key=lambda name: found[name])
    axes.barh([name.replace("_", "-") for name in names], [found[name] for name in names], color=WHOLE, height=0.6)
    axes.set(xlabel="share (PED-ANOVA)")
    axes.grid(axis="y", visible=False)


def _curves(plan: Plan, trials: list[FrozenTrial], axes: Axes) -> None:
    """The score of each trial over its length, of the first seed."""
    for number, trial in reversed(list(enumerate(trials))):
        curve = curve_of(plan.out / RUNS / f"{trial.number}__{plan.seeds[0]}", plan.metric)
        points = [(point[plan.column], last_score(curve[: end + 1])) for end, point in enumerate(curve)]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            colour = BEST if number == 0 else WHOLE if trial.state == TrialState.COMPLETE else EARLY
            axes.plot(*zip(*known, strict=True), color=colour, lw=2 if number == 0 else 0.9)
    axes.set(title="Their curves, the best in orange", xlabel=plan.unit, ylabel="score")


def _slice(plan: Plan, each: Dimension, whole: list[FrozenTrial], axes: Axes) -> None:
    """The trials' values over one flag."""
    x = _along(each, whole)
    values = [float(trial.values[0]) for trial in whole]
    axes.scatter(x, values, s=14, color=WHOLE)
    axes.scatter(x[:1], values[:1], s=30, color=BEST, zorder=3)
    if each.choices:
        axes.set_xticks(range(len(each.choices)), [f"{choice}" for choice in each.choices], fontsize=8)
        axes.set_xlim(-0.5, len(each.choices) - 0.5)
    else:
        axes.set_xscale("log" if each.log else "linear")
        axes.set_xlim(each.low, each.high)
        axes.xaxis.set_minor_formatter("")  # labels between the powers of ten would overlap
    axes.set(title=each.name.replace("_", "-"), ylabel=_objective(plan))


def _along(each: Dimension, trials: list[FrozenTrial]) -> list[float]:
    """A flag's values in trials, as x: of a list their index."""
    values = [each.value(trial.params[each.name]) for trial in trials]
    return [each.choices.index(value) for value in values] if each.choices else values


def _foot(axes: Axes, x: list[float] | list[int]) -> None:
    axes.scatter(x, [0.02] * len(x), marker="|", s=40, color=EARLY, transform=axes.get_xaxis_transform())


def _objective(plan: Plan) -> str:
    return "score" if plan.reach is None else f"{plan.unit} to {plan.reach:g}"
