"""The table of docs/lab/versions.md, what the tests were run with, from benchmarks/results/versions.json.

    python -m benchmarks.pages.versions                                # writes the table
    python -m benchmarks.pages.versions --add RESULTS.xml "WORDS"      # first adds a run of this Python's tests

RESULTS.xml is what `pytest --junitxml RESULTS.xml` wrote; WORDS name the tests. A run replaces an earlier one of the
same words with the same Python and torch. What a reader has to know of a run, such as why some failed, is its "note" in
the record, written by hand.
"""

from __future__ import annotations

import argparse
import json
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.pages.performance import between
from benchmarks.workload import ROOT
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import write_json, write_text
from gbxcule_puffer.provenance import git_sha, versions

RECORD = ROOT / "benchmarks/results/versions.json"
PAGE = ROOT / "docs/lab/versions.md"
COLUMNS = {
    "python": "Python", "torch": "torch", "numpy": "NumPy", "warp-lang": "Warp", "gymnasium": "Gymnasium",
    "pufferlib-core": "pufferlib-core", "pyboy": "PyBoy", "jax": "JAX",
}  # fmt: skip
COUNTS = ("tests", "failures", "errors", "skipped")
BEGIN, END = "<!-- runs -->\n\n", "\n\n<!-- end of runs -->"


def page(text: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """The page's text with the table of these runs."""
    lines = [f"| {' | '.join(COLUMNS.values())} | tests | passed | skipped | failed | date |"]
    lines.append("| --- " * (len(COLUMNS) + 1) + "| ---: | ---: | ---: | --- |")
    for run in runs:
        cells = [run["versions"].get(name, "") for name in COLUMNS]
        cells += [run["tests"], *(f"{run[name]:,}" for name in ("passed", "skipped", "failed")), run["date"]]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"`{run['tests']}` with torch {run['versions']['torch']}: {run['note']}" for run in runs if "note" in run]
    return between(text, BEGIN, "\n\n".join(["\n".join(lines), *notes]), END)


def run_of(results: Path, words: str) -> dict[str, Any]:
    """A run of the tests with this Python, as a row of the record.

    Raises: ConfigError for a file that pytest has not written.
    """
    try:
        suites = ElementTree.parse(results).getroot().findall("testsuite")
        counts = {name: sum(int(suite.attrib[name]) for suite in suites) for name in COUNTS}
    except (OSError, ElementTree.ParseError, KeyError) as error:
        raise ConfigError(f"{results} is not a report of pytest ({error}): give what --junitxml wrote") from None
    failed = counts["failures"] + counts["errors"]
    found = versions()
    found |= {name: each.version for name in ("gymnasium", "jax") for each in metadata.distributions(name=name)}
    return {
        "tests": words, "passed": counts["tests"] - failed - counts["skipped"], "skipped": counts["skipped"],
        "failed": failed, "date": time.strftime("%Y-%m-%d"), "git_sha": git_sha(), "versions": found,
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Adds a run, if one is given, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", nargs=2, metavar=("RESULTS.xml", "WORDS"))
    args = parser.parse_args(argv)
    runs: list[dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else []
    if args.add:
        new = run_of(Path(args.add[0]), args.add[1])
        runs = [run for run in runs if key(run) != key(new)] + [new]
        runs.sort(key=lambda run: [[int(part) for part in number.split(".")] for number in key(run)[:2]])
        write_json(RECORD, runs)
    write_text(PAGE, page(PAGE.read_text(), runs))


def key(run: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a run is of: Python, torch, and the tests."""
    return run["versions"]["python"], run["versions"]["torch"].split("+")[0], run["tests"]


if __name__ == "__main__":
    main()
