"""docs/performance.md and its plot from the records of the GPU: `python -m benchmarks.performance`.

Every bench_*.json of benchmarks/results/h200 is read, as `puffer bench` writes it, and pyboy_alone.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.bench.report import plot
from gbxcule_puffer.files import write_text

RESULTS = ROOT / "benchmarks" / "results" / "h200"
PLOT = ROOT / "docs" / "images" / "scaling.png"
IMAGE = "\n![Env steps per second by number of envs](images/scaling.png)\n"
TEXT = ROOT / "benchmarks" / "performance_text.md"
OURS = "gbxcule"


def load_records(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The records of all files, ours first; of several of the same, that of the last file."""
    records = [record for path in sorted(folder.glob("bench_*.json")) for record in json.loads(path.read_text())]
    last = {(record["backend"], record["rom"], record["num_envs"]): record for record in records}
    return sorted(last.values(), key=lambda record: record["backend"] != OURS)


def table(records: list[dict[str, Any]], alone: list[dict[str, Any]]) -> str:
    """A row for each game, a column for each number of envs; PyBoy's best figure, and the ratio to it at the largest
    number of envs that all games have."""
    ours = [record for record in records if record["backend"] == OURS]
    sizes = sorted({record["num_envs"] for record in ours})
    roms = dict.fromkeys(record["rom"] for record in ours)
    common = max(
        size for size in sizes if all(any(r["rom"] == rom and r["num_envs"] == size for r in ours) for rom in roms)
    )
    heads = [
        "game",
        *(f"{size:,} envs" for size in sizes),
        "PyBoy, all cores",
        f"ratio at {common:,}",
        "instructions a step",
    ]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for rom in roms:
        rates = {record["num_envs"]: record["sps"] for record in ours if record["rom"] == rom}
        others = [record for record in [*records, *alone] if record["backend"] != OURS]
        pyboy = max(record["sps"] for record in others if record["rom"] == rom)
        last = max((record for record in ours if record["rom"] == rom), key=lambda record: record["num_envs"])
        counts = f"{last['instructions_a_step_mean']:,.0f} (most {last['instructions_a_step_max']:,})"
        cells = [f"{rates[size]:,.0f}" if size in rates else "" for size in sizes]
        lines.append([rom, *cells, f"{pyboy:,.0f}", f"{rates[common] / pyboy:.0f}", counts])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def has_scaling(records: list[dict[str, Any]]) -> bool:
    """Whether there is anything to plot: more than one number of envs."""
    return len({record["num_envs"] for record in records if record["backend"] == OURS}) > 1


def page(records: list[dict[str, Any]]) -> str:
    """The whole page."""
    ours = [record for record in records if record["backend"] == OURS]
    alone = json.loads((RESULTS / "pyboy_alone.json").read_text())
    image = IMAGE if has_scaling(records) else ""
    commits = ", ".join(sorted({record["git_sha"] for record in ours}))
    return TEXT.read_text().format(
        table=table(records, alone), commits=commits, image=image, device=ours[0]["device_name"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "performance.md")
    args = parser.parse_args()
    records = load_records()
    write_text(args.out, page(records))
    if has_scaling(records):
        plot(records, PLOT)


if __name__ == "__main__":
    main()
