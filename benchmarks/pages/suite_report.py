"""The table and the curves of docs/lab/suite.md from records of benchmarks.training.suite.

    python -m benchmarks.pages.suite_report benchmarks/results/h200/suite_{orchard,storeroom}_*.json --curves curves.png

prints a row for each game, script and number of training levels: the mean over the seeds, and the least and the
greatest of them, of the normalised score and the success rate.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gbxcule_puffer.files import new_file
from gbxcule_puffer.suite import GAMES

Rows = list[dict[str, Any]]
HEAD = (
    "| game | script | levels | seeds | seconds | steps "
    "| test score, sampled | test score, greedy | training score | test success |"
    "\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def grouped(rows: Rows) -> dict[tuple[str, str, int], Rows]:
    """The rows of trained policies that differ in their seed alone, by game, script and training levels."""
    found: dict[tuple[str, str, int], Rows] = {}
    for row in rows:
        if "train" in row:
            found.setdefault((row["game"], row["script"], row["levels"]), []).append(row)
    return dict(sorted(found.items()))


def spread(rows: Rows, value: Callable[[dict[str, Any]], float]) -> str:
    """Mean of the rows' values, with the least and the greatest behind it."""
    values = [value(row) for row in rows]
    return f"{sum(values) / len(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(rows: Rows) -> str:
    """The rows as a Markdown table."""
    lines = [HEAD]
    for (game, script, levels), runs in grouped(rows).items():
        steps = sum(run["steps"] for run in runs) / len(runs)
        cells = [game.upper(), f"`{script}`", f"{levels:,}", str(len(runs)), f"{runs[0]['seconds']:g}", f"{steps:,.0f}"]
        cells.append(spread(runs, lambda run: run["test"]["sampled"]["score"]))
        cells.append(spread(runs, lambda run: run["test"]["greedy"]["score"]))
        cells.append(spread(runs, lambda run: run["train"]["sampled"]["score"]))
        cells.append(spread(runs, lambda run: run["test"]["sampled"]["success_rate"]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_curves(rows: Rows, out: Path) -> None:
    """Normalised return of the training episodes over wall seconds, a panel a game, a line a run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = grouped(rows)
    games = [game for game in GAMES if any(game == name for name, _, _ in groups)]
    figure, panels = plt.subplots(1, len(games), figsize=(4 * len(games), 3), squeeze=False, sharey=True)
    styles = sorted({(script, levels) for _, script, levels in groups})
    alike = len({levels for _, levels in styles}) == 1
    for game, axes in zip(games, panels[0], strict=True):
        for (name, script, levels), runs in groups.items():
            for number, run in enumerate(runs if name == game else ()):
                seconds = [point[1] for point in run["curve"]]
                scores = [GAMES[game].normalised(point[2]) for point in run["curve"]]
                label = script if alike else f"{script}, {levels:,} levels"
                color = f"C{styles.index((script, levels))}"
                axes.plot(seconds, scores, color=color, lw=1.2, label=None if number else label)
        axes.axhline(0, color="gray", ls="--", lw=1)
        axes.axhline(1, color="gray", ls=":", lw=1)
        axes.set_title(game.upper(), fontsize=10)
        axes.set_xlabel("seconds of training")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
        axes.legend(frameon=False, fontsize=7)
    panels[0][0].set_ylabel("normalised return")
    figure.tight_layout()
    with new_file(out) as file:
        figure.savefig(file, format="png", dpi=110)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table, and draws the curves where they are asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.pages.suite_report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--curves", type=Path, help="PNG file for the curves")
    parser.add_argument("--game", default=",".join(GAMES), help="games, with commas between them (default: all)")
    args = parser.parse_args(argv)
    rows = [row for path in args.records for row in json.loads(path.read_text())["suite"]]
    rows = [row for row in rows if row["game"] in args.game.split(",")]
    print(table(rows))
    if args.curves:
        draw_curves(rows, args.curves)
    return 0


if __name__ == "__main__":
    sys.exit(main())
