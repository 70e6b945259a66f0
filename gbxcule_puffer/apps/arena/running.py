"""Several runs side by side on one device, each in a process of its own, each ending in a record."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.apps import side_by_side
from gbxcule_puffer.apps.arena.recording import has_ended
from gbxcule_puffer.apps.side_by_side import NEVER, WARM_SECONDS, SideBySide
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.errors import GBxCuLEError, printable
from gbxcule_puffer.files import make_folder

RUNS = "runs"  # folder in the folder of the records
# The final evaluation is the record's. No run ends early. Episodes do not all end in the same step, which would leave a
# curve of few points.
BARE = {**side_by_side.BARE, "stagger": True}


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
        """Trains and records what has no record yet; a run that was cut off begins anew. Returns the names of those
        that failed, which do not keep others from running."""
        make_folder(self.out / RUNS)
        missing = [job for job in self.work if not self.record(job).exists()]
        if len(missing) < len(self.work):
            print(f"{len(self.work) - len(missing)} of {len(self.work)} runs have their record", flush=True)
        if missing and self.side_by_side.devices[0] != "cpu":
            self._warm_up(missing[0])
        good = self.side_by_side.each(missing, self._run)
        return [job.name for job, is_good in zip(missing, good, strict=True) if not is_good]

    def record(self, job: Job) -> Path:
        """The file of a run's record."""
        return self.out / f"{job.name}.json"

    def _run(self, job: Job, devices: Sequence[str]) -> bool:
        """Trains and records on a device; False, with a line that says why, where it fails."""
        run, (device,) = self.out / RUNS / job.name, devices
        try:
            if not has_ended(run):
                shutil.rmtree(run, ignore_errors=True)
                self._train(job, run, device, self.seconds, self.steps)
            words = ["-m", "gbxcule_puffer", "arena", "record", str(run), "--out", str(self.record(job))]
            words += ["--agent", job.agent, "--episodes", str(self.episodes), "--device", device]
            (out,) = self.side_by_side.call([[*words, "--jobs", str(self.side_by_side.jobs)]])
            print(out, end="", flush=True)
        except (RuntimeError, GBxCuLEError) as error:
            if not self.side_by_side.stopped.is_set():
                print(f"{job.name}: failed: {printable(error)}", flush=True)
            return False
        return True

    def _train(self, job: Job, run: Path, device: str, seconds: float | None, steps: int | None) -> None:
        flags = {"game": job.game, "seed": job.seed, "device": device, "run_dir": run, **BARE}
        flags |= {} if seconds is None else {"max_seconds": seconds}
        flags["total_env_steps"] = steps or NEVER
        self.side_by_side.call([[str(job.script), *as_words(flags), *self.flags]])

    def _warm_up(self, job: Job) -> None:
        """Fills the cache of compiled kernels, which takes a minute: else all runs would compile them at once."""
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(RuntimeError):  # the run itself says why
            self._train(job, Path(folder) / "run", self.side_by_side.devices[0], WARM_SECONDS, None)


def jobs_of(games: Sequence[str], agents: Sequence[tuple[str, Path]], seeds: Sequence[int]) -> list[Job]:
    """A job for each game, agent and seed; the first seed of all comes before the second one of any."""
    return [Job(game, script, name, seed) for seed, game, (name, script) in itertools.product(seeds, games, agents)]
