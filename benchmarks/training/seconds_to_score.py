r"""Seconds from the start of a training until it plays a game well, for numbers of Game Boys and for settings.

    python -m benchmarks.training.seconds_to_score --device cuda --game orchard,snake --envs 64,4096 --seeds 1,2,3 \
        --out s.json
    python -m benchmarks.training.seconds_to_score --jobs 8 --variant "plain: --no-norm-returns" --variant "new:" ...
    python -m benchmarks.training.seconds_to_score --device cuda --game orchard --gpus 1,2,4 --envs 16384 --out g.json
    python -m benchmarks.training.seconds_to_score --table s.json

A row for each game, variant of the settings, number of Game Boys and seed: a training in a process of its own, which
ends at the game's score, after --seconds or after --steps. With --gpus, torchrun starts a process on each GPU, which
share the Game Boys: with the same number in all, the learning should be the same, and only faster. The score is the
mean of the episodes that ended, over the last hundred of them, as the training's own records have it; no evaluation
takes part. A row has the curve, so that --table can ask for other scores (--score snake=12). With --jobs several runs
share the device: then steps and optimizer steps compare settings, and seconds only runs beside each other. The record
is written after each row.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.training.suite import Record
from benchmarks.workload import ROOT, find_rom
from gbxcule_puffer.apps.side_by_side import SideBySide
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import check_target
from gbxcule_puffer.layout import trainer_scripts
from gbxcule_puffer.trainers.curves import curve_of, last_score, reached
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS

NEVER, NAN = 10**12, float("nan")
RETURN, SUCCESS = "charts/episodic_return", "charts/success_rate"
POINTS = f"{ROOT / 'benchmarks/training/points.py'}"
ACTION = {"frames_per_step": 8, "release_after_frames": 8, "start_waits": 15}
ARENA = ROOT / "roms/arena"


@dataclass(frozen=True)
class Game:
    """A game with its flags, how to come to where it is played (names of actions of 24 frames), the metric that is its
    score, and the score that counts as reached."""

    flags: dict[str, object]
    score: float
    metric: str = "env/task/points"
    rom: str | None = None
    start: Sequence[str] = field(default_factory=list)


WAIT = ["NOOP"] * 6
GAMES = {
    "homeward": Game({}, 0.9, SUCCESS),
    "orchard": Game({"env": "gbxcule_orchard"}, 25, RETURN),
    "storeroom": Game({"env": "gbxcule_storeroom"}, 0.5, RETURN),
    "2048": Game(
        {"task": f"{ROOT / 'docs/score_2048.py'}:Score", "action_codec": "UP,DOWN,LEFT,RIGHT", "start_waits": 8}
        | {"max_steps": 1024, "gamma": 0.995},
        2000, "env/task/score", "2048", [*WAIT, "START", "NOOP"],
    ),
    "rex-runner": Game(
        {"task": f"{ROOT / 'docs/rex_runner.py'}:Runner", "action_codec": "NOOP,A", "max_steps": 768, **ACTION},
        600, "env/task/score", "rex-runner", [*WAIT, "A", "NOOP"],
    ),
    "snake": Game(
        {"task": f"{POINTS}:Snake", "action_codec": "NOOP,UP,DOWN,LEFT,RIGHT", "max_steps": 256, "start_waits": 8},
        4, rom="snake", start=[*WAIT, "START", "NOOP", "START", "NOOP", "NOOP"],
    ),
    "renegade-rush": Game(
        {"task": f"{POINTS}:RenegadeRush", "action_codec": "NOOP,A,LEFT,RIGHT,UP,DOWN", "max_steps": 512, **ACTION},
        120, rom="renegade-rush", start=[*WAIT, *WAIT, "START", "NOOP", "NOOP", "NOOP"],
    ),
    "wyrmhole": Game(
        {"task": f"{POINTS}:Wyrmhole", "action_codec": "NOOP,A,LEFT,RIGHT,UP,DOWN", "max_steps": 512, **ACTION},
        25, rom="wyrmhole", start=[*WAIT, "START", "NOOP", "NOOP", "NOOP"],
    ),
    # Games with folders, for which no default was chosen
    "grub-glide": Game({"game": ARENA / "grub-glide"}, 20, "env/task/score", "grub-glide"),
    "sushi-nights": Game({"game": ARENA / "sushi-nights"}, 0.5, "env/task/clients", "sushi-nights"),
}  # fmt: skip


Job = tuple[str, str, int, int, int]  # game, variant, GPUs, Game Boys on all of them (0: the trainer's own), seed


def words_of(job: Job, folder: Path, plan: Any) -> list[str]:
    """The command line of a training."""
    name, variant, gpus, envs, seed = job
    game = GAMES[name]
    flags: dict[str, object] = {"seed": seed, "device": plan.device, "run_dir": folder, "total_env_steps": plan.steps}
    flags |= {"max_seconds": plan.seconds, "stop_at_success": 2, **game.flags}
    flags |= {"num_envs": envs // gpus} if envs else {}
    if game.rom is not None:
        flags["rom"] = find_rom(game.rom)
    if game.start:
        start = flags["start_actions"] = folder.with_suffix(".txt")
        start.write_text(" ".join(game.start))
    words = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
    start = ["-m", "gbxcule_puffer", "train", plan.script]
    if gpus > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
        start = [*torchrun, str(trainer_scripts()[plan.script])]
    return [*start, *words, *plan.flags, *plan.variants[variant]]


def series(folder: Path, metric: str) -> list[list[float]]:
    """[steps, value] of a run's records in which the metric is a finite number."""
    found = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
    values = [(record["global_step"], record.get(metric)) for record in found]
    return [[step, round(value, 4)] for step, value in values if isinstance(value, float)]


def train(job: Job, plan: Any, record: Record) -> None:
    """One run, and its row."""
    name, variant, gpus, envs, seed = job
    game, folder = GAMES[name], plan.folder / "-".join(map(str, job))
    facts: dict[str, Any] = {"game": name, "script": plan.script, "variant": variant, "gpus": gpus, "seed": seed}
    begun, end = time.time(), plan.begun + plan.total
    if begun >= end:
        print(f"{name} {variant} seed {seed}: left out, --total is over", flush=True)
        return
    cut = False

    def enough() -> bool:
        nonlocal cut
        cut = time.time() >= end
        late = cut or time.time() >= begun + plan.seconds + plan.patience
        return late or reached(curve_of(folder, game.metric), plan.score.get(name, game.score)) is not None

    with folder.with_suffix(".log").open("wb") as log, contextlib.suppress(RuntimeError):  # the log says why
        plan.side_by_side.call([words_of(job, folder, plan)], enough, log)
    curve = curve_of(folder, game.metric)
    if curve:
        config = json.loads((folder / MANIFEST).read_text())["config"]
        facts |= {"envs": config["num_envs"] * gpus, "flags": portable(config), "wall": round(time.time() - begun, 1)}
        facts["start"] = round((folder / MANIFEST).stat().st_mtime - begun, 2)  # written where the training begins
        facts |= {"curve": curve, "last": last_score(curve)}
        facts |= {name: series(folder, f"charts/{name}")[-1][1] for name in ("eval_share", "SPS")}
        if noise := series(folder, "charts/noise_scale"):
            facts["noise_scale"] = noise
    else:
        lines = folder.with_suffix(".log").read_text().strip().splitlines() or ["no record"]
        facts |= {"envs": envs, "error": lines[-1]}
    found = reached(curve, plan.score.get(name, game.score))
    if cut and not found:
        print(f"{name} {variant} seed {seed}: cut, --total is over", flush=True)
        return
    missed = f"not reached: {facts.get('error') or facts['last']}"
    text = f"{found[1]:.1f} s, {found[0]:,.0f} steps" if found else missed
    print(f"{name} {variant} {facts['envs']} envs, seed {seed}: {text}", flush=True)
    record.add(facts)


def updates_of(row: dict[str, Any], steps: float) -> float:
    """Optimizer steps in `steps` steps of a run of PPO, PQN or A2C."""
    flags = row["flags"]
    if "update_every" in flags:
        return steps / (row["envs"] * flags["update_every"])
    size = row["envs"] * flags["num_steps"]
    return steps / size * flags["update_epochs"] * flags["num_minibatches"]


def table(rows: Iterable[dict[str, Any]], scores: dict[str, float]) -> str:
    """A Markdown table: a line for each game, variant and number of GPUs and Game Boys, the median of its seeds.
    seconds: of training; whole: from the command on."""
    rows = [row for row in rows if "curve" in row]
    heads = ["game", "score", "GPUs", "Game Boys", "settings", "seeds", "seconds", "whole", "steps", "optimizer steps"]
    lines = [f"| {' | '.join([*heads, 'last'])} |"]
    lines.append("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    keys = [(row["game"], row["gpus"], row["envs"], row["variant"]) for row in rows]
    for key in dict.fromkeys(keys):
        own = [row for row, of_row in zip(rows, keys, strict=True) if of_row == key]
        name, gpus, envs, variant = key
        score = scores.get(name, GAMES[name].score)
        found = [reached(row["curve"], score) for row in own]
        good = [
            (*each, row.get("start", NAN) + each[1], updates_of(row, each[0]))
            for row, each in zip(own, found, strict=True)
            if each
        ]
        cells = ["", "", "", ""]
        if 2 * len(good) > len(own):  # else the median is one that was not reached
            worst = [(float("inf"),) * 4] * (len(own) - len(good))
            steps, seconds, whole, updates = map(statistics.median_low, zip(*good, *worst, strict=True))
            cells = [f"{seconds:.1f}", f"{whole:.1f}".replace("nan", ""), f"{steps:,.0f}", f"{updates:,.0f}"]
        lasts = [last for row in own if (last := last_score(row["curve"])) is not None]
        last = f"{statistics.median(lasts):.4g}" if lasts else ""
        line = [name, f"{score:g}", f"{gpus}", f"{envs:,}", variant, f"{len(good)} of {len(own)}", *cells, last]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines)


def parse(argv: Sequence[str] | None) -> Any:
    """The command line.

    Raises: ConfigError.
    """
    parser = argparse.ArgumentParser(
        prog="benchmarks.training.seconds_to_score", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--game", default=",".join(GAMES), help="games, with commas between them (default: all)")
    parser.add_argument("--script", default="ppo_lite", help="a trainer of cleanrl_style/ (default: ppo_lite)")
    parser.add_argument("--envs", default="0", help="numbers of Game Boys (default: 0, the trainer's own)")
    parser.add_argument("--gpus", default="1", help="numbers of GPUs, which share the Game Boys (default: 1)")
    parser.add_argument("--variant", action="append", help='settings, "NAME: FLAGS"; may be given several times')
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--seconds", type=float, default=60, help="of a training, at most (default: 60)")
    parser.add_argument("--steps", type=int, default=NEVER, help="of a training, at most (default: no limit)")
    parser.add_argument("--score", action="append", default=[], help="GAME=SCORE instead of the game's own")
    parser.add_argument("--jobs", type=int, default=1, help="runs beside each other on the device (default: 1)")
    parser.add_argument("--patience", type=float, default=120, help="seconds for a run beside its training")
    parser.add_argument("--total", type=float, default=1e9, help="seconds after which no run starts or goes on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--table", type=Path, help="prints the table of a record, and runs nothing")
    parser.add_argument("--out", type=Path, help="JSON file for the record")
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    plan = parser.parse_args(words[:split])
    plan.flags = words[split + 1 :]
    plan.game = plan.game.split(",")
    for name in plan.game:
        if name not in GAMES:
            raise ConfigError(f"--game {name!r:.40} is unknown: give one of {', '.join(GAMES)}")
    for name in ("gpus", "envs", "seeds"):
        setattr(plan, name, [int(text) for text in getattr(plan, name).split(",")])
    if any(envs % gpus for envs in plan.envs for gpus in plan.gpus):
        raise ConfigError("--envs cannot be shared by --gpus: give multiples of each number of GPUs")
    named = [text.partition(":")[::2] for text in plan.variant or ["defaults:"]]
    plan.variants = {name: flags.split() for name, flags in named}
    plan.score = {name: float(value) for name, value in (text.split("=") for text in plan.score)}
    if plan.table is None:
        if plan.out is None:
            raise ConfigError("--out is missing: give a JSON file for the record")
        check_target(plan.out)
    return plan


def portable(flags: dict[str, Any]) -> dict[str, Any]:
    """Flags whose paths within the clone begin at its root."""
    prefix = f"{ROOT}/"
    return {name: each.removeprefix(prefix) if isinstance(each, str) else each for name, each in flags.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all trainings, writes the record and prints the table; exit code 1 where a run failed, 2 for bad input."""
    try:
        plan = parse(argv)
        if plan.table is not None:
            print(table(json.loads(plan.table.read_text())["rows"], plan.score))
            return 0
        record = Record(plan, "rows")
        plan.side_by_side = SideBySide([plan.device], plan.jobs)
        with tempfile.TemporaryDirectory() as folder:
            plan.folder, plan.begun = Path(folder), time.time()
            jobs = itertools.product(plan.seeds, plan.gpus, plan.envs, plan.variants, plan.game)
            work = [(g, v, k, n, s) for s, k, n, v, g in jobs]
            plan.side_by_side.each(work, lambda job, devices: train(job, plan, record))
    except (GBxCuLEError, FileNotFoundError) as error:
        print(f"benchmarks.training.seconds_to_score: {error}", file=sys.stderr)
        return 2
    print(table(record.rows, plan.score))
    return int(any("error" in row for row in record.rows))


if __name__ == "__main__":
    sys.exit(main())
