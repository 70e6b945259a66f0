"""Several runs side by side on one device, each in a process of its own, each ending in a record."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from gbxcule_puffer.apps.arena.recording import has_ended
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.errors import GBxCuLEError, printable
from gbxcule_puffer.files import make_folder
from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.provenance import usable_cores

NEVER = 10**12
RUNS = "runs"  # folder in the folder of the records
WARM_SECONDS = 0.01
# No evaluations or films beside the training: the final evaluation is the record's. No run ends early. Episodes do not
# all end in the same step, which would leave a curve of few points.
BARE = {"eval_every_steps": NEVER, "checkpoint_every": NEVER, "media_every": NEVER, "eval_envs": 1, "eval_episodes": 1}
BARE |= {"stop_at_success": 2, "stagger": True}


@dataclass(frozen=True)
class Job:
    """A run: a game, the trainer's file, its name in the tables, and its seed."""

    game: str
    script: Path
    agent: str
    seed: int

    @property
    def name(self) -> str:
        """Its name in messages, and of its folder and record."""
        return f"{self.game}__{self.agent}__{self.seed}"


@dataclass(frozen=True)
class Plan:
    """All runs.

    devices, jobs: several devices, and runs at a time on each; seconds, steps: of a training, at most; episodes: of a
    final evaluation; flags: words for the trainers.
    """

    work: Sequence[Job]
    out: Path
    devices: Sequence[str]
    jobs: int
    seconds: float | None
    steps: int | None
    episodes: int
    flags: Sequence[str]
    children: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: threading.Event = field(default_factory=threading.Event)

    def go(self) -> list[str]:
        """Trains and records what has no record yet; a run that was cut off begins anew. Returns the names of those
        that failed, which do not keep others from running."""
        make_folder(self.out / RUNS)
        missing = [job for job in self.work if not self.record(job).exists()]
        if len(missing) < len(self.work):
            print(f"{len(self.work) - len(missing)} of {len(self.work)} runs have their record", flush=True)
        if missing and self.devices[0] != "cpu":
            self._warm_up(missing[0])
        free = SimpleQueue[str]()
        for device in self.jobs * list(self.devices):
            free.put(device)
        with ThreadPoolExecutor(self.jobs * len(self.devices)) as pool, ended_by(signal.SIGTERM):
            try:
                good = [done.result() for done in [pool.submit(self._run, job, free) for job in missing]]
            except BaseException:  # Ctrl-C, or a time limit: no run goes on alone
                self.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for child in list(self.children):
                    child.terminate()
                raise
        return [job.name for job, is_good in zip(missing, good, strict=True) if not is_good]

    def record(self, job: Job) -> Path:
        """The file of a run's record."""
        return self.out / f"{job.name}.json"

    def _run(self, job: Job, free: SimpleQueue[str]) -> bool:
        """Trains and records on a device that is free; False, with a line that says why, where it fails."""
        run, device = self.out / RUNS / job.name, free.get()
        try:
            if not has_ended(run):
                shutil.rmtree(run, ignore_errors=True)
                self._train(job, run, device, self.seconds, self.steps)
            words = ["-m", "gbxcule_puffer", "arena", "record", str(run), "--out", str(self.record(job))]
            words += ["--agent", job.agent, "--episodes", str(self.episodes), "--device", device]
            print(self._call([*words, "--jobs", str(self.jobs)]), end="", flush=True)
        except (RuntimeError, GBxCuLEError) as error:
            if not self.stopped.is_set():
                print(f"{job.name}: failed: {printable(error)}", flush=True)
            return False
        finally:
            free.put(device)
        return True

    def _train(self, job: Job, run: Path, device: str, seconds: float | None, steps: int | None) -> None:
        flags = {"game": job.game, "seed": job.seed, "device": device, "run_dir": run, **BARE}
        flags |= {} if seconds is None else {"max_seconds": seconds}
        flags["total_env_steps"] = steps or NEVER
        self._call([str(job.script), *as_words(flags), *self.flags])

    def _warm_up(self, job: Job) -> None:
        """Fills the cache of compiled kernels, which takes a minute: else all runs would compile them at once."""
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(RuntimeError):  # the run itself says why
            self._train(job, Path(folder) / "run", self.devices[0], WARM_SECONDS, None)

    def _call(self, words: Sequence[str]) -> str:
        """The standard output of a program in Python.

        Raises: RuntimeError with its last message where it fails.
        """
        threads = str(max(1, usable_cores() // (self.jobs * len(self.devices))))
        environment = {"OMP_NUM_THREADS": threads, "PYTHONWARNINGS": "ignore", **child_environment()}
        if self.stopped.is_set():
            raise RuntimeError("stopped")
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, *words], env=environment, **pipes) as child:
            self.children.add(child)
            out, errors = child.communicate()
            self.children.discard(child)
        if child.returncode:
            lines = errors.strip().splitlines() or [f"exit code {child.returncode}"]
            raise RuntimeError(lines[-1])
        return out


@contextlib.contextmanager
def ended_by(number: signal.Signals) -> Iterator[None]:
    """Inside, a signal that would end this process at once raises SystemExit in it."""

    def end(*_: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def jobs_of(games: Sequence[str], agents: Sequence[tuple[str, Path]], seeds: Sequence[int]) -> list[Job]:
    """A job for each game, agent and seed; the first seed of all comes before the second one of any."""
    return [Job(game, script, name, seed) for seed, game, (name, script) in itertools.product(seeds, games, agents)]
