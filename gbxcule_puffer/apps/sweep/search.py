"""The search: trainings of settings that Optuna proposes, side by side; those that lag behind end early."""

from __future__ import annotations

import contextlib
import json
import shutil
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from gbxcule_puffer.apps.side_by_side import BARE, NEVER, WARM_SECONDS, SideBySide
from gbxcule_puffer.apps.sweep.space import Dimension
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.errors import ConfigError, printable
from gbxcule_puffer.files import Kind
from gbxcule_puffer.trainers.curves import EPISODES, curve_of, last_score, reached

JOURNAL, RUNS = "journal.log", "runs"  # in the folder of a sweep
SWEEP = Kind("sweep", ConfigError, "give another --out")
RUNGS = (1, 3)  # ninths of a trial at which the best third goes on
WHOLE = 9
FAILED = 3  # trials that have to fail, and none has ended well, for the sweep to end
# What a sweep keeps of itself (Study.user_attrs), and of a trial (Trial.user_attrs).
SETTINGS, SPENT = "settings", "seconds"
SCORE, SECONDS, STEPS, ERROR = "score", "seconds", "steps", "error"


@dataclass(frozen=True)
class Plan:
    """A sweep.

    words: flags of all trainings, without the device; single: more of them, which are not part of the settings that are
    found; seconds, steps: of a training, one of them; reach: the score to
    come to as soon as possible, else the score itself counts; metric: the tag of a run's records that is the score;
    defaults: the values that the trainer has for the space; budget: seconds of the whole sweep; trials: how many, at
    most; halving: trials that lag behind end at RUNGS.
    """

    script: Path
    words: Sequence[str]
    single: Mapping[str, str]
    space: Sequence[Dimension]
    seeds: Sequence[int]
    seconds: float | None
    steps: int | None
    reach: float | None
    metric: str
    defaults: Mapping[str, Any]
    out: Path
    budget: float | None
    trials: int | None
    halving: bool
    side_by_side: SideBySide

    @property
    def settings(self) -> dict[str, Any]:
        """The facts that must not change where a sweep goes on."""
        found: dict[str, Any] = {"trainer": self.script.stem, "flags": list(self.words), "seeds": list(self.seeds)}
        found |= {"space": {each.name: each.text for each in self.space}, "metric": self.metric}
        return found | {"seconds": self.seconds, "steps": self.steps, "reach": self.reach}

    @property
    def column(self) -> int:
        """Of a curve: its seconds or its steps, which the length of a trial is measured in."""
        return 1 if self.steps is None else 0

    @property
    def unit(self) -> str:
        """The unit of a trial's length."""
        return "seconds" if self.steps is None else "steps"

    def has_reached(self, trial: FrozenTrial) -> bool:
        """True for a trial that came to the score that is wanted."""
        if self.reach is None or trial.state != TrialState.COMPLETE or trial.value is None:
            return False
        return trial.value < self.length

    @property
    def length(self) -> float:
        """Of a training."""
        length = self.seconds if self.steps is None else self.steps
        assert length is not None
        return length


def open_study(out: Path) -> optuna.Study | None:
    """The study in a sweep's folder, None where there is none.

    Raises: ConfigError for a journal that is damaged.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not (out / JOURNAL).exists():
        return None
    try:
        return optuna.load_study(study_name=None, storage=_storage(out))
    except Exception as error:  # of many kinds
        raise SWEEP.bad(out, f"its {JOURNAL} is damaged ({printable(error)!s:.200})") from None


def _storage(out: Path) -> optuna.storages.JournalStorage:
    """The journal of a sweep, whose folder this process holds, without a line that a kill cut off."""
    path = out / JOURNAL
    if path.exists():
        data = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
    path.with_name(f"{JOURNAL}.lock").unlink(missing_ok=True)
    return optuna.storages.JournalStorage(JournalFileBackend(str(path)))


class Search:
    """The trials of a sweep in its folder, which this process holds; goes on with those that are there."""

    def __init__(self, plan: Plan) -> None:
        """Raises: ConfigError where the folder has another sweep."""
        self.plan = plan
        direction = "maximize" if plan.reach is None else "minimize"
        study = open_study(plan.out) or optuna.create_study(
            storage=_storage(plan.out), direction=direction, study_name="sweep"
        )
        known = study.user_attrs.get(SETTINGS) or plan.settings
        for name, value in plan.settings.items():
            if known.get(name) != value:
                raise SWEEP.bad(plan.out, f"has {name} {known.get(name)!s:.100}, not {value!s:.100}")
        study.set_user_attr(SETTINGS, plan.settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(multivariate=True, constant_liar=True, seed=len(study.get_trials()))
        halving = optuna.pruners.SuccessiveHalvingPruner(RUNGS[0], RUNGS[1])
        study.sampler, study.pruner = sampler, halving if plan.halving else optuna.pruners.NopPruner()
        self.study, self._lock = study, threading.Lock()
        self._requeue()
        if not study.get_trials():
            found = {each.name: each.parameter(plan.defaults[each.name]) for each in plan.space}
            if None not in found.values():
                study.enqueue_trial(found)

    def _requeue(self) -> None:
        """Trials that were running when the sweep ended have failed, and their settings come again."""
        for trial in self.study.get_trials(states=[TrialState.RUNNING]):
            self.study.tell(trial.number, state=TrialState.FAIL)
            self.study.enqueue_trial(trial.params)

    def go(self) -> None:
        """Runs trials until the budget or the number of trials is used up.

        Raises: ConfigError where all of the first trials fail.
        """
        plan, runner = self.plan, self.plan.side_by_side
        self._begun, self._before = time.monotonic(), float(self.study.user_attrs.get(SPENT, 0.0))
        if runner.devices[0] != "cpu" and not self.is_over():
            self._warm_up()
        together = len(plan.seeds)
        workers = range(runner.jobs * len(runner.devices) // together)
        try:
            runner.each(workers, lambda _, devices: self._work(devices), together)
        finally:
            self.study.set_user_attr(SPENT, self.spent)

    @property
    def spent(self) -> float:
        """Seconds of the sweep, with those before it was interrupted."""
        return self._before + time.monotonic() - self._begun

    def is_over(self) -> bool:
        """True once the budget, or the number of trials, is used up."""
        over = self.plan.budget is not None and self.spent >= self.plan.budget
        known = self.study.get_trials(deepcopy=False)
        begun = sum(trial.state not in (TrialState.FAIL, TrialState.WAITING) for trial in known)
        return over or (self.plan.trials is not None and begun >= self.plan.trials)

    def _work(self, devices: Sequence[str]) -> None:
        while True:
            with self._lock:
                if self.is_over() or self.plan.side_by_side.stopped.is_set():
                    return
                trial = self.study.ask()
                values = {each.name: each.suggest(trial) for each in self.plan.space}
            self._try(trial, values, devices)
            self.study.set_user_attr(SPENT, self.spent)

    def _try(self, trial: Trial, values: Mapping[str, Any], devices: Sequence[str]) -> None:
        """One trial: its trainings, and what came of them. One that the end of the budget cuts off stays as it is in
        the journal, where it counts as running."""
        plan = self.plan
        folders = [plan.out / RUNS / f"{trial.number}__{seed}" for seed in plan.seeds]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        rungs, error = _Rungs(plan, trial), None
        is_cut = False

        def enough() -> bool:
            nonlocal is_cut
            is_cut = plan.budget is not None and self.spent >= plan.budget
            curves = [curve_of(folder, plan.metric) for folder in folders]
            is_there = plan.reach is not None and all(reached(curve, plan.reach) for curve in curves)
            return is_cut or is_there or rungs.is_behind(curves)

        try:
            words = [
                self._words(values, seed, device, folder)
                for seed, device, folder in zip(plan.seeds, devices, folders, strict=True)
            ]
            plan.side_by_side.call(words, enough)
        except RuntimeError as failure:
            error = printable(failure)
        if is_cut or plan.side_by_side.stopped.is_set():
            return
        curves = [curve_of(folder, plan.metric) for folder in folders]
        self._tell(trial, values, curves, error, rungs.pruned)

    def _tell(
        self, trial: Trial, values: Mapping[str, Any], curves: list[list[list[float]]], error: str | None, pruned: bool
    ) -> None:
        scores = [score for curve in curves if (score := last_score(curve)) is not None]
        value = self._value(curves, scores)
        if error is None and value is None and not pruned:
            error = f"fewer than {EPISODES} episodes with {self.plan.metric} ended: give longer trials"
        facts = {SCORE: statistics.fmean(scores) if len(scores) == len(curves) else None, ERROR: error}
        facts[SECONDS] = max([curve[-1][1] for curve in curves if curve], default=0.0)
        facts[STEPS] = max([curve[-1][0] for curve in curves if curve], default=0)
        for name, fact in facts.items():
            trial.set_user_attr(name, fact)
        if error is not None or pruned:  # one that fails is a bad one, which the sampler has to know
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            self.study.tell(trial, value)
        with self._lock:
            print(f"trial {trial.number}: {self._outcome(facts, value, pruned)}: {in_words(values)}", flush=True)
        known = self.study.get_trials(deepcopy=False)
        failures = [each for each in known if each.user_attrs.get(ERROR)]
        if len(failures) >= FAILED and not any(each.state == TrialState.COMPLETE for each in known):
            raise ConfigError(
                f"the first {len(failures)} trials failed, the last with: {failures[-1].user_attrs[ERROR]}"
            )

    def _outcome(self, facts: Mapping[str, Any], value: float | None, pruned: bool) -> str:
        if facts[ERROR] is not None:
            return f"failed: {facts[ERROR]}"
        score = "no score yet" if facts[SCORE] is None else f"{facts[SCORE]:.4g}"
        text = f"{score} after {facts[SECONDS]:.0f} s, {facts[STEPS]:,} steps"
        if pruned:
            return f"ended early, {text}"
        is_there = self.plan.reach is not None and value is not None and value < self.plan.length
        return f"{text}, reached {self.plan.reach:g}" if is_there else text

    def _value(self, curves: Sequence[list[list[float]]], scores: Sequence[float]) -> float | None:
        """The score, mean over the seeds; or the seconds or steps to the wanted one. Where it was not reached, more
        than the length of a trial, and at most twice that, the more the farther it is away."""
        if len(scores) < len(curves):
            return None
        if self.plan.reach is None:
            return statistics.fmean(scores)
        costs = []
        for curve, score in zip(curves, scores, strict=True):
            found, missing = reached(curve, self.plan.reach), max(0.0, self.plan.reach - score)
            far = self.plan.length * (1 + missing / (1 + missing))
            costs.append(far if found is None else found[self.plan.column])
        return statistics.fmean(costs)

    def _words(self, values: Mapping[str, Any], seed: int, device: str, folder: Path) -> list[str]:
        plan = self.plan
        flags = {
            **plan.single,
            **values,
            **BARE,
            "seed": seed,
            "device": device,
            "run_dir": folder,
            "max_seconds": plan.seconds,
        }
        flags["total_env_steps"] = plan.steps or NEVER
        return [str(plan.script), *plan.words, *as_words(flags)]

    def _warm_up(self) -> None:
        """Fills the cache of compiled kernels, which takes a minute: else all runs would compile them at once."""
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(RuntimeError):  # the trials say why
            device, defaults = self.plan.side_by_side.devices[0], dict(self.plan.defaults)
            words = self._words(defaults, self.plan.seeds[0], device, Path(folder) / "run")
            self.plan.side_by_side.call([[*words, f"--max-seconds={WARM_SECONDS}"]])


class _Rungs:
    """The rungs of a trial: at each it ends if it is not among the best third of those that came so far."""

    def __init__(self, plan: Plan, trial: Trial) -> None:
        self.plan, self.trial, self.pruned = plan, trial, False
        self._ahead = list(RUNGS)

    def is_behind(self, curves: Sequence[list[list[float]]]) -> bool:
        """True if the trial shall end, once all its seeds have come to a rung. A rung at which too few episodes have
        ended for a score is passed."""
        column = self.plan.column
        while self._ahead and not self.pruned:
            at = self.plan.length * self._ahead[0] / WHOLE
            if not all(curve and curve[-1][column] >= at for curve in curves):
                break
            rung = self._ahead.pop(0)
            scores = [last_score([point for point in curve if point[column] <= at]) for curve in curves]
            known = [score for score in scores if score is not None]
            if len(known) == len(scores):
                score = statistics.fmean(known)
                self.trial.report(score if self.plan.reach is None else -score, rung)
                self.pruned = self.trial.should_prune()
        return self.pruned


def ranked(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that have ended, the best first: whole ones, then those that ended early, the farthest first, then
    those that failed."""
    sign = 1 if study.direction == optuna.study.StudyDirection.MINIMIZE else -1

    def rank(trial: FrozenTrial) -> tuple[float, ...]:
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            return 0, sign * trial.value
        if trial.last_step is None or trial.user_attrs.get(ERROR):
            return 2, trial.number
        return 1, -trial.last_step, sign * trial.intermediate_values[trial.last_step]

    ended = study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
    return sorted(ended, key=rank)


def values_of(plan_space: Sequence[Dimension], trial: FrozenTrial) -> dict[str, Any]:
    """The values of a trial's flags."""
    return {each.name: each.value(trial.params[each.name]) for each in plan_space if each.name in trial.params}


def in_words(values: Mapping[str, Any]) -> str:
    """Flags and their values, shortly."""
    texts = {name: f"{value:g}" if isinstance(value, float) else json.dumps(value) for name, value in values.items()}
    return ", ".join(f"{name.replace('_', '-')} {text}" for name, text in texts.items())
