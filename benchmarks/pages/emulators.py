"""The table of docs/lab/emulators.md from its record: `python -m benchmarks.pages.emulators`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pages.performance import between
from benchmarks.workload import ROOT
from gbxcule_puffer.files import write_text

RECORD = ROOT / "benchmarks/results/cpu/emulators.json"
PAGE = ROOT / "docs/lab/emulators.md"
BEGIN, END = "<!-- emulators -->\n\n", "\n\n<!-- end of emulators -->"


def page(text: str, record: Mapping[str, Any]) -> str:
    """The page's text with the table of this record."""
    head = f"{record['cpu']}, {record['date']}, load average {record['load_average']:.0f} when it began:"
    return between(text, BEGIN, f"{head}\n\n{table(record['rows'])}", END)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table: a line for each emulator, a column for each ROM."""
    roms = list(dict.fromkeys(row["rom"] for row in rows))
    lines = [f"| emulator | Game Boys | {' | '.join(roms)} |", "| --- | ---: |" + " ---: |" * len(roms)]
    for emulator, size in dict.fromkeys((row["emulator"], row["num_envs"]) for row in rows):
        found = {row["rom"]: row for row in rows if (row["emulator"], row["num_envs"]) == (emulator, size)}
        cells = [f"{found[rom]['frames_per_second']:,} ({found[rom]['ratio']:.2f})" for rom in roms]
        lines.append(f"| `{emulator}` | {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Writes the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_text(PAGE, page(PAGE.read_text(), json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main()
