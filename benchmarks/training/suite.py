"""Train on the suite's games for a given time and measure each policy on levels that were and were not trained on.

    python -m benchmarks.training.suite --game orchard --script pqn --seeds 1,2,3 --seconds 60 --out suite.json
    python -m benchmarks.training.suite --script random,scripted --device cuda --out players.json
    python -m benchmarks.training.suite --game orchard --script ppo_lite --levels 64,1024 --jobs 3 --out levels.json

One row for each game, script, number of training levels and seed; --jobs of them train beside each other, each for
--seconds. What follows `--` are more flags of the scripts. A row has the flags, steps and seconds, the curve of
the training episodes, and for the sampled and the greedy policy success, mean return and normalised score on training
and test levels. A run that fails leaves its message in its row, and the exit code is 1. The record is written after
each row, so that only the rest is lost where a time limit cuts it off. docs/lab/suite.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import check_target, write_json
from gbxcule_puffer.layout import SCRIPTS, trainer_scripts
from gbxcule_puffer.provenance import device_name, git_sha, versions
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.suite import GAMES
from gbxcule_puffer.trainers.evaluation import evaluate, random_policy
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS

PLAYERS = ("random", "scripted")
NEVER = str(10**12)
STARTUP = 600  # seconds that a run may take beside its training: kernels, evaluations
POINTS = 60  # of a curve


class Record:
    """The file with the rows that there are so far under `name`, and what they were measured on."""

    def __init__(self, plan: Any, name: str = "suite") -> None:
        self.name = name
        self.path, self.rows, self._lock = plan.out, [], threading.Lock()
        self.facts = {"device": plan.device, "device_name": device_name(plan.device), "jobs": plan.jobs}
        self.facts |= {"git_sha": git_sha(), "versions": versions()}

    def add(self, row: dict[str, Any]) -> None:
        with self._lock:
            self.rows.append(row)
            write_json(self.path, {self.name: self.rows, **self.facts})


def train(
    game: str, script: str, levels: str, seed: int, folder: Path, seconds: float, plan: Any, **more: object
) -> None:
    """A training run in `folder`, in a process of its own; `more` flags replace those of this benchmark.

    Raises: RuntimeError with the last line of its messages where it fails.
    """
    flags = {"env": f"gbxcule_{game}-{levels}", "seed": seed, "device": plan.device, "run_dir": folder}
    flags |= {"max_seconds": seconds, "total_env_steps": NEVER, "eval_every_steps": NEVER, "checkpoint_every": NEVER}
    flags |= {"media_every": NEVER, "eval_envs": 1, "eval_episodes": 1, "eval_device": plan.eval_device}
    flags |= more
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    _run([str(trainer_scripts()[script]), *words, *plan.flags], seconds + STARTUP)


def measure(game: str, levels: str, seed: int, folder: Path, plan: Any) -> dict[str, Any]:
    """Both policies of a run on its training levels and on the test levels."""
    found = {}
    for name, env in (("train", f"gbxcule_{game}-{levels}"), ("test", f"gbxcule_{game}-test")):
        words = [str(SCRIPTS / "evaluate.py"), str(folder), f"--env={env}", "--json=-", f"--device={plan.eval_device}"]
        words += [f"--num-envs={plan.episodes}", f"--episodes={plan.episodes}", f"--seed={seed + 1000}"]
        result = json.loads(_run(words, STARTUP, "nice"))  # the next runs train meanwhile
        found[name] = {policy: _scored(game, result[policy]) for policy in ("sampled", "greedy")}
    return found


def row(job: tuple[str, str, str, int], plan: Any, record: Record) -> None:
    """Trains, measures and adds the row to the record."""
    game, script, levels, seed = job
    facts: dict[str, Any] = {"game": game, "script": script, "levels": int(levels), "seed": seed}
    folder = plan.runs / f"{game}-{levels}__{script}__{seed}__{int(time.time())}"
    try:
        with plan.turns:
            train(*job, folder, plan.seconds, plan)
        facts |= (
            {"seconds": plan.seconds, "run": folder.name} | read_run(folder) | measure(game, levels, seed, folder, plan)
        )
        text = f"test score {facts['test']['sampled']['score']:.2f}, {facts['steps']:,} steps"
    except (RuntimeError, GBxCuLEError) as error:
        facts["error"] = text = str(error)
    print(f"{game} {script} levels {levels} seed {seed}: {text}", flush=True)
    record.add(facts)


def play(game: str, player: str, plan: Any) -> dict[str, Any]:
    """Random actions or the game's own player on the test levels."""
    env = env_creator(f"gbxcule_{game}-test")(plan.episodes, resolve_device(plan.device), io="torch", info_mode="none")
    policy = random_policy(env, 1) if player == "random" else GAMES[game].player(env)
    found = _scored(game, evaluate(policy, env, plan.episodes, 1))
    print(f"{game} {player}: return {found['return']:.2f}, success {found['success_rate']:.3f}", flush=True)
    return {"game": game, "script": player, "test": {"sampled": found}}


def read_run(folder: Path) -> dict[str, Any]:
    """Steps, flags and curve of a run: [step, seconds, mean return, success rate] of the episodes that ended."""
    lines = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    curve = []
    for record in (line for line in lines if "charts/episodic_return" in line):
        point = (record["charts/seconds"], record["charts/episodic_return"], record["charts/success_rate"])
        curve.append([record["global_step"], *(round(number, 4) for number in point)])
    config = json.loads((folder / MANIFEST).read_text())["config"]
    return {"steps": lines[-1]["global_step"], "flags": config, "curve": curve[:: max(1, len(curve) // POINTS)]}


def _scored(game: str, result: dict[str, float]) -> dict[str, float]:
    return {**result, "score": GAMES[game].normalised(result["return"])}


def _run(words: Sequence[str], timeout: float, *before: str) -> str:
    """Standard output of a script; `before` stands before its command.

    Raises: RuntimeError with its last message where it fails or takes too long.
    """
    try:
        done = subprocess.run([*before, sys.executable, *words], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{Path(words[0]).name} took more than {timeout:.0f} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{Path(words[0]).name}: {lines[-1]}")
    return done.stdout


def parse(argv: Sequence[str] | None) -> Any:
    """The command line.

    Raises: ConfigError.
    """
    parser = argparse.ArgumentParser(prog="benchmarks.training.suite", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default=",".join(GAMES), help="games, with commas between them (default: all)")
    parser.add_argument("--script", default="pqn", help="trainers of cleanrl_style/, random, scripted (default: pqn)")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--levels", default="16384", help="numbers of training levels (default: 16384)")
    parser.add_argument("--seconds", type=float, default=60, help="of training, each run (default: 60)")
    parser.add_argument("--jobs", type=int, default=1, help="runs beside each other on the device (default: 1)")
    parser.add_argument("--episodes", type=int, default=512, help="of each evaluation, all at once (default: 512)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--eval-device", help="where policies are measured (default: --device)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs (default: runs)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    plan = parser.parse_args(words[:split])
    plan.flags = words[split + 1 :]
    for name, known in (("game", GAMES), ("script", (*trainer_scripts(), *PLAYERS))):
        setattr(plan, name, getattr(plan, name).split(","))
        for value in getattr(plan, name):
            if value not in known:
                raise ConfigError(f"--{name} {value!r:.40} is unknown: give one of {', '.join(known)}")
    plan.levels = plan.levels.split(",")
    if not all(seed.isdecimal() for seed in plan.seeds.split(",")):
        raise ConfigError(f"--seeds {plan.seeds!r:.40} must be whole numbers with commas between them, such as 1,2,3")
    plan.seeds = [int(seed) for seed in plan.seeds.split(",")]
    for name in ("jobs", "episodes", "seconds"):
        if not getattr(plan, name) > 0:
            raise ConfigError(f"--{name} {getattr(plan, name)} must be above 0")
    plan.eval_device = plan.eval_device or plan.device
    plan.turns = threading.Semaphore(plan.jobs)
    check_target(plan.out)
    return plan


def main(argv: Sequence[str] | None = None) -> int:
    """Measures all rows and writes the record; exit code 1 where a run failed, 2 for bad input."""
    try:
        plan = parse(argv)
        record = Record(plan)
        for job in itertools.product(plan.game, [script for script in plan.script if script in PLAYERS]):
            record.add(play(*job, plan))
        scripts = [script for script in plan.script if script not in PLAYERS]
        for script in scripts:  # its kernels come from the cache then, in all runs alike
            folder = plan.runs / f"warm__{script}__{os.getpid()}"
            train(plan.game[0], script, plan.levels[0], 0, folder, 0.01, plan)
        with ThreadPoolExecutor(2 * plan.jobs) as pool:  # while some are measured, the next are trained
            jobs = itertools.product(plan.game, scripts, plan.levels, plan.seeds)
            for found in [pool.submit(row, job, plan, record) for job in jobs]:
                found.result()
    except (RuntimeError, GBxCuLEError) as error:
        print(f"benchmarks.training.suite: {error}", file=sys.stderr)
        return 2
    return int(any("error" in each for each in record.rows))


if __name__ == "__main__":
    sys.exit(main())
