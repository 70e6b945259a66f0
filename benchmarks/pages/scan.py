"""Writer of the figures of docs/scan.md and docs/lab/scan.md: `python -m benchmarks.pages.scan`.

Read is benchmarks/results/cpu/scan.json, as `python -m benchmarks.scan` writes it. The parts between two marks are
replaced; what stands around them is written by hand.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.pages.performance import RESULTS, between, markdown
from benchmarks.workload import ROOT
from gbxcule_puffer.files import write_text

RECORD = RESULTS / "cpu" / "scan.json"
PAGE, LAB = ROOT / "docs" / "scan.md", ROOT / "docs" / "lab" / "scan.md"
BEGIN, END = "<!-- {part}, by python -m benchmarks.pages.scan -->\n", "<!-- end of {part} -->\n"
SURE = 0.9  # confidence of a candidate that needs no checking, as docs/scan.md says
HALVES = ("tuned on", "not tuned on")
Record = dict[str, Any]


def figures(record: Record) -> str:
    """docs/scan.md: how often a sure candidate and the best one of each kind are right."""
    sure = next(each for each in record["calibration"] if each["from"] == SURE)
    kinds = of_kinds(record)
    by_games = sorted(kinds, key=lambda kind: -sum(each["games"] for each in kinds[kind]))
    rows = [[kind, *(total(kinds[kind], name) for name in ("games", "first"))] for kind in by_games]
    right = f"{sure['right']} of {sure['candidates']}"
    return (
        f"In {len(record['games'])} free games whose bytes are known, {right} candidates above {SURE:.0%} were right.\n"
        "The best candidate of each kind ([lab](lab/scan.md)):\n\n"
        + markdown(["kind", "games that have it", "best candidate right"], rows)
        + "\n"
    )


def speed(record: Record) -> str:
    """docs/scan.md: what a scan takes."""
    seconds, most = seconds_of(record), max(each["memory_mib"] for each in record["games"])
    return (
        f"A scan takes {min(seconds):.0f} to {max(seconds):.0f} s on one CPU core, {median(seconds):.0f} s in the "
        f"median, and up to {most / 1024:.1f} GB of memory.\n"
    )


def tables(record: Record) -> str:
    """docs/lab/scan.md: precision and recall of each kind, by half; and how often a confidence is right."""
    rows = []
    for kind, halves in of_kinds(record).items():
        names = ("games", "first", "any", "likely", "likely_right")
        rows.append([kind, *(" + ".join(str(each[name]) for each in halves) for name in names)])
    heads = ["kind", "games that have it", "best candidate right", "any candidate right"]
    sure = [
        [f"{each['from']:.0%} to {each['to']:.0%}", str(each["candidates"]), str(each["right"])]
        for each in record["calibration"]
    ]
    seconds, sizes = seconds_of(record), [each["memory_mib"] / 1024 for each in record["games"]]
    halves = [sum(each["half"] == half for each in record["games"]) for half in HALVES]
    return (
        f"{len(record['games'])} games at {record['git_sha']}; {halves[0]} of them the rules were tuned on, the first "
        f"figure of each pair, {halves[1]} not.\n\n"
        + markdown([*heads, "candidates at least 50% sure", "of these right"], rows)
        + "\n\n"
        + markdown(["`sure` of a candidate", "candidates", "right"], sure)
        + f"\n\nWith 64 Game Boys, a scan took {min(seconds):.0f} to {max(seconds):.0f} s on one core, "
        f"{median(seconds):.0f} s in the median, and {min(sizes):.1f} to {max(sizes):.1f} GB of memory.\n"
    )


def of_kinds(record: Record) -> dict[str, list[Record]]:
    """The totals of each kind, one for each half of the games."""
    kinds = dict.fromkeys(each["kind"] for each in record["kinds"])
    return {
        kind: [each for half in HALVES for each in record["kinds"] if (each["kind"], each["half"]) == (kind, half)]
        for kind in kinds
    }


def total(halves: Sequence[Record], name: str) -> str:
    """A figure of both halves."""
    return str(sum(each[name] for each in halves))


def seconds_of(record: Record) -> list[float]:
    """The seconds of each game."""
    return [each["seconds"] for each in record["games"]]


def pages() -> dict[str, str]:
    """Both pages with the figures of the record, by path."""
    record = json.loads(RECORD.read_text())
    page = PAGE.read_text()
    for part, text in (("figures", figures(record)), ("speed", speed(record))):
        page = renewed(page, part, text)
    return {str(PAGE): page, str(LAB): renewed(LAB.read_text(), "tables", tables(record))}


def renewed(page: str, part: str, text: str) -> str:
    """A page with another text in one of its parts."""
    return between(page, BEGIN.format(part=part), f"\n{text}\n", END.format(part=part))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for path, text in pages().items():
        write_text(path, text)


if __name__ == "__main__":
    main()
