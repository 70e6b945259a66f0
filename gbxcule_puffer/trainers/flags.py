"""The flags that all trainers share, and those that a resumed run may change. Imported without torch, for --help."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, make_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gbxcule_puffer.commandline import as_words, check, flag, option_name, parse
from gbxcule_puffer.env.options import LARGEST_SEED, EnvOptions, flag_type
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.trainers.boards.tracking import check_tracking
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS

if TYPE_CHECKING:
    from gbxcule_puffer.trainers.distributed import World

Args = TypeVar("Args", bound="RunFlags")
PATHS = ("rom", "start_state", "start_actions", "goal_dir", "stage", "stages", "symbols")
CODE = "task"  # names code, which a file may have run only where it was run before (known_tasks)
MOST_COUNT, MOST_STEPS = 2**31 - 1, 10**15  # limits of flags: kernels count in int32, steps are Python's integers
LARGEST = 1e30  # limit of a flag's value: Adam multiplies the learning rate in float32, which ends at 3.4e38
SMOKE_MAX_STEPS = 16  # of an episode in a run of --smoke
# Options of the environment that each trainer sets by itself, and those that a resumed run may change.
SET_BY_TRAINERS = ("io", "log_interval", "info_mode", "num_threads", "seed", "first_env")
RESUMABLE_OPTIONS = {"autotune", "native", "position", "start_state", "goal_dir", "stages", "symbols", CODE}
RUN, EVALUATION, FILES = "The run", "Evaluations", "Files and viewers"  # headings of --help


def option_flags(kind: type[EnvOptions]) -> type:
    """The environment's options as a dataclass of flags, with the same names, defaults, help and limits."""
    options = (each for each in fields(kind) if each.name not in SET_BY_TRAINERS)
    flags = [(each.name, flag_type(each), field(default=each.default, metadata=each.metadata)) for each in options]
    return make_dataclass("OptionFlags", flags)


if TYPE_CHECKING:
    OptionFlags = EnvOptions  # what an editor shows
else:
    OptionFlags = option_flags(EnvOptions)


@dataclass  # pyright: ignore[reportGeneralTypeIssues]  the options are frozen, the flags made of them are not
class TaskFlags(OptionFlags):
    """The flags of every trainer that define the environment: its options, its kind and its game."""

    env: str = flag(
        "gbxcule",
        "environment: gbxcule, a game of the suite such as gbxcule_orchard (docs/suite.md), pyboy_puffer_single, "
        "pyboy_puffer_vec or toy",
        "The game",
    )
    game: str | None = flag(
        None,
        "a game's folder, or a name of `puffer game list`: its ROM, start, reward and ends, and its options in place "
        "of the defaults here (docs/games.md)",
        "The game",
        resumable=True,
    )
    variant: str | None = flag(None, "variant of --game, or several with commas: each Game Boy samples one", "The game")
    levels: str | None = flag(
        None, "levels of --game: how many of the training levels, or test (default: all)", "The game"
    )
    rom: str | None = flag(
        None,
        "Game Boy image, or homeward; needs --game, --goal-dir, --stages or --task (default: the stage's)",
        "The game",
        resumable=True,
    )
    start_actions: str | None = flag(
        None,
        "trace of `puffer play`, or file of action names, that leads from --start-state or power-on to where episodes "
        "begin",
        "The game",
        resumable=True,
    )
    stage: str | None = flag(
        None,
        "stage file from which start and goal are made if --goal-dir is not given (default: HOMEWARD's first)",
        "The game",
        resumable=True,
    )

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game, in place of the defaults of other flags."""
        if self.game is None:
            return {}
        from gbxcule_puffer.games import load_game

        names = {each.name for each in fields(self)}
        return {name: value for name, value in load_game(self.game).flags().items() if name in names}


@dataclass
class RunFlags(TaskFlags):
    """The flags of every trainer: also the length of the run, its evaluation, and its files.

    Metadata of each `flag`: gpu, smoke: its default on a GPU, and with --smoke; resumable: a resumed run may change it;
    one_start: it is not saved with the run; fixes: names of resumable flags that must not change while this one is on.
    A trainer may declare one of these flags again with other defaults; properties that it does not give stay as they
    are here.
    """

    total_env_steps: int = flag(
        1_000_000,
        "most steps of all Game Boys together, over all processes",
        RUN,
        gpu=100_000_000,
        smoke=128,
        least=1,
        resumable=True,
    )
    max_seconds: float | None = flag(
        None,
        "seconds of training, including evaluations, after which the run also ends",
        RUN,
        least=1e-6,
        resumable=True,
    )
    stop_at_success: float = flag(
        0.95,
        "end when two evaluations in a row succeed at least this often, at every stage; above 1 never",
        RUN,
        resumable=True,
    )
    stop_greedy: bool = flag(True, "end only if the greedy policy also succeeds this often", RUN, resumable=True)
    seed: int = flag(
        1, "seed of the weights, the sampled actions and the environment", RUN, least=-LARGEST_SEED, most=LARGEST_SEED
    )
    device: str = flag("auto", "cpu, cuda or cuda:N (auto: a GPU if there is one)", RUN, resumable=True)
    info_mode: Literal["full", "stats"] = flag(
        "full",
        "statistics in a record; full adds the share of each action (env/action_hist)",
        RUN,
        resumable=True,
    )
    compile: bool = flag(
        False,
        "torch.compile of the model, and of the loss if it is a function of one step or batch",
        RUN,
        resumable=True,
    )
    smoke: bool = flag(
        False,
        "a tiny run of a few seconds that does everything once, for debugging",
        RUN,
        resumable=True,
        one_start=True,
    )
    eval_share: float = flag(
        0.05, "share of the time that evaluations and films may take", EVALUATION, least=0, most=1, resumable=True
    )
    eval_every_steps: int | None = flag(
        None,
        "steps between two evaluations, which then play whole episodes, however long that takes (default: as often as "
        "--eval-share allows, and when the training's own episodes reach --stop-at-success)",
        EVALUATION,
        smoke=64,
        least=1,
        resumable=True,
    )
    eval_episodes: int = flag(50, "episodes of an evaluation", EVALUATION, smoke=2, least=1, resumable=True)
    eval_envs: int = flag(10, "Game Boys that play an evaluation", EVALUATION, gpu=50, smoke=2, least=1, resumable=True)
    eval_device: str | None = flag(
        None,
        "device that evaluates, and makes start and goal; changes no result (default: --device)",
        EVALUATION,
        resumable=True,
    )
    run_dir: str | None = flag(
        None,
        "folder of this run's files (default: runs/ENV__EXP__SEED__TIME, with the name of --game for ENV)",
        FILES,
        resumable=True,
        one_start=True,
    )
    resume: str | None = flag(
        None,
        "continue a run, by its folder or checkpoint.pt; without a value the one in --run-dir, which may be new, or "
        "the newest",
        FILES,
        bare="",
        resumable=True,
        one_start=True,
    )
    checkpoint_every: int | None = flag(
        None,
        "steps between two checkpoints (default: --eval-every-steps, else 30 seconds)",
        FILES,
        smoke=64,
        least=1,
        most=MOST_STEPS,
        resumable=True,
    )
    keep_checkpoints: int = flag(
        3,
        "number of checkpoints to keep: checkpoint.pt, checkpoint.1.pt before it and so on",
        FILES,
        least=1,
        resumable=True,
    )
    media_every: int = flag(
        131_072,
        "steps between two sheets of pictures and GIFs of an episode",
        FILES,
        gpu=20_000_000,
        smoke=128,
        least=1,
        most=MOST_STEPS,
        resumable=True,
    )
    watch: bool = flag(
        False, "serve a web page that shows the Game Boys while they learn", FILES, resumable=True, one_start=True
    )
    watch_address: str = flag(
        DEFAULT_ADDRESS,
        "address of that page; if other machines can reach it, viewers need the token in the printed address",
        FILES,
        resumable=True,
        one_start=True,
    )
    track: bool = flag(
        False,
        "also send the records to Weights & Biases (pip install wandb; WANDB_MODE=offline keeps them here)",
        FILES,
        resumable=True,
        one_start=True,
    )
    wandb_project_name: str = flag("gbxcule-puffer", "project of --track", FILES, resumable=True, one_start=True)
    wandb_entity: str | None = flag(None, "team of --track (default: your own)", FILES, resumable=True, one_start=True)

    def defaults(self) -> dict[str, Any]:
        found = super().defaults()
        if self.smoke:  # whose episodes are as short as its run
            found.pop("max_steps", None)
        return found

    def __init_subclass__(cls) -> None:
        """Keeps the properties of a flag that a subclass declares again without giving them."""
        declared = {each.name: each for each in fields(cls.__base__)}  # pyright: ignore[reportArgumentType]
        for name, each in vars(cls).items():
            if isinstance(each, Field) and name in declared:
                given = {key: value for key, value in each.metadata.items() if UNGIVEN.get(key, ...) != value}
                each.metadata = MappingProxyType({**declared[name].metadata, **given})

    def check(self) -> None:
        """Raises: ConfigError that names a flag with an impossible value."""
        check(self)
        for each in fields(self):
            value = getattr(self, each.name)
            most = MOST_STEPS if each.name.endswith("_steps") else MOST_COUNT
            if type(value) is int and abs(value) > most and math.isinf(each.metadata.get("most", math.inf)):
                raise ConfigError(f"{option_name(each.name)} {f'{value:,}':.60} is too large: give at most {most:,}")
            if isinstance(value, float) and not abs(value) <= LARGEST:
                raise ConfigError(f"{option_name(each.name)} {value} is out of float32's range: give a smaller one")
        if self.track:
            check_tracking()

    def free_on_resume(self) -> set[str]:
        """Names of the flags that a resumed run may change, and the task's files, whose contents are compared."""
        free = {each.name for each in fields(self) if each.metadata.get("resumable")} | RESUMABLE_OPTIONS
        fixed = (each.metadata.get("fixes", ()) for each in fields(self) if getattr(self, each.name))
        return free - {name for names in fixed for name in names}


UNGIVEN = flag().metadata
ONE_START = tuple(each.name for each in fields(RunFlags) if each.metadata.get("one_start"))


def read_flags(flags: type[Args], prog: str, description: str | None, argv: Sequence[str] | None = None) -> Args:
    """A new run's flags: the command line's, else the defaults of its device, with --smoke those of a tiny run.

    Raises: ConfigError.
    """
    on_gpu, in_smoke = (
        {each.name: each.metadata[kind] for each in fields(flags) if kind in each.metadata} for kind in ("gpu", "smoke")
    )
    given = parse(flags, prog, description, argv)
    tiny = {"max_steps": SMOKE_MAX_STEPS, **in_smoke} if given.smoke else {}
    return parse(flags, prog, description, argv, {**(on_gpu if runs_on_gpu(given) else {}), **tiny})


def resumed_flags(
    flags: type[Args],
    saved: Mapping[str, Any],
    source: Path,
    prog: str,
    argv: Sequence[str] | None = None,
    note: object = None,
) -> Args:
    """The flags of a run that goes on: its own, as `flags_to_save` put them into the file `source`, and those of the
    command line that may change. note: of its --task (known_tasks).

    Raises: StateError where no such run can have been saved, or its --task is not known; ConfigError for a flag that
    may not change.
    """
    before = flags_of(flags, saved, source, prog)
    words = as_words({name: value for name, value in vars(before).items() if name not in ONE_START})
    now = parse(flags, prog, None, [*words, *(sys.argv[1:] if argv is None else argv)])
    if saved.get(CODE) and not now.task:
        from gbxcule_puffer.trainers.known_tasks import recall

        setattr(now, CODE, recall(saved[CODE], note, source))
    for name in sorted(vars(before).keys() - before.free_on_resume()):
        value, was = getattr(now, name), getattr(before, name)
        if value != was and not (name in PATHS and value and was and os.path.abspath(value) == was):
            raise ConfigError(
                f"{option_name(name)} {value} is not what the run was started with, {was}: leave it out to go on"
            )
    return now


def flags_of(flags: type[Args], saved: Mapping[str, Any], source: Path, prog: str) -> Args:
    """The flags from the file `source` that `flags_to_save` wrote; newer flags, and --task, have their defaults.

    Raises: StateError if no run can have saved them.
    """
    if foreign := sorted(saved.keys() - {field.name for field in fields(flags)}):
        raise StateError(f"{source} has a flag {foreign[0]!r:.40} that {prog} does not know: use its own version")
    try:
        return parse(flags, prog, None, as_words(_full_paths(saved, source) | {CODE: None}))
    except ConfigError as error:
        raise StateError(f"{source} has flags that are damaged ({error}): give another") from None


def flags_to_save(args: RunFlags, folder: Path) -> dict[str, Any]:
    """Flags for a file in `folder`: paths relative to it, without flags for one start only."""
    found = {name: value for name, value in vars(args).items() if name not in ONE_START}
    found |= {name: os.path.relpath(found[name], folder) for name in PATHS if found.get(name)}
    if args.game and os.path.isabs(args.game):  # else the name of one of ours
        found["game"] = os.path.join(os.curdir, os.path.relpath(args.game, folder))
    return found


def _full_paths(saved: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """The inverse of `flags_to_save`, but with full paths.

    Raises: StateError for values that no flag can have.
    """
    for name, value in saved.items():
        parts = value if isinstance(value, tuple | list) and name not in PATHS else [value]
        kinds = (str,) if name in (*PATHS, "game") else (str, int, float)
        good = all(part is None or isinstance(part, kinds) for part in parts)
        if not good or any(isinstance(part, str) and part.startswith("-") for part in parts):
            raise StateError(f"{source} is damaged (flag {name!r:.40} is {value!r:.40}): give another")
    found = {name: value for name, value in saved.items() if name not in ONE_START}
    base = source.parent.resolve()
    if str(found.get("game") or "").startswith(os.curdir):
        found["game"] = os.path.normpath(base / str(found["game"]))
    return found | {name: os.path.normpath(base / found[name]) for name in PATHS if found.get(name)}


def runs_on_gpu(args: RunFlags) -> bool:
    """True if --device means a GPU; PyBoy runs only on the CPU."""
    if args.device == "auto":
        import torch

        return torch.cuda.is_available() and not args.env.startswith("pyboy")
    return args.device != "cpu"


def own_device(args: RunFlags, world: World) -> str:
    """The full name of this process's device.

    Raises: ConfigError if one GPU is given to several processes; DeviceError if it does not exist.
    """
    from gbxcule_puffer.device import resolve_device

    device = args.device if args.device != "auto" else "cuda" if runs_on_gpu(args) else "cpu"
    if device.startswith("cuda:") and world.size > 1:
        raise ConfigError(f"--device {device} is one GPU for {world.size} processes: give --device cuda")
    return resolve_device(f"cuda:{world.local_rank}" if device == "cuda" and world.size > 1 else device)
