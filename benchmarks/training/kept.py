r"""Measure how much of the env's speed a training keeps: its steps by wall time, with everything that a run does, over
those of the env alone with random actions.

    python -m benchmarks.training.kept --device cuda --script a2c_streaming,ppo_lite --out kept.json
    python -m benchmarks.training.kept --device cuda --script ppo_lite --variant "plain: --no-bf16" --variant "new:" ...

A row for each script and variant of its flags: by turns with the env alone, --repeats times. Each is a process of its
own that runs for --seconds, of which the first half is not counted. The learning rate is 0, so that the policy goes on
to choose at random and both play the same parts of the game; --lr gives another, with which the game changes as the
policy learns. `kept` counts evaluations, films and records; `kept_by_learner` leaves evaluations and films out, as
charts/SPS_learner does. `beside`: seconds of the process before and after the training.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from benchmarks.training.suite import Record
from benchmarks.workload import ROOT
from gbxcule_puffer.files import check_target
from gbxcule_puffer.layout import trainer_scripts
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import make_env, task_files
from gbxcule_puffer.trainers.flags import RunFlags, read_flags
from gbxcule_puffer.trainers.folder import METRICS

NEVER = 10**12
SYNCED = 64  # steps between two looks at the clock, for which the host waits


def words_of(script: str, plan: Any, folder: Path) -> list[str]:
    """The flags of a training that does not end before its time."""
    flags = {"env": plan.env, "device": plan.device, "lr": plan.lr, "run_dir": folder, "stop_at_success": 2}
    flags |= {"max_seconds": plan.seconds, "total_env_steps": NEVER}
    return [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]


def run(words: list[str]) -> str:
    """The output of a Python process; ends with the process's last message where that fails."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout


def training(script: str, variant: str, plan: Any, folder: Path) -> dict[str, float]:
    """The rates of a run's second half, in steps a second."""
    run_dir, start = folder / f"{script}-{time.time()}", time.time()
    words = [str(trainer_scripts()[script]), *words_of(script, plan, run_dir), *plan.variants[variant]]
    run(words)
    wall = time.time() - start
    rows = [json.loads(line) for line in (run_dir / METRICS).read_text().splitlines()]
    rows = [row for row in rows if "charts/seconds" in row]
    begin, *counted = [row for row in rows if row["charts/seconds"] >= plan.seconds / 2] or rows[-1:]
    if not counted:
        sys.exit(f"{script} wrote fewer than two records in the second half: give more --seconds")
    seconds = counted[-1]["charts/seconds"] - begin["charts/seconds"]
    return {
        "sps": (counted[-1]["global_step"] - begin["global_step"]) / seconds,
        "sps_learner": statistics.median(row["charts/SPS_learner"] for row in counted),
        "eval_share": counted[-1]["charts/eval_share"],
        "beside": wall - counted[-1]["charts/seconds"],
    }


def alone(args: RunFlags, seconds: float, folder: Path) -> float:
    """Steps a second of the second half of as many seconds, with random actions."""
    files, num_envs = task_files(args, folder, World()), vars(args)["num_envs"]
    env = make_env(args, num_envs, args.device, files, args.seed, info_mode="none")
    env.reset()
    begun, halfway, steps = time.perf_counter(), 0.0, 0
    while (now := time.perf_counter()) < begun + seconds:
        if not halfway and now >= begun + seconds / 2:
            halfway, steps = now, 0
        for _ in range(SYNCED):
            env.step(torch.randint(env.codec.num_actions, (env.num_envs,), device=env.device))
        steps += SYNCED
        if env.device.type == "cuda":
            torch.cuda.synchronize(env.device)
    return steps * env.num_envs / (time.perf_counter() - halfway)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", default="a2c_streaming,ppo_lite", help="trainers, with commas between them")
    parser.add_argument("--variant", action="append", help='flags, "NAME: FLAGS"; may be given several times')
    parser.add_argument("--env", default="gbxcule", help="default: gbxcule, HOMEWARD's first stage")
    parser.add_argument("--lr", type=float, default=0.0, help="learning rate (default: 0)")
    parser.add_argument("--seconds", type=float, default=12, help="of a measurement (default: 12)")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # a script: only its env, in this process
    plan = parser.parse_args()
    check_target(plan.out)
    named = [text.partition(":")[::2] for text in plan.variant or ["defaults:"]]
    plan.variants = {name: flags.split() for name, flags in named}
    plan.jobs = 1
    with tempfile.TemporaryDirectory() as name:
        if plan.alone:
            flags = import_module(f"cleanrl_style.{plan.alone}").Args
            args = read_flags(flags, plan.alone, None, words_of(plan.alone, plan, Path(name)))
            print(alone(args, plan.seconds, Path(name)))
            return
        record = Record(plan, "rows")
        for script in plan.script.split(","):
            measure(script, plan, Path(name), record)


def measure(script: str, plan: Any, folder: Path, record: Record) -> None:
    """Adds the rows of a script: the env alone and each variant by turns."""
    words = ["-m", "benchmarks.training.kept", *sys.argv[1:], "--alone", script]
    rates: list[float] = []
    found: dict[str, list[dict[str, float]]] = {name: [] for name in plan.variants}
    for _ in range(plan.repeats):
        rates.append(float(run(words).splitlines()[-1]))
        for variant, rows in found.items():
            rows.append(training(script, variant, plan, folder))
    env_alone = statistics.median(rates)
    for variant, rows in found.items():
        medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
        row: dict[str, Any] = {"script": script, "variant": variant, "flags": plan.variants[variant], "env": plan.env}
        row |= {"lr": plan.lr, "alone": round(env_alone), "alone_all": [round(rate) for rate in rates]}
        row |= {name: round(value, 4 if value < 100 else 0) for name, value in medians.items()}
        row |= {"kept": round(medians["sps"] / env_alone, 3)}
        row |= {"kept_by_learner": round(medians["sps_learner"] / env_alone, 3)}
        text = (
            f"{row['sps']:,.0f} of {row['alone']:,} steps/s, {row['kept']}, beside the training {row['beside']:.1f} s"
        )
        print(f"{script} {variant}: {text}", flush=True)
        record.add(row)


if __name__ == "__main__":
    main()
