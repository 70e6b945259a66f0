"""Several runs side by side on one device, each in a process of its own, each ending in a record."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.apps import side_by_side
from gbxcule_puffer.apps.arena.recording import has_ended
from gbxcule_puffer.apps.side_by_side import NEVER, SideBySide
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.errors import GBxCuLEError, printable
from gbxcule_puffer.files import make_folder

RUNS = "runs"  # folder in the folder of the records
# The final evaluation is the record's: the training's own one gets the least time that there is. No run ends early.
# Episodes do not all end in the same step, which would leave a curve of few points.
BARE = {**side_by_side.BARE, "eval_every_steps": None, "eval_share": 0, "eval_device": "cpu", "stagger": True}


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

    seconds, steps: of a training, at most; episodes: of a final evaluation; flags: words for the trainers.
    """

    work: Sequence[Job]
    out: Path
    side_by_side: SideBySide
    seconds: float | None
    steps: int | None
    episodes: int
    flags: Sequence[str]

    def go(self) -> list[str]:
        """Trains and records what has no record yet; a run that was cut off starts again. Returns the names of those
        that failed, which do not keep others from running.

        Records are made on the CPU. Beside a GPU, that is while it trains the next runs.
        """
        make_folder(self.out / RUNS)
        missing = [job for job in self.work if not self.record(job).exists()]
        if len(missing) < len(self.work):
            print(f"{len(self.work) - len(missing)} of {len(self.work)} runs have their record", flush=True)
        if self.side_by_side.devices[0] == "cpu":
            good = self.side_by_side.each(missing, lambda job, devices: self._record(job, self._train(job, devices)))
        else:
            if missing:
                self._warm_up()
            good = self.side_by_side.each(missing, self._train, after=self._record)
        return [job.name for job, is_good in zip(missing, good, strict=True) if not is_good]

    def record(self, job: Job) -> Path:
        """The file of a run's record."""
        return self.out / f"{job.name}.json"

    def _record(self, job: Job, is_trained: bool) -> bool:
        """Records a run that is trained; False, with a line that says why, where that fails."""
        if not is_trained:
            return False
        words = ["-m", "gbxcule_puffer", "arena", "record", str(self._folder(job)), "--out", str(self.record(job))]
        words += ["--agent", job.agent, "--episodes", str(self.episodes), "--jobs", str(self.side_by_side.jobs)]
        out = self._call(job, words)
        print(out or "", end="", flush=True)
        return out is not None

    def _train(self, job: Job, devices: Sequence[str]) -> bool:
        """Trains on a device, unless that was done before; False, with a line that says why, where it fails."""
        run = self._folder(job)
        if has_ended(run):
            return True
        shutil.rmtree(run, ignore_errors=True)
        flags = {"game": job.game, "seed": job.seed, "device": devices[0], "run_dir": run, **BARE}
        flags |= {} if self.seconds is None else {"max_seconds": self.seconds}
        flags["total_env_steps"] = self.steps or NEVER
        return self._call(job, [str(job.script), *as_words(flags), *self.flags]) is not None

    def _call(self, job: Job, words: Sequence[str]) -> str | None:
        """The output of a program for a run; None, with a line that says why, where it fails."""
        try:
            return self.side_by_side.call([words])[0]
        except (RuntimeError, GBxCuLEError) as error:
            if not self.side_by_side.stopped.is_set():
                print(f"{job.name}: failed: {printable(error)}", flush=True)
            return None

    def _folder(self, job: Job) -> Path:
        return self.out / RUNS / job.name

    def _warm_up(self) -> None:
        """Fills the cache of compiled kernels: else the first runs would wait for them, one after the other."""
        warm = ["-m", "gbxcule_puffer", "warm", "--device"]
        self.side_by_side.call([[*warm, self.side_by_side.devices[0]], [*warm, "cpu"]])


def jobs_of(games: Sequence[str], agents: Sequence[tuple[str, Path]], seeds: Sequence[int]) -> list[Job]:
    """A job for each game, agent and seed; the first seed of all comes before the second one of any."""
    return [Job(game, script, name, seed) for seed, game, (name, script) in itertools.product(seeds, games, agents)]
