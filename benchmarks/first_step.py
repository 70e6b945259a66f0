"""Seconds from a command to its first step and to its report, with an empty and with a full kernel cache.

    python -m benchmarks.first_step --trees before=DIR after=. [--repeats 2] [--out FILE] [COMMAND ...]

COMMAND: of `puffer`, by default a short `train a2c`. Each tree is a clone, or an installation's folder with a wheel's
files. All trees run in turns, each with a cache of its own that is empty at first. Beside seconds of the clock stand
those of the processor, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gbxcule_puffer.provenance import cpu_name, usable_cores, versions

COMMAND = ["train", "a2c", "--total-env-steps", "4096", "--eval-episodes", "4"]
CHILD = """
import sys, time
from gbxcule_puffer.env import GBxCuLEEnv
step = GBxCuLEEnv.step
def first(self, actions):
    found = step(self, actions)
    GBxCuLEEnv.step = step
    if self.device.type == "cuda":
        import torch
        torch.cuda.synchronize()
    print("first step", time.time(), time.process_time(), file=sys.stderr, flush=True)
    return found
GBxCuLEEnv.step = first
from gbxcule_puffer.cli import main
sys.exit(main(sys.argv[1:]))
"""


def measure(tree: Path, cache: Path, command: list[str]) -> dict[str, float]:
    """One run of a tree: seconds, and those of the processor, to the first step and to the end."""
    path = os.pathsep.join([str(tree), *filter(None, [os.environ.get("PYTHONPATH")])])
    names = {"PYTHONPATH": path, "WARP_CACHE_PATH": str(cache), "GBXCULE_NO_NATIVE": "1"}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, "-c", CHILD, *command]
        done = subprocess.run(arguments, cwd=folder, env=os.environ | names, capture_output=True, text=True)
    end, after = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("first step"))
    clock, processor = map(float, line.split()[2:])
    whole = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    found = {"first_step": clock - start, "first_step_cpu": processor, "report": end - start, "report_cpu": whole}
    return {name: round(seconds, 2) for name, seconds in found.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", nargs="+", metavar="NAME=DIR", required=True)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    trees = {name: Path(folder).resolve() for name, folder in (each.split("=") for each in args.trees)}
    for tree in trees.values():
        compileall.compile_dir(str(tree / "gbxcule_puffer"), quiet=1)  # as pip does
    command = args.command or COMMAND
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {"cold": [], "warm": []} for name in trees}
    for _ in range(args.repeats):
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory() as cache:
                for kind in ("cold", "warm"):
                    runs[name][kind].append(measure(tree, Path(cache), command))
                    print(name, kind, runs[name][kind][-1], file=sys.stderr, flush=True)
    medians = {
        name: {kind: {part: statistics.median(run[part] for run in of) for part in of[0]} for kind, of in kinds.items()}
        for name, kinds in runs.items()
    }
    record: dict[str, Any] = {"command": " ".join(command), "cpu": cpu_name(), "cores": usable_cores()}
    record |= {"versions": versions(), "medians": medians, "runs": runs}
    text = json.dumps(record, indent=1)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
