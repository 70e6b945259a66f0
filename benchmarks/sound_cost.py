"""What the sound registers cost: steps per second with sound beside those without, in turns, over many games.

    python -m benchmarks.sound_cost --out FOLDER [--device cuda] [--num-envs 16384] [--rom ROM ...]
    python -m benchmarks.sound_cost --out FOLDER --merge FILE.json

Processes with the same --out share the work, one for each GPU: each takes the next game that none has taken, and writes
FOLDER/GAME-MODEL.json. A time limit cuts off only what was not done. Both environments of a game take the same random
actions, as in `puffer bench`. --merge puts the folder's records into one file. Without --rom: all games of
`puffer bench --suite corpus`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gbxcule_puffer.apps.bench.contenders import make_contender
from gbxcule_puffer.apps.bench.measure import compare
from gbxcule_puffer.apps.bench.suites import roms_of_suite
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files import write_json
from gbxcule_puffer.provenance import usable_cores

MODELS = ("dmg", "cgb")
ONE = ("device_name", "git_sha", "num_envs", "frames_per_step")  # of all records that become one
LENGTHS = ("warmup_steps", "measured_steps", "repeats")  # stand with each game where they differ


def measure(workload: Workload, num_envs: int, device: str) -> dict[str, Any]:
    """The median steps per second of a workload without and with sound, and how both were measured."""
    workloads = [replace(workload, sound=sound) for sound in (False, True)]
    cores = usable_cores()
    contenders = [make_contender("gbxcule", each, num_envs, device=device, cores=cores) for each in workloads]
    muted, sound = compare(contenders, workload, lambda turns: None)
    return {
        **{"game": workload.rom.stem, "model": muted["model"], "rom_sha256": muted["rom_sha256"]},
        **{"muted": round(muted["sps"]), "sound": round(sound["sps"])},
        **{"muted_spread": _spread(muted), "sound_spread": _spread(sound)},
        "device_name": muted["device_name"],
        "git_sha": muted["git_sha"],
        **{key: muted[key] for key in ("num_envs", "warmup_steps", "measured_steps", "repeats", "frames_per_step")},
    }


def take(roms: Sequence[Path], folder: Path) -> Iterator[tuple[Path, str, Path]]:
    """(ROM, model, file of its record) of what no process has taken yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for rom in roms:
        for model in MODELS:
            target = folder / f"{rom.stem}-{model}.json"
            try:
                target.with_suffix(".taken").open("x").close()
            except FileExistsError:
                continue
            yield rom, model, target


def merge(folder: Path) -> dict[str, Any]:
    """One record of all that the folder has.

    Raises: SystemExit if it has none, or if they are of different devices, commits or numbers of Game Boys.
    """
    games = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    settings = {tuple(game[key] for key in ONE) for game in games}
    if len(settings) != 1:
        raise SystemExit(f"{folder} has records of {len(settings)} settings: give a folder of one measurement")
    common = [*ONE, *(key for key in LENGTHS if len({game[key] for game in games}) == 1)]
    shared = {key: games[0][key] for key in common}
    record: dict[str, Any] = {
        "what": "env steps/s without and with sound=True, in turns on the same GPU, random actions: "
        "python -m benchmarks.sound_cost",
        **shared,
    }
    games = [{key: value for key, value in game.items() if key not in shared} for game in games]
    for model in MODELS:
        kept = {game["game"]: game["sound"] / game["muted"] for game in games if game["model"] == model}
        if kept:
            worst = min(kept, key=lambda name: kept[name])
            record[model] = {
                "games": len(kept),
                "kept": round(math.exp(sum(map(math.log, kept.values())) / len(kept)), 3),
                **{"worst": round(kept[worst], 3), "worst_game": worst},
            }
    return {**record, "games": sorted(games, key=lambda game: (MODELS.index(game["model"]), game["game"].lower()))}


def _spread(record: dict[str, Any]) -> float:
    """Half the distance from the slowest to the fastest repeat, as a share of the median."""
    return round((record["sps_max"] - record["sps_min"]) / record["sps"] / 2, 4)


def _corpus() -> list[Path]:
    """The suite in an order without meaning: a part of it stands for all."""
    roms = roms_of_suite("corpus")
    random.Random(0).shuffle(roms)
    return roms


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="measure nothing; write the folder's records here")
    parser.add_argument("--rom", nargs="+", type=Path, help="image files (default: HOMEWARD and the shared games)")
    parser.add_argument("--num-envs", type=int, default=16_384)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--warmup", type=int, default=24, help="steps before the first repeat")
    parser.add_argument("--steps", type=int, default=4, help="steps of a repeat")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no game after this time")
    args = parser.parse_args()
    if args.merge:
        write_json(args.merge, merge(args.out))
        return 0
    begin, failed = time.monotonic(), 0
    for rom, model, target in take(args.rom or _corpus(), args.out):
        workload = Workload(rom, model=model, warmup=args.warmup, steps=args.steps, repeat=args.repeat)
        started = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as goal:
                found = measure(workload.with_goal(Path(goal)), args.num_envs, args.device)
        except GBxCuLEError as error:
            print(f"{rom.stem} {model}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        write_json(target, found)
        rates = f"{found['muted']:>10,} {found['sound']:>10,} {found['sound'] / found['muted']:6.3f}"
        print(f"{rom.stem:32} {model} {rates} {time.monotonic() - started:5.1f} s", flush=True)
        if time.monotonic() - begin > args.seconds:
            break
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
