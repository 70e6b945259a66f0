"""`puffer sweep`: find good settings of a trainer for a game; or a mode of PufferLib."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.apps.train.pufferl import check_subject, run_mode
from gbxcule_puffer.apps.train.scripts import FLAGS, flags_module
from gbxcule_puffer.apps.train.scripts import SWEEP as SPACE
from gbxcule_puffer.commandline import command, flag, option_name, parse, word
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import trainer_scripts, trainers

if TYPE_CHECKING:
    from gbxcule_puffer.apps.sweep.search import Plan
    from gbxcule_puffer.trainers.flags import RunFlags

NAMES = ", ".join(trainers())
SWEEP = "The sweep"  # heading of --help
UNITS = {"s": 1, "m": 60, "h": 3600}
SHARE = 12  # whole trials, side by side or not, that a budget is divided into where --seconds is missing
JOBS_ON_GPU = 4
# Flags that each training has from the sweep, and those that are for one training.
OWN = ("seed", "run_dir", "total_env_steps", "max_seconds", "eval_every_steps", "checkpoint_every", "media_every")
OWN += ("eval_envs", "eval_episodes", "eval_share", "stop_at_success", "resume", "smoke", "watch", "track")
TAGS = {"return": "charts/episodic_return", "success": "charts/success_rate"}


@command
class Sweep:
    """Find good settings of a trainer for a game, with Optuna or with PufferLib's search."""

    subject: str = word(
        f"{NAMES}; a trainer's file; or gbxcule, or an environment of PufferLib, for its search", "WHAT"
    )
    words: tuple[str, ...] = word("flags; puffer sweep WHAT --help lists them", "...", (), rest=True)

    def run(self) -> int | None:
        known = {**trainer_scripts(), **trainers()}
        script = Path(self.subject) if self.subject.endswith(".py") else known.get(self.subject)
        if script is None:
            check_subject("trainer", self.subject, f"give one of {NAMES}, or a trainer's file")
            run_mode("sweep", self.subject, self.words)
            return None
        if not script.is_file():
            raise ConfigError(f"trainer {self.subject} is not there: give one of {NAMES}, or a trainer's file")
        return sweep(script, f"puffer sweep {self.subject}", self.words)


@dataclass
class SweepFlags:
    """Find good settings of a trainer: trainings side by side of settings that Optuna proposes, those that lag behind
    end early. The same command goes on with a sweep that was interrupted. All other flags are the trainer's, of all
    trainings."""

    budget: str | None = flag(None, "time of the whole sweep: 20m, 3h, or a number of seconds", SWEEP, metavar="TIME")
    trials: int | None = flag(None, "settings to try, at most (default: as many as there is time for)", SWEEP, least=1)
    seconds: float | None = flag(
        None, f"seconds of a training, at most (default: --budget / {SHARE}, times the trials side by side)", SWEEP,
        least=1e-3,
    )  # fmt: skip
    steps: int | None = flag(None, "steps of a training over all its Game Boys, in place of --seconds", SWEEP, least=1)
    reach: float | None = flag(
        None, "look for the shortest time to this score, not for the highest score within --seconds", SWEEP
    )
    metric: str | None = flag(
        None,
        "the score: return, success, or a statistic of the game (default: that of the game's [scores], else return)",
        SWEEP,
        metavar="NAME",
    )
    vary: tuple[str, ...] = flag(
        (),
        "FLAG=LOW:HIGH, FLAG=LOW:HIGH:log, FLAG=A,B,C, or FLAG alone for its own range: a flag that varies; may be "
        "given several times (default: the trainer's own space)",
        SWEEP,
        repeat=True,
        metavar="RANGE",
    )
    space: str | None = flag(None, "TOML file with the flags that vary (docs/sweep.md)", SWEEP, metavar="FILE")
    halving: bool = flag(
        True, "end a training early that is not among the best third at a ninth or a third of its length", SWEEP
    )
    seeds: tuple[int, ...] = flag((1,), "seeds of each trial, which train at the same time; the mean counts", SWEEP)
    jobs: int | None = flag(
        None,
        f"trainings at a time on each device (default: the cores of a CPU, {JOBS_ON_GPU} on a GPU)",
        SWEEP,
        least=1,
    )
    out: str | None = flag(
        None, "folder of the sweep (default: sweeps/GAME__TRAINER, with --env where there is no --game)", SWEEP,
        metavar="DIR",
    )  # fmt: skip


if TYPE_CHECKING:

    class AllFlags(SweepFlags, RunFlags):  # pyright: ignore[reportGeneralTypeIssues]  as RunFlags itself
        """The flags of a sweep and of its trainings."""


def sweep(script: Path, prog: str, words: Sequence[str]) -> int:
    """Runs or continues a sweep, and writes its report; exit code 1 where no trial came to its end.

    Raises: ConfigError.
    """
    module = flags_module(script)
    args = getattr(module, FLAGS)
    kind = make_dataclass("Flags", [], bases=(SweepFlags, args), namespace={"__doc__": SweepFlags.__doc__})
    flags: Any = parse(kind, prog, None, words)
    flags.check()
    own = {each.text for each in flags_of(SweepFlags)} | {"--device"}
    rest = _without(words, own)
    given = {text.partition("=")[0].replace("_", "-") for text in rest if text.startswith("--")}
    for name in OWN:
        if {option_name(name), option_name(f"no-{name}")} & given:
            remedy = "leave it out (a sweep has --seeds, --seconds, --steps and --out)"
            raise ConfigError(f"{option_name(name)} is of one training: {remedy}")
    try:
        from gbxcule_puffer.apps.sweep.report import write_report
        from gbxcule_puffer.apps.sweep.search import JOURNAL, Search
    except ModuleNotFoundError as missing:
        if missing.name != "optuna":
            raise
        raise ConfigError("puffer sweep needs Optuna 4 or newer: pip install 'gbxcule-puffer[sweep]'") from None
    from gbxcule_puffer.trainers.folder import RunFolder

    played = flags.env if flags.game is None else Path(flags.game).name
    out = Path(flags.out or f"sweeps/{played}__{script.stem}")
    folder = RunFolder(out, resumes=True)
    try:
        plan = _plan(script, args, getattr(module, SPACE, {}), flags, rest, given, out)
        search = Search(plan)
        try:
            search.go()
        finally:
            found = write_report(plan, search.study)
        return int(not found)
    finally:
        folder.leave(remove=not (out / JOURNAL).exists())


def _plan(
    script: Path,
    args: type[RunFlags],
    ranges: Mapping[str, str | tuple[str, str]],
    flags: AllFlags,
    rest: Sequence[str],
    given: set[str],
    out: Path,
) -> Plan:
    """The sweep of a command line. Raises: ConfigError."""
    from gbxcule_puffer.apps.side_by_side import SideBySide
    from gbxcule_puffer.apps.sweep.search import SETTINGS, Plan, open_study
    from gbxcule_puffer.apps.sweep.space import own_ranges, space_of
    from gbxcule_puffer.device import resolve_device
    from gbxcule_puffer.provenance import usable_cores
    from gbxcule_puffer.trainers.flags import read_flags, runs_on_gpu

    first, *others = flags.device.split(",")
    flags.device = first
    on_gpu = runs_on_gpu(flags)
    first = ("cuda" if on_gpu else "cpu") if first == "auto" else first
    devices = [resolve_device(each) for each in (first, *others)]
    jobs = flags.jobs or (JOBS_ON_GPU if on_gpu else usable_cores())
    side_by_side = len(devices) * jobs // len(flags.seeds)
    if not side_by_side or len(set(flags.seeds)) < len(flags.seeds):
        raise ConfigError(
            f"--seeds start {len(flags.seeds)} trainings at a time: name each seed once, and give as many --jobs"
        )
    known = [each for each in flags_of(args) if each.name not in OWN and each.name != "device"]
    fixed = [each.name for each in known if {each.text, option_name(f"no-{each.name}")} & given]
    scalars = [each for each in known if not each.is_tuple]
    own, single = own_ranges(ranges, on_gpu)
    space = space_of(scalars, own, flags.vary, flags.space, fixed)
    single = {name: text for name, text in single.items() if name not in {*fixed, *(each.name for each in space)}}
    budget = None if flags.budget is None else seconds_of(flags.budget)
    if budget is None and flags.trials is None:
        raise ConfigError("--budget or --trials is missing: give the length of the sweep")
    if flags.seconds is not None and flags.steps is not None:
        raise ConfigError("--seconds and --steps exclude each other: give one of them")
    study = open_study(out)
    seconds = flags.seconds
    if seconds is None and flags.steps is None:
        before = None if study is None else study.user_attrs.get(SETTINGS, {}).get("seconds")
        seconds = before or (None if budget is None else round(budget * side_by_side / SHARE, 3))
    if seconds is None and flags.steps is None:
        raise ConfigError("--seconds or --steps is missing: give the length of a training")
    defaults = read_flags(args, script.stem, None, [*rest, f"--device={first}"])
    return Plan(
        script,
        rest,
        single,
        space,
        flags.seeds,
        seconds,
        flags.steps,
        flags.reach,
        _tag(flags.metric, flags.game),
        {each.name: getattr(defaults, each.name) for each in space},
        out,
        budget,
        flags.trials,
        flags.halving,
        SideBySide(devices, jobs),
    )


def _tag(name: str | None, game: str | None) -> str:
    """The name in a run's records of what --metric means."""
    if name is None and game is not None:
        from gbxcule_puffer.games import load_game

        scores = load_game(game).scores
        name = None if scores is None else scores.statistic
    name = name or "return"
    return TAGS.get(name, f"env/task/{name}")


def seconds_of(text: str) -> float:
    """The seconds of a text such as 20m. Raises: ConfigError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None or not float(found[1]):
        raise ConfigError(f"--budget {text!r:.40} is not a time: give 90s, 20m or 3h")
    return float(found[1]) * UNITS[found[2] or "s"]


def _without(words: Sequence[str], names: Collection[str]) -> list[str]:
    """The words of a command line without these flags and their values."""
    kept, keeps = [], True
    for text in words:
        if text.startswith("--"):
            keeps = text.partition("=")[0].replace("_", "-") not in names
        if keeps:
            kept.append(text)
    return kept


COMMAND = Sweep
