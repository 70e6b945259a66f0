"""The table of docs/lab/long-games.md and its picture of milestones, from records of training.long_game.

python -m benchmarks.pages.long_game RECORD.json --out PICTURE.png
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gbxcule_puffer.files import new_file
from gbxcule_puffer.games import load_game

FULL = "all"  # the variant from which the others differ in one thing, whose seeds are drawn in black
FIRST = {"steps": 0.2, "seconds": 2.0}  # million steps and seconds, where the pictures begin


def reached(row: dict[str, Any], steps: float) -> int:
    """Milestones of a run after this many steps."""
    return sum(step <= steps for _, step, _ in row["milestones"])


def table(rows: Sequence[dict[str, Any]], marks: Sequence[int]) -> str:
    """A Markdown table: a line for each run, with its milestones after each number of `marks`."""
    lines = [f"| settings | seed | steps/s | {' | '.join(f'{mark / 1e6:g} M' for mark in marks)} | steps | the last |"]
    lines.append("| --- |" + " ---: |" * (len(marks) + 3) + " --- |")
    for row in rows:
        counts = [reached(row, mark) if row["steps"] >= 0.97 * mark else "" for mark in marks]
        last = max(row["milestones"], key=lambda each: each[1])[0] if row["milestones"] else "none"
        cells = [row["variant"], row["seed"], f"{row['steps_per_second'] or 0:,}", *counts]
        lines.append(
            f"| {' | '.join(map(str, cells))} | {row['steps'] / 1e6:.0f} M, {len(row['milestones'])} | {last} |"
        )
    return "\n".join(lines)


def draw(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """Milestones over steps and over seconds, a line for each run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    others = list(dict.fromkeys(row["variant"] for row in rows if row["variant"] != FULL))
    ways = {"env steps, millions": (1, 1e6, "steps"), "seconds of training": (2, 1, "seconds")}
    for axis, (label, (part, unit, end)) in zip(axes, ways.items(), strict=True):
        known = set[str]()
        for row in rows:
            found = sorted(each[part] / unit for each in row["milestones"])
            x, y = [FIRST[end], *found, row[end] / unit], [*range(len(found) + 1), len(found)]
            name = row["variant"]
            style = {"color": "black", "lw": 2} if name == FULL else {"color": f"C{others.index(name)}", "lw": 1.3}
            axis.step(x, y, where="post", label=None if name in known else name, **style)
            known.add(name)
        axis.set_xscale("log")
        axis.set_xlim(left=FIRST[end])
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel(label)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
    axes[0].set_ylabel("milestones")
    axes[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    with new_file(out) as file:
        figure.savefig(file, format="png", dpi=110)


def main() -> None:
    """Print the table, and draw the picture where it is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.pages.long_game", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--game", default="gateward", help="only its milestones count, not those that a copy adds")
    parser.add_argument("--marks", default="10,40,100", help="millions of steps, with commas (default: 10,40,100)")
    parser.add_argument("--out", type=Path, help="PNG file")
    args = parser.parse_args()
    rows = [row for path in args.records for row in json.loads(path.read_text())["rows"] if "error" not in row]
    counts = load_game(args.game).terms.milestones
    for row in rows:
        row["milestones"] = [each for each in row["milestones"] if each[0] in counts]
    print(table(rows, [round(float(mark) * 1e6) for mark in args.marks.split(",")]))
    if args.out is not None:
        draw(rows, args.out)


if __name__ == "__main__":
    main()
