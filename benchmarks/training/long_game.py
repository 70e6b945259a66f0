r"""Trainings of a long game: milestones over steps and seconds, memory over time, files written, pictures of coverage.

    python -m benchmarks.training.long_game --game gateward --device cuda:0,cuda:1 --seconds 150 --seeds 1,2,3 \
        --variant "all: --milestone-slots 16 --swarm-steps 1024" --variant "plain:" --out long.json
    python -m benchmarks.training.long_game --read runs/long --out long.json

A row for each variant of the settings and each seed: a training in a process of its own, one at a time on each device
(--jobs: more), for --seconds or --steps. What follows `--` are flags of all of them. --read: rows of runs that have
been made already, such as one under torchrun. Beside the record stand the last picture of coverage of each run that has
one, and a film of all of them. The record is written after each row, so that only the rest is lost where a time limit
cuts it off.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.training.seconds_to_score import portable
from benchmarks.training.suite import Record
from gbxcule_puffer.apps.side_by_side import NEVER, SideBySide
from gbxcule_puffer.errors import ConfigError, GBxCuLEError
from gbxcule_puffer.files import check_target
from gbxcule_puffer.layout import trainer_scripts
from gbxcule_puffer.trainers.folder import MANIFEST, METRICS

CURVES = {  # in a row, and in a run's records
    "most": "env/milestones/most", "events": "env/task/events", "maps": "env/task/maps", "levels": "env/task/levels",
    "badges": "env/task/badges", "cells_of_all": "env/coverage/cells", "maps_of_all": "env/coverage/maps",
    "entropy": "losses/entropy",
}  # fmt: skip
POINTS = 40  # of a curve
LOOK_SECONDS = 5.0  # between two looks at the memory
SCALE, MILLISECONDS = 3, 250  # of a film of coverage: pixels of a cell, and of each picture

Job = tuple[str, int]  # variant, seed


def records(folder: Path) -> list[dict[str, Any]]:
    """A run's records so far; the last line may be in writing."""
    path, found = folder / METRICS, []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def thinned(values: Sequence[Any]) -> list[Any]:
    """At most POINTS of them, with the last one."""
    step = -(-len(values) // POINTS) or 1
    return [*values[: len(values) - 1 : step], *values[-1:]]


def row_of(folder: Path) -> dict[str, Any]:
    """The facts of a run.

    Raises: ConfigError for a folder without a run's records.
    """
    found = records(folder)
    trained = [record for record in found if "charts/seconds" in record]
    if not trained:
        raise ConfigError(f"{folder} has no records of a training: give a run's folder")
    manifest = json.loads((folder / MANIFEST).read_text())
    last = trained[-1]
    facts: dict[str, Any] = {"script": manifest["exp_name"], "processes": manifest["processes"]}
    facts |= {"envs": manifest["config"]["num_envs"] * manifest["processes"], "flags": portable(manifest["config"])}
    facts |= {"steps": last["global_step"], "seconds": round(last["charts/seconds"], 1)}
    first = next(record for record in trained if record["global_step"] >= last["global_step"] / 5)  # compiled by then
    facts["steps_per_second"] = None
    if (seconds := last["charts/seconds"] - first["charts/seconds"]) > 0:
        facts["steps_per_second"] = round((last["global_step"] - first["global_step"]) / seconds)
    parts = [{name: value for name, value in each.items() if name.startswith("time/")} for each in trained]
    timed = [part for part in parts if part][1:]  # in the first one kernels are compiled
    facts["milliseconds_of_a_step"] = {
        name.removeprefix("time/"): round(1e3 * sum(part[name] for part in timed) / len(timed), 2)
        for name in (timed[0] if timed else ())
    }
    facts["curves"] = {
        name: thinned([[each["global_step"], round(each[metric], 3)] for each in found if metric in each])
        for name, metric in CURVES.items()
    }
    lines = folder / "milestones.jsonl"
    texts = lines.read_text().splitlines() if lines.exists() else []
    facts["milestones"] = [[each["name"], each["step"], each["seconds"]] for each in map(json.loads, texts)]
    files = [path for path in folder.rglob("*") if path.is_file()]
    facts["files"] = {"number": len(files), "mb": round(sum(path.stat().st_size for path in files) / 1e6, 1)}
    return facts


def keep(folder: Path, name: str, out: Path) -> None:
    """Writes the last picture of coverage beside the record, and a film of all of them."""
    paths = sorted((folder / "media").glob("coverage_*.png"), key=lambda path: int(path.stem.split("_")[1]))
    if not paths:
        return
    shutil.copy(paths[-1], out.with_name(f"{out.stem}-{name}.png"))
    pictures = [Image.open(path).convert("RGB") for path in paths]
    size = tuple(max(lengths) for lengths in zip(*(picture.size for picture in pictures), strict=True))
    scaled = (size[0] * SCALE, size[1] * SCALE)  # a picture grows with the maps that were seen
    frames = [picture.crop((0, 0, *size)).resize(scaled, Image.Resampling.NEAREST) for picture in pictures]
    frames[0].save(
        out.with_name(f"{out.stem}-{name}.gif"), save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0
    )


class MemoryLog:
    """The memory of the machine's GPUs and of this machine over time: [seconds, GiB of the host, [GiB of each GPU]]."""

    def __init__(self) -> None:
        self.begun, self.looked, self.rows = time.time(), 0.0, list[list[Any]]()

    def look(self) -> None:
        """Adds a row, if the last one is old enough."""
        now = time.time()
        if now < self.looked + LOOK_SECONDS:
            return
        self.looked = now
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        host = sum(sign * int(fields[name].split()[0]) for sign, name in ((1, "MemTotal"), (-1, "MemAvailable")))
        self.rows.append([round(now - self.begun, 1), round(host / 2**20, 2), self.gpus()])

    @staticmethod
    def gpus() -> list[float]:
        """GiB in use on each GPU; empty without NVIDIA's driver."""
        if shutil.which("nvidia-smi") is None:
            return []
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
        return [round(int(line) / 1024, 2) for line in found.split()]


def train(job: Job, device: str, plan: Any, record: Record) -> None:
    """One run, and its row."""
    variant, seed = job
    name = f"{variant}-{seed}"
    folder, memory, end = plan.folder / name, MemoryLog(), time.time() + plan.seconds + plan.patience
    flags: dict[str, object] = {"game": plan.game, "seed": seed, "device": device, "run_dir": folder}
    flags |= {"max_seconds": plan.seconds, "total_env_steps": plan.steps, "stop_at_success": 2, "eval_share": 0.01}
    flags |= {"media_every": NEVER}
    words = [
        str(trainer_scripts()[plan.script]),
        *(f"--{key.replace('_', '-')}={value}" for key, value in flags.items()),
    ]

    def enough() -> bool:
        memory.look()
        return time.time() >= end

    with folder.with_suffix(".log").open("wb") as log, contextlib.suppress(RuntimeError):  # the log says why
        plan.side_by_side.call([[*words, *plan.flags, *plan.variants[variant]]], enough, log)
    facts: dict[str, Any] = {"variant": variant, "seed": seed}
    try:
        facts |= row_of(folder) | {"memory": thinned(memory.rows)}
        keep(folder, name, plan.out)
    except ConfigError as error:
        facts["error"] = (folder.with_suffix(".log").read_text().strip().splitlines() or [str(error)])[-1]
    print(said(facts), flush=True)
    record.add(facts)


def said(row: dict[str, Any]) -> str:
    """A row as a line."""
    if "error" in row:
        return f"{row['variant']} seed {row['seed']}: {row['error']}"
    last = ", ".join(f"{name} {step:,} ({seconds:.0f} s)" for name, step, seconds in row["milestones"][-3:])
    speed = f"{row['steps']:,} steps, {row['seconds']} s, {row['steps_per_second'] or 0:,} steps/s"
    return f"{row['variant']} seed {row['seed']}: {speed}, {len(row['milestones'])} milestones: {last}"


def table(rows: Iterable[dict[str, Any]]) -> str:
    """A Markdown table: a line for each run."""
    lines = ["| settings | seed | Game Boys | steps | seconds | steps/s | milestones | the last, after | files |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    for row in rows:
        if "error" in row:
            continue
        name, step, seconds = row["milestones"][-1] if row["milestones"] else ("none", 0, 0)
        cells = [row["variant"], row["seed"], f"{row['envs']:,}", f"{row['steps']:,}"]
        cells += [row["seconds"], f"{row['steps_per_second'] or 0:,}", len(row["milestones"])]
        cells += [f"{name}, {step:,} steps, {seconds:.0f} s", f"{row['files']['number']}, {row['files']['mb']} MB"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def parse(argv: Sequence[str] | None) -> Any:
    """The command line.

    Raises: ConfigError.
    """
    parser = argparse.ArgumentParser(prog="benchmarks.training.long_game", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="gateward", help="a game with milestones (default: gateward)")
    parser.add_argument("--script", default="ppo_lite", help="a trainer of cleanrl_style/ (default: ppo_lite)")
    parser.add_argument("--variant", action="append", help='settings, "NAME: FLAGS"; may be given several times')
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--seconds", type=float, default=150, help="of a training, at most (default: 150)")
    parser.add_argument("--steps", type=int, default=NEVER, help="of a training, at most (default: no limit)")
    parser.add_argument("--patience", type=float, default=120, help="seconds for a run beside its training")
    parser.add_argument("--device", default="cpu", help="devices with commas (default: cpu)")
    parser.add_argument("--jobs", type=int, default=1, help="runs beside each other on a device (default: 1)")
    parser.add_argument(
        "--folder", type=Path, help="folder for the runs, which stay there (default: beside the record)"
    )
    parser.add_argument("--read", type=Path, nargs="+", help="rows of these runs, which have been made already")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    words = list(sys.argv[1:] if argv is None else argv)
    split = words.index("--") if "--" in words else len(words)
    plan = parser.parse_args(words[:split])
    plan.flags = words[split + 1 :]
    plan.seeds = [int(text) for text in plan.seeds.split(",")]
    named = [text.partition(":")[::2] for text in plan.variant or ["defaults:"]]
    plan.variants = {name: flags.split() for name, flags in named}
    if plan.script not in trainer_scripts():
        raise ConfigError(f"--script {plan.script!r:.40} is unknown: give one of {', '.join(trainer_scripts())}")
    check_target(plan.out)
    plan.folder = plan.folder or plan.out.with_suffix(".runs")
    plan.devices, plan.device = plan.device.split(","), plan.device.split(",")[0]
    return plan


def main(argv: Sequence[str] | None = None) -> int:
    """Makes or reads all runs, writes the record, prints the table; exit code 1 where a run failed, 2 for bad input."""
    try:
        plan = parse(argv)
        record = Record(plan, "rows")
        for folder in plan.read or ():
            row = row_of(folder)
            record.add({"variant": folder.name, "seed": row["flags"]["seed"], **row})
            keep(folder, folder.name, plan.out)
        if not plan.read:
            plan.side_by_side = SideBySide(plan.devices, plan.jobs)
            plan.folder.mkdir(parents=True, exist_ok=True)
            work = [(variant, seed) for seed, variant in itertools.product(plan.seeds, plan.variants)]
            plan.side_by_side.each(work, lambda job, devices: train(job, devices[0], plan, record))
    except (GBxCuLEError, OSError) as error:
        print(f"benchmarks.training.long_game: {error}", file=sys.stderr)
        return 2
    print(table(record.rows))
    return int(any("error" in row for row in record.rows))


if __name__ == "__main__":
    sys.exit(main())
