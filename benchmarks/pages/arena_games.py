"""The tables of docs/arena-games.md, from the games' folders: `python -m benchmarks.pages.arena_games`."""

from __future__ import annotations

import argparse

from benchmarks.workload import ROOT
from gbxcule_puffer.files import write_text
from gbxcule_puffer.games import Game, load_game, own_games
from gbxcule_puffer.layout import ROMS

PAGE = ROOT / "docs" / "arena-games.md"
BEGIN = "<!-- the tables are written by `python -m benchmarks.pages.arena_games` -->\n"
END = "<!-- end of the tables -->\n"
MODELS = {"dmg": "Game Boy", "cgb": "Color", "auto": "either"}


def ships(game: Game) -> bool:
    """True for a game whose ROM comes with the package."""
    return any(path.is_relative_to(ROMS) for path in [game.rom.find(game.folder)] if path is not None)


def tables() -> str:
    """Goals and scores of all games, and where their ROMs come from."""
    games = [game for game in map(load_game, own_games()) if not game.rom.by_symbols]  # those have no scores
    lines = ["| game | kind | for | goal | levels |", "| --- | --- | --- | --- | --- |"]
    for game in games:
        folder = game.folder.relative_to(ROOT).as_posix()
        levels = "" if game.levels is None else f"{game.levels.train.count:,}"
        if game.levels is not None and game.levels.test is not None:
            levels += f" and {game.levels.test.count:,}"
        name = f"[{game.name}](../{folder}/game.toml)"
        lines.append(f"| {name} | {game.kind} | {MODELS[game.rom.model]} | {game.goal} | {levels} |")
    lines += [
        "",
        "| game | score | no button | random | played | solved |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for game in games:
        if (scores := game.scores) is not None:
            values = (f"{value:,.4g}" for value in (scores.noop, scores.random, scores.played, scores.solved))
            lines.append(f"| {game.name} | `{scores.statistic}` | {' | '.join(values)} |")
    lines += ["", "| game | author | license | ROM | from |", "| --- | --- | --- | --- | --- |"]
    for game in games:
        rom = game.rom
        where = f"`{rom.sha256[:12]}...`" if not ships(game) else "ships"
        lines.append(f"| {game.title} | {rom.author} | {rom.license} | {where} | {rom.source} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the tables of today."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_text(PAGE, page(PAGE.read_text()))
