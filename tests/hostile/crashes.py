"""Trainers that are killed, and trainers whose disk is full: nothing is lost but what came after the last checkpoint.

    python -m tests.hostile.crashes --kills 50 --sizes 20

Each of the trainers runs on the toy, is stopped by SIGKILL at a moment of its run or by a limit on the size of its
files, and goes on with --resume; its records have to be those of a run that was never stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from cleanrl_style import a2c_streaming, dqn_nstep, ppo_lite, pqn
from tests.support.training_runs import TIMES

MODULES = {module.EXP_NAME: module for module in (a2c_streaming, ppo_lite, dqn_nstep, pqn)}
TRAINERS = tuple(MODULES)
FLAGS = ["--smoke", "--env", "toy", "--device", "cpu", "--num-envs", "8", "--total-env-steps", "1024"]
FLAGS += ["--checkpoint-every", "128", "--eval-every-steps", "512", "--media-every", "512", "--stop-at-success", "2"]
OWN_FLAGS = {"dqn_nstep": ["--keep-replay"]}


class Started:
    """A run in a child process, forked where torch is imported already: that takes longer than the run."""

    def __init__(self, trainer: str, flags: list[str], largest: int | None = None) -> None:
        """largest: bytes of its largest file."""
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(writing, 2)
                if largest is not None:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
                code = MODULES[trainer].main(flags)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 98
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(writing)

    def end(self) -> tuple[int, str]:
        """The exit code, negative for a signal, and what was written to stderr."""
        with os.fdopen(self._reading) as stderr:
            text = stderr.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), text


def fresh(trainer: str, folder: Path) -> list[str]:
    return [*FLAGS, *OWN_FLAGS.get(trainer, ()), "--run-dir", str(folder)]


def records(folder: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without times."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.startswith(TIMES)} for line in lines]


def resumed(trainer: str, folder: Path, whole: Path) -> str:
    """The fault where the run in `folder` does not go on to what `whole` has; empty where it does."""
    begun = (folder / "manifest.json").exists()
    code, text = Started(trainer, ["--resume", str(folder)] if begun else fresh(trainer, folder)).end()
    if code == 2 and "give more --total-env-steps" in text:
        text = ""  # it was through
    elif code:
        return f"--resume: exit code {code}: {text[-300:]}"
    left = [path.name for path in folder.rglob(".part-*")]
    if left or "Traceback" in text:
        return f"left {left}, {text[-300:]}"
    return "" if records(folder) == records(whole) else "its records differ"


def killed(trainer: str, folder: Path, seconds: float, whole: Path) -> str:
    """What went wrong with a run that is killed after `seconds`."""
    process = Started(trainer, fresh(trainer, folder))
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.end()
    return resumed(trainer, folder, whole)


def on_a_full_disk(trainer: str, folder: Path, largest: int, whole: Path) -> str:
    """What went wrong with a run none of whose files may have more than `largest` bytes."""
    code, text = Started(trainer, fresh(trainer, folder), largest).end()
    lines = [line for line in text.splitlines() if "elapsed" not in line]  # but for the progress
    if code not in (0, 1) or "Traceback" in text or len(lines) > 1:
        return f"exit code {code}: {text[-600:]}"
    return resumed(trainer, folder, whole)


def main() -> int:
    """Prints a line for each fault and a table; exit code 1 where anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="moments, over all trainers")
    parser.add_argument("--sizes", type=int, default=20, help="sizes of the disk, over all trainers")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and sizes")
    args = parser.parse_args()
    generator, faults = random.Random(args.seed), []
    with tempfile.TemporaryDirectory() as name:
        folder, durations, largest = Path(name), {}, {}
        for trainer in TRAINERS:
            begun = time.monotonic()
            code, text = Started(trainer, fresh(trainer, folder / trainer)).end()
            assert code == 0, f"{trainer}: exit code {code}: {text}"
            durations[trainer] = time.monotonic() - begun
            largest[trainer] = max(path.stat().st_size for path in (folder / trainer).rglob("*") if path.is_file())
        for number in range(args.kills + args.sizes):
            trainer, run = TRAINERS[number % len(TRAINERS)], folder / str(number)
            if number < args.kills:
                moment = generator.uniform(0, 1) * durations[trainer]
                what, fault = f"killed after {moment:.2f} s", killed(trainer, run, moment, folder / trainer)
            else:
                size = int(largest[trainer] * generator.random() ** 3)
                what, fault = f"disk of {size:,} bytes", on_a_full_disk(trainer, run, size, folder / trainer)
            print(f"{trainer:14} {what:28} {fault or 'went on as if nothing had happened'}", flush=True)
            faults += [fault] if fault else []
    print(f"{args.kills} kills, {args.sizes} full disks, {len(TRAINERS)} trainers: {len(faults)} lost anything else")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
