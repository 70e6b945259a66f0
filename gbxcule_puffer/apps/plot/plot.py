"""Learning curves: reward, success, done rate, distance, entropy and speed of runs against env steps, as one PNG; with
the statistics of Tasks, and the success of each stage where a run has several."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.errors import ConfigError, printable
from gbxcule_puffer.files import new_file, parse_json, read_object, read_text
from gbxcule_puffer.pictures import png_target
from gbxcule_puffer.trainers.curves import is_number
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS, RUN
from gbxcule_puffer.trainers.runlog import LIMIT

PANELS = {
    "charts/episodic_return": "reward of an episode",
    "charts/success_rate": "success rate",
    "env/done_rate": "done rate (goals a step)",
    "env/dist_p50": "distance to the goal, median",
    "losses/entropy": "entropy of the policy (nats)",
    "charts/SPS": "env steps a second",
}
STAGE = re.compile(r"env/stage/([A-Za-z0-9._-]+)/success")
STATISTIC = re.compile(r"env/task/(.{1,80})", re.DOTALL)
MOST_OTHERS = 60  # stages and statistics
# Flags in which the seeds of one experiment may differ.
NOT_OF_THE_EXPERIMENT = ("seed", "run_dir", "resume", "keep_checkpoints", "checkpoint_every", "media_every", "device")
MOST_NAMED = 4  # flags in a label
MOST_LETTERS = 40  # of a flag's value in a label
GRID = 400  # points that the seeds of an experiment are compared at
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # distinct for everyone


@dataclass
class RunCurves:
    """A run's flags, and steps and values of each of PANELS, each Task's statistic and each stage's success."""

    path: Path
    config: dict[str, Any]
    curves: dict[str, tuple[np.ndarray, np.ndarray]]


def read_run(path: Path) -> RunCurves:
    """Reads a run's folder.

    Raises: StateError for files that no run wrote; ConfigError if it has no records.
    """
    points: dict[str, list[tuple[float, float]]] = {tag: [] for tag in PANELS}
    for line in io.StringIO(read_text(path / METRICS, RUN, LIMIT)):
        record = parse_json(line, path / METRICS, RUN)
        if not isinstance(record, dict) or not is_number(record.get("global_step")):
            raise RUN.bad(path / METRICS, "is damaged (a record has no global_step)")
        for tag, value in record.items():
            if is_number(value) and (tag in PANELS or _title(tag)):
                points.setdefault(tag, []).append((record["global_step"], value))
    if (others := len(points) - len(PANELS)) > MOST_OTHERS:
        fault = f"has {others:,} stages and statistics, at most {MOST_OTHERS} can be drawn"
        raise RUN.bad(path / METRICS, fault)
    manifest = path / MANIFEST
    config = read_object(manifest, RUN).get("config") if manifest.exists() else None
    if not isinstance(config, dict):
        config = {"run": path.name}
    curves = {}
    for tag, found in points.items():
        if found:
            own_steps, values = np.array(found, float).T
            curves[tag] = own_steps, values
    if not curves:
        raise ConfigError(f"run {path} has no record of its training yet: wait for the first, or train longer")
    return RunCurves(path, config, curves)


def _title(tag: str) -> str | None:
    """The title of a panel that is not one of PANELS: a Task's statistic, or a stage's success."""
    if statistic := STATISTIC.fullmatch(tag):
        return statistic[1]
    return f"success of {stage[1]}" if (stage := STAGE.fullmatch(tag)) else None


def experiments(runs: Sequence[RunCurves]) -> dict[str, list[RunCurves]]:
    """Runs that differ only in their seed, grouped under a label with the flags that distinguish them from the
    others."""
    groups: dict[str, list[RunCurves]] = {}
    for run in runs:
        config = {name: value for name, value in run.config.items() if name not in NOT_OF_THE_EXPERIMENT}
        groups.setdefault(json.dumps(config, sort_keys=True), []).append(run)
    configs = [json.loads(key) for key in groups]
    names = sorted({name for config in configs for name in config})
    differing = [name for name in names if len({json.dumps(config.get(name)) for config in configs}) > 1]
    labelled = {}
    for config, members in zip(configs, groups.values(), strict=True):
        what = ", ".join(f"{name} {_short(config.get(name))}" for name in differing)
        if not what or len(differing) > MOST_NAMED:  # other trainers have other flags altogether
            folder = members[0].path.resolve().name
            what = folder if len(members) == 1 else folder.rstrip("0123456789_-") or folder  # without seed and time
        labelled[what if len(members) == 1 else f"{what} ({len(members)} seeds: median and range)"] = members
    return labelled


def _short(value: object) -> str:
    text = Path(value).stem if isinstance(value, str) and "/" in value else str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


def _plain(text: str) -> str:
    """Text as a label in which matplotlib finds no formula."""
    return printable(text).replace("$", r"\$")


def smoothed(values: np.ndarray, width: int) -> np.ndarray:
    """Centred means over `width` records; over fewer at the ends."""
    width = min(width, len(values))
    ones = np.ones(width)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def spread(curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, ...]:
    """(steps, minimum, median, maximum) of several seeds; after the end of one, of the others."""
    steps = np.linspace(min(s[0] for s, _ in curves), max(s[-1] for s, _ in curves), GRID)
    rows = np.ma.masked_invalid([np.interp(steps, s, v, left=np.nan, right=np.nan) for s, v in curves])
    return steps, rows.min(0), np.ma.median(rows, 0), rows.max(0)


def draw(paths: Sequence[Path], out: Path, smooth: int = 4) -> None:
    """Draws the runs of `paths` into the PNG `out`; the seeds of an experiment as their median and range.

    Raises: ConfigError for a name that does not end with .png, a folder without records, or without matplotlib;
    StorageError.
    """
    out = png_target(out)
    runs = [read_run(path) for path in paths]
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("plot needs matplotlib: pip install matplotlib") from None
    others = {tag: title for run in runs for tag in run.curves if (title := _title(tag)) is not None}
    panels = PANELS | dict(sorted(others.items(), key=lambda item: STAGE.fullmatch(item[0]) is not None))
    panels = {tag: title for tag, title in panels.items() if any(tag in run.curves for run in runs)}
    rows = -(-len(panels) // 3)
    figure = Figure(figsize=(11, 3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 3, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    top = max(steps[-1] for run in runs for steps, _ in run.curves.values())
    unit, unit_name = (1e6, "million env steps") if top >= 2e6 else (1e3, "thousand env steps")
    groups = experiments(runs)
    for axis, (tag, title) in zip(axes.flat, panels.items(), strict=False):
        for number, (label, members) in enumerate(groups.items()):
            curves = [(s, smoothed(v, smooth)) for run in members if tag in run.curves for s, v in [run.curves[tag]]]
            colour = COLOURS[number % len(COLOURS)]
            if len(curves) > 1:
                steps, least, middle, greatest = spread(curves)
                axis.fill_between(steps / unit, least, greatest, color=colour, alpha=0.2, linewidth=0)
                axis.plot(steps / unit, middle, color=colour, label=_plain(label))
            elif curves:
                axis.plot(curves[0][0] / unit, curves[0][1], color=colour, label=_plain(label))
        axis.set_title(_plain(title), fontsize=10)
        axis.set_xlabel(unit_name, fontsize=8)
        axis.tick_params(labelsize=8)
        axis.set_xlim(0, top / unit or 1)
        low, high = axis.get_ylim()
        axis.set_ylim(min(0, low), high + 0.05 * abs(high))
        axis.grid(alpha=0.2)
        axis.spines[["top", "right"]].set_visible(False)
    lines = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    columns = min(3, len(lines))
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
    with new_file(out, "give another --out") as file:
        figure.savefig(file, format="png", dpi=110)
