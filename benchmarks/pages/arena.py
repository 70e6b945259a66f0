"""The scoreboard of docs/arena.md, from the records in benchmarks/arena: `python -m benchmarks.pages.arena`."""

from __future__ import annotations

import argparse

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.arena.plots import draw_aggregates, draw_games
from gbxcule_puffer.apps.arena.records import find_records, read_record
from gbxcule_puffer.apps.arena.report import report
from gbxcule_puffer.apps.arena.results import Results

DOCS = ROOT / "docs"
RECORDS, PAGE = ROOT / "benchmarks" / "arena", DOCS / "arena.md"
PICTURES = {"images/arena.png": draw_aggregates, "images/arena_games.png": draw_games}
TITLES = "Aggregates over the games", "The training's own episodes, game by game"
BEGIN = "<!-- the scoreboard is written by `python -m benchmarks.pages.arena` -->\n"
END = "<!-- end of the scoreboard -->\n"


def page(text: str, results: Results) -> str:
    """The page `text` with the scoreboard as it is now."""
    before, _, rest = text.partition(BEGIN)
    pictures = "\n".join(f"![{title}]({path})\n" for title, path in zip(TITLES, PICTURES, strict=True))
    return f"{before}{BEGIN}\n{pictures}\n{report(results)}\n{END}{rest.partition(END)[2]}"


def scoreboard() -> Results:
    """All records."""
    return Results([read_record(path) for path in find_records([RECORDS])])


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    results = scoreboard()
    PAGE.write_text(page(PAGE.read_text(), results))
    for path, draw in PICTURES.items():
        draw(results, DOCS / path)


if __name__ == "__main__":
    main()
