"""Learn the suite's games from pixels, tiles and sprites, with equal steps.

    python -m benchmarks.training.objects --steps 3000000 --jobs 9 --device cuda --eval-device cpu --out objects.json \\
        -- --num-envs 8192 --num-steps 16 --stagger
    python -m benchmarks.training.objects --table benchmarks/results/cpu/objects.json

One row for each game, observation and seed: steps, seconds of training, and what both policies reach on the test
levels. What follows `--` are more flags of the script. The record is written after each row. --table prints the table
of docs/lab/learning.md from a record.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.training.suite import Record, measure, read_run, train
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files import check_target
from gbxcule_puffer.suite import GAMES

OBSERVED = ("shades", "tiles", "objects")
LEVELS = "16384"
HEAD = "| game | `obs` | seeds | steps | seconds | score | greedy |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |"


def row(job: tuple[str, str, int], plan: Any, record: Record) -> None:
    """Trains, measures and adds the row to the record."""
    game, obs, seed = job
    facts: dict[str, Any] = {"game": game, "obs": obs, "script": plan.script, "seed": seed}
    folder = plan.runs / f"{game}__{obs}__{seed}__{int(time.time())}"
    try:
        with plan.turns:
            train(game, plan.script, LEVELS, seed, folder, plan.seconds, plan, obs=obs, total_env_steps=plan.steps)
        facts |= read_run(folder)
        steps, seconds, *_ = facts["curve"][-1]
        facts |= {"seconds": seconds * facts["steps"] / steps, **measure(game, LEVELS, seed, folder, plan)}
        text = f"score {facts['test']['sampled']['score']:.2f}, {facts['seconds']:.0f} s"
    except (RuntimeError, GBxCuLEError) as error:
        facts["error"] = text = str(error)
    print(f"{game} {obs} seed {seed}: {text}", flush=True)
    record.add(facts)


def spread(values: list[float]) -> str:
    """The mean, and of several values the least and the greatest."""
    mean = f"{sum(values) / len(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.2f} to {max(values):.2f})"


def table(rows: list[dict[str, Any]]) -> str:
    """The rows of a record as a Markdown table, a line for each game and observation."""
    lines = [HEAD]
    for game, obs in itertools.product(GAMES, OBSERVED):
        runs = [row for row in rows if (row["game"], row["obs"]) == (game, obs) and "error" not in row]
        if runs:
            cells = [game.upper(), f"`{obs}`", str(len(runs)), f"{runs[0]['steps']:,}"]
            cells.append(f"{sum(run['seconds'] for run in runs) / len(runs):.0f}")
            cells += [spread([run["test"][policy]["score"] for run in runs]) for policy in ("sampled", "greedy")]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def parse(argv: Sequence[str] | None) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.training.objects", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", type=Path, help="a record of which to print the table, and nothing else")
    parser.add_argument("--game", default=",".join(GAMES), help="games, with commas between them (default: all)")
    parser.add_argument("--obs", default=",".join(OBSERVED), help="(default: all three)")
    parser.add_argument("--script", default="ppo_lite")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--steps", type=int, default=250_000, help="of each run (default: 250,000)")
    parser.add_argument("--seconds", type=float, default=3600, help="of training, each run, at most (default: 3600)")
    parser.add_argument("--jobs", type=int, default=1, help="runs beside each other on the device (default: 1)")
    parser.add_argument("--episodes", type=int, default=256, help="of each evaluation, all at once (default: 256)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--eval-device", help="where policies are measured (default: --device)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs (default: runs)")
    parser.add_argument("--out", type=Path, help="JSON file for the record")
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    plan = parser.parse_args(words[:split])
    plan.flags, plan.turns = words[split + 1 :], threading.Semaphore(plan.jobs)
    plan.eval_device = plan.eval_device or plan.device
    if not plan.table:
        if plan.out is None:
            parser.error("--out is missing")
        check_target(plan.out)
    return plan


def main(argv: Sequence[str] | None = None) -> int:
    """Measures all rows and writes the record; exit code 1 where a run failed, 2 where none can run."""
    plan = parse(argv)
    if plan.table:
        print(table(json.loads(plan.table.read_text())["objects"]))
        return 0
    record = Record(plan, "objects")
    games, observed = plan.game.split(","), plan.obs.split(",")
    seeds = [int(seed) for seed in plan.seeds.split(",")]
    try:
        train(games[0], plan.script, LEVELS, 0, plan.runs / f"warm__{os.getpid()}", 0.01, plan)  # compiles the kernels
    except RuntimeError as error:
        print(f"benchmarks.training.objects: {error}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(2 * plan.jobs) as pool:  # while some are measured, the next are trained
        jobs = itertools.product(games, observed, seeds)
        for found in [pool.submit(row, job, plan, record) for job in jobs]:
            found.result()
    return int(any("error" in each for each in record.rows))


if __name__ == "__main__":
    sys.exit(main())
