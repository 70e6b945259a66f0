"""Summary of many games: a table sorted by ratio or by speed, with geometric means."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gbxcule_puffer.apps.bench.live import game
from gbxcule_puffer.apps.bench.records import Record

TITLES = ("game", "steps/s", "beside it", "ratio", "95 % interval", "instructions/step", "skipped")


def tables(records: Sequence[Record], name: str) -> dict[str, list[list[str]]]:
    """Title -> rows of cells, one table for each stage and number of envs with at least two games: records of `name`,
    and a last row with their geometric means."""
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record["backend"] == name:
            groups.setdefault((record["stage"], record["num_envs"]), []).append(record)
    found = {}
    for (stage, num_envs), group in groups.items():
        if len({record["rom_sha256"] for record in group}) > 1:
            rows = [_cells(record) for record in sorted(group, key=lambda r: (r.get("ratio", 0), r["sps"]))]
            found[f"{stage}, {num_envs:,} envs"] = [*rows, _means(group)]
    return found


def text(title: str, rows: Sequence[Sequence[str]], titles: Sequence[str] = TITLES) -> str:
    """A table for the terminal."""
    lines = [titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    aligned = (
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    )
    return "\n".join([title, *("  ".join(line).rstrip() for line in aligned)])


def _cells(record: Record) -> list[str]:
    """A game's row."""
    instructions = record.get("instructions_a_step_mean", 0)
    share = record.get("skipped_a_step_mean", 0) / instructions if instructions else 0
    ratio = ["", "", ""]
    if "ratio" in record:
        ratio = [
            f"{record['sps'] / record['ratio']:,.0f}",
            f"{record['ratio']:.2f}",
            f"{record['ratio_low']:.2f} to {record['ratio_high']:.2f}",
        ]
    counts = [f"{instructions:,.0f}", f"{100 * share:.0f} %"] if instructions else ["", ""]
    return [game(record), f"{record['sps']:,.0f}", *ratio, *counts]


def _means(group: Sequence[Record]) -> list[str]:
    """The row of geometric means."""
    mean = statistics.geometric_mean
    cells = [f"geometric mean of {len(group)}", f"{mean(record['sps'] for record in group):,.0f}", "", "", "", "", ""]
    if all("ratio" in record for record in group):
        cells[2] = f"{mean(record['sps'] / record['ratio'] for record in group):,.0f}"
        cells[3] = f"{mean(record['ratio'] for record in group):.2f}"
    return cells
