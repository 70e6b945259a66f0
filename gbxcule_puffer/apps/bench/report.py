"""The Markdown report and the scaling plot of a benchmark's records."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from gbxcule_puffer.apps.bench.live import cells, contender_label, game
from gbxcule_puffer.apps.bench.records import Record
from gbxcule_puffer.apps.bench.summary import TITLES, tables
from gbxcule_puffer.files import new_file, write_text

HEADS = (
    *("rom", "stage", "contender", "envs", "env steps/s", "spread", "x realtime", "ms/step", "ratio", "PCs"),
    "pictures",
)
GAMES_IN_LEGEND = 30  # one below the other
TEXT = """\
Env steps per second over all envs, the median of the repeats; spread: half the range of the repeats. A step is
{frames_per_step} frames, its button is released after {release_after_frames}. The contenders ran in turns, in one
session, from the same state; env i of each took the same actions. Ratio: to the contender in the line below. PCs,
pictures: different program counters and screens over all envs after the last step."""


def write_report(folder: Path, records: Sequence[Record], command: str) -> Path:
    """Writes report.md and scaling.png into `folder`; returns the report's path."""
    plot(records, folder / "scaling.png")
    path = folder / "report.md"
    write_text(path, "\n".join(_lines(records, command)) + "\n")
    return path


def _lines(records: Sequence[Record], command: str) -> list[str]:
    first = records[0]
    lines = ["# Benchmark", "", f"    {command}", "", TEXT.format_map(first), ""]
    for title, rows in tables(records, first["backend"]).items():
        lines += [f"{title[0].upper()}{title[1:]}:", "", _row(TITLES), _row(["---"] + ["---:"] * (len(TITLES) - 1))]
        lines += [*(_row(row) for row in rows), ""]
    lines += [_row(HEADS), _row(["---"] * 3 + ["---:"] * (len(HEADS) - 3))]
    lines += [_row(cells(record)) for record in records]
    lines += ["", "![Env steps per second by number of envs](scaling.png)", ""]
    for name, device, cores in sorted({(r["backend"], r["device_name"], r["cores"]) for r in records}):
        on_cpu = "core" in device
        lines.append(f"- {name}: {device}" + (f"; {cores} used" if on_cpu else ""))
    settings = ("model", "sound", "obs", "stack_k", "actions", "action_codec", "start_state")
    for name in (*settings, "warmup_steps", "measured_steps", "repeats"):
        values = sorted({str(record[name]) for record in records})
        lines.append(f"- {name}: {', '.join(values)}")
    lines.append("- " + ", ".join(f"{name} {number}" for name, number in first["versions"].items()))
    lines.append(f"- commit {first['git_sha']}")
    return lines


def _row(values: Sequence[str]) -> str:
    return "| " + " | ".join(values) + " |"


def plot(records: Sequence[Record], path: Path) -> None:
    """Env steps per second over the number of envs, a colour for each game; what they were compared with, dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    main = records[0]["backend"]
    games = list(dict.fromkeys((game(record), record["stage"]) for record in records))
    several_stages = len({stage for _, stage in games}) > 1
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for number, (name, stage) in enumerate(games):
        color = f"C{number % 10}"
        own = [r for r in records if (game(r), r["stage"]) == (name, stage)]
        label = f"{name}, {stage}" if several_stages else name
        ours = sorted((r for r in own if r["backend"] == main), key=lambda r: r["num_envs"])
        below = [r["sps"] - r["sps_min"] for r in ours]
        above = [r["sps_max"] - r["sps"] for r in ours]
        sizes, rates = [r["num_envs"] for r in ours], [r["sps"] for r in ours]
        axes.errorbar(sizes, rates, (below, above), color=color, marker="o", capsize=3, label=label)
        others = [r for r in own if r["backend"] != main]
        if others:
            axes.axhline(statistics.median(r["sps"] for r in others), color=color, linestyle="--", linewidth=1)
    sizes = sorted({r["num_envs"] for r in records if r["backend"] == main})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(_minor_label))
    axes.set_xlabel("environments")
    axes.set_ylabel("env steps per second")
    axes.grid(True, which="both", alpha=0.25)
    axes.set_title(_title(records), fontsize=10)
    columns = 1 + len(games) // GAMES_IN_LEGEND
    figure.legend(loc="outside right upper", fontsize=9 if columns == 1 else 5, ncols=columns)
    with new_file(path) as file:
        figure.savefig(file, format="png", dpi=120)
    pyplot.close(figure)


def _minor_label(value: float, _: int) -> str:
    """Only 2 and 5 times a power of ten are labelled between the powers."""
    digit = f"{value:.0f}"[:1]
    return f"{value:,.0f}" if digit in "25" else ""


def _title(records: Sequence[Record]) -> str:
    first = records[0]
    text = f"{first['backend']} on {first['device_name']}"
    other = next((record for record in records if record["backend"] != first["backend"]), None)
    if other is not None:
        label = contender_label(other["backend"], other["vec_backend"])
        text += f"\ndashed: {label}, {other['num_envs']} envs on {other['device_name']}, {other['cores']} used"
    return text
