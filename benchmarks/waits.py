"""Games with one fixed start: are their episodes others after a wait, before the first button or behind the start?

    python -m benchmarks.waits --out benchmarks/results/cpu/waits.json
    python -m benchmarks.waits --game deep-scan,snake --actions 3 --out waits.json

For each game of `puffer game list` whose ROM is here, without [levels] unless it is named: WAITS Game Boys, each of
which waited STEP frames longer than the one before, play the same random buttons. A row has, for each place of the wait
and each list of buttons, how many different episodes there were (by length, return and score), and their scores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.apps.arena.recording import statistic_of
from gbxcule_puffer.apps.arena.replays import RETURN, play
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.games import Game, load_game, own_games
from gbxcule_puffer.games.make import make_game_env
from gbxcule_puffer.provenance import cpu_name, git_sha, versions

WAITS, STEP = 8, 7  # Game Boys, and frames between two of them
PLACES = {"before": lambda wait, actions: (wait, *actions), "behind": lambda wait, actions: (*actions, wait)}


def starts_of(game: Game, where: str) -> list[str]:
    """The files of the starts after 0, STEP, 2 STEP ... frames."""
    found = []
    for number in range(WAITS):
        wait = (f"NOOP:{number * STEP}",) if number else ()
        actions = PLACES[where](wait[0], game.start.actions) if wait else game.start.actions
        waited = replace(game, start=replace(game.start, actions=actions))
        found.append(waited.options()["start_state"])
    return found


def episodes(game: Game, starts: Sequence[str], seed: int) -> list[tuple[float, ...]]:
    """(length, return, score) of an episode from each start, all with the same random buttons."""
    given: dict[str, Any] = {"start_state": tuple(starts), "curriculum": "by_env", "start_waits": 0, "io": "torch"}
    env = make_game_env(game, GBxCuLEEnv, len(starts), **given, info_mode="none")
    generator = torch.Generator().manual_seed(seed)
    count = env.codec.num_actions
    try:
        found = play(lambda obs, starts=None: torch.randint(count, (1,), generator=generator).expand(len(obs)), env, 1)
    finally:
        env.close()
    values = found.values[statistic_of(game)]
    return list(zip(found.lengths, found.values[RETURN], values, strict=True))


def measure(game: Game, lists: int) -> dict[str, Any]:
    """The row of a game."""
    row: dict[str, Any] = {"game": game.name, "score": statistic_of(game)}
    for where in PLACES:
        starts = starts_of(game, where)
        played = [episodes(game, starts, seed) for seed in range(lists)]
        row[where] = {
            "different": [len(set(each)) for each in played],
            "scores": [[round(score, 3) for _, _, score in each] for each in played],
        }
    return row


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, writes the record after each game and prints a line for each; exit code 2 for bad input."""
    parser = argparse.ArgumentParser(prog="benchmarks.waits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", help="names, with commas between them (default: those without [levels])")
    parser.add_argument("--actions", type=int, default=2, help="lists of random buttons (default: 2)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args(argv)
    record: dict[str, Any] = {"waits": WAITS, "frames": STEP, "device_name": cpu_name(), "rows": []}
    record |= {"git_sha": git_sha(), "versions": versions()}
    try:
        check_target(args.out)
        games = [load_game(name) for name in (args.game.split(",") if args.game else own_games())]
        for game in games:
            if game.start.actions and game.rom.find(game.folder) and (args.game or game.levels is None):
                record["rows"].append(measure(game, args.actions))
                write_json(args.out, record)
                row = record["rows"][-1]
                print(game.name, *(f"{where} {row[where]['different']}" for where in PLACES), flush=True)
    except GBxCuLEError as error:
        print(f"benchmarks.waits: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
