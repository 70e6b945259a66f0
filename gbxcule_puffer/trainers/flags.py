"""The flags that all trainers share, a dataclass of flags as a command line, and what a resumed run may change."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

import torch
import tyro

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env.options import LARGEST_SEED, EnvOptions, flag_type
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.trainers.boards.tracking import check_tracking
from gbxcule_puffer.trainers.distributed import World

Flags = TypeVar("Flags")
Args = TypeVar("Args", bound="RunFlags")
SMOKE = {"max_steps": 16, "eval_envs": 2, "eval_episodes": 2}  # of the shared flags; each trainer adds its own
PATHS = ("rom", "start_state", "goal_dir", "stage", "stages", "quest", "symbols")
CODE = "task"  # names code, which no file may have run: a resumed run and a checkpoint need it given again
TRACKING = ("track", "wandb_project_name", "wandb_entity")
OF_ONE_START = ("run_dir", "resume", "smoke", "watch", "watch_address", *TRACKING)
MOST_COUNT, MOST_STEPS = 2**31 - 1, 10**15  # of a flag's value: kernels count in int32, steps are Python's numbers
LARGEST = 1e30  # of a flag's value: Adam multiplies the learning rate, in float32, which ends at 3.4e38


# Options of the environment that each trainer sets by itself.
SET_BY_TRAINERS = ("io", "log_interval", "info_mode", "num_threads", "seed", "first_env")


def option_flags(kind: type[EnvOptions]) -> type:
    """The environment's options as a dataclass of flags for tyro, with the same names, defaults and help."""
    flags: list[Any] = []
    for each in fields(kind):
        if each.name not in SET_BY_TRAINERS:
            annotation: Any = Annotated[flag_type(each), tyro.conf.arg(help=each.metadata["help"])]
            flags.append((each.name, annotation, field(default=each.default)))
    return make_dataclass("OptionFlags", flags)


if TYPE_CHECKING:
    OptionFlags = EnvOptions  # what an editor shows
else:
    OptionFlags = option_flags(EnvOptions)


@dataclass  # pyright: ignore[reportGeneralTypeIssues]  the options are frozen, the flags made of them are not
class TaskFlags(OptionFlags):
    """The flags of every trainer that say what the environment is: its options, its kind and its game."""

    env: str = "gbxcule"
    """environment: gbxcule, a game of the suite such as gbxcule_orchard (docs/suite.md), pyboy_puffer_single,
    pyboy_puffer_vec or toy"""
    rom: str | None = None
    """Game Boy image, or homeward; needs --goal-dir, --stages, --task or --quest (default: the stage's)"""
    stage: str | None = None
    """stage file that the start and the goal are made from when --goal-dir is not given (default: HOMEWARD's first)"""


@dataclass
class RunFlags(TaskFlags):
    """The flags of every trainer: also how long it runs, how it is evaluated, and where its files are.

    Their defaults are those of a CPU; `on_gpu` has those of a GPU, `in_smoke` those of --smoke.
    """

    on_gpu: ClassVar[Mapping[str, Any]] = {}
    in_smoke: ClassVar[Mapping[str, Any]] = {}
    counts: ClassVar[Collection[str]] = ()  # of the trainer's own flags those that must be at least 1
    shares: ClassVar[Collection[str]] = ()  # and those that must be from 0 to 1
    free: ClassVar[Collection[str]] = ()  # and those that a resumed run may change

    total_env_steps: int = 1_000_000
    """steps over all environments and processes, at most"""
    max_seconds: float | None = None
    """seconds of training, evaluations included, after which the run ends, too"""
    eval_every_steps: int = 16_384
    """steps between two evaluations"""
    eval_episodes: int = 50
    """episodes of an evaluation"""
    eval_envs: int = 10
    """Game Boys that play an evaluation"""
    eval_device: str | None = None
    """where evaluations play, and start and goal are made, to the same bits (default: as --device)"""
    stop_at_success: float = 0.95
    """end when two evaluations in a row succeed at least this often, at every stage; above 1 never"""
    stop_greedy: bool = True
    """the greedy policy has to succeed as often, too, before the run ends"""
    checkpoint_every: int | None = None
    """steps between two checkpoints (default: as --eval-every-steps)"""
    keep_checkpoints: int = 3
    """checkpoints to keep: checkpoint.pt, checkpoint.1.pt before it and so on"""
    media_every: int = 131_072
    """steps between two sheets of pictures and GIFs of an episode"""
    seed: int = 1
    """seed of the weights, the sampled actions and the environment"""
    device: str = "auto"
    """cpu, cuda or cuda:N (auto: a GPU if there is one)"""
    compile: bool = False
    """torch.compile of the model, and of the loss where it is a function of one step or batch"""
    run_dir: str | None = None
    """folder of this run's files (default: runs/ENV__EXP__SEED__TIME)"""
    resume: str | None = None
    """go on with a run and its flags: alone the one of --run-dir or else the newest, or its folder or checkpoint.pt"""
    watch: bool = False
    """serve a web page that shows the Game Boys while they learn"""
    watch_address: str = "127.0.0.1:8484"
    """address of that page; one that other machines reach needs the token that is printed with it"""
    track: bool = False
    """send the records to Weights & Biases, too (pip install wandb; WANDB_MODE=offline keeps them here)"""
    wandb_project_name: str = "gbxcule-puffer"
    """project of --track"""
    wandb_entity: str | None = None
    """team of --track (default: your own)"""
    smoke: bool = False
    """a tiny run of a few seconds that goes through everything once, for debugging"""

    def check(self) -> None:
        """Raises: ConfigError naming the flag whose value no run could have."""
        every = ("total_env_steps", "eval_every_steps", "checkpoint_every", "media_every")
        for name in (*every, "eval_episodes", "eval_envs", "keep_checkpoints", *self.counts):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value} must be at least 1")
        for name, value in vars(self).items():
            steps = name in every or name.endswith("_steps")
            most = LARGEST_SEED if name == "seed" else MOST_STEPS if steps else MOST_COUNT
            if type(value) is int and abs(value) > most:
                raise ConfigError(f"--{name.replace('_', '-')} {value:,} is too large: give at most {most:,}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ConfigError(f"--max-seconds {self.max_seconds} must be above 0")
        if (rate := vars(self).get("lr", 0)) < 0:
            raise ConfigError(f"--lr {rate} must be at least 0")
        for name in self.shares:
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value} must be from 0 to 1")
        if self.track:
            check_tracking()
        for name, value in vars(self).items():
            if isinstance(value, float) and not abs(value) <= LARGEST:
                raise ConfigError(
                    f"--{name.replace('_', '-')} {value} is no number that float32 can work with: give a smaller one"
                )

    def free_on_resume(self) -> set[str]:
        """Names of the flags that a resumed run may change. The task's files are among them, which may have been moved;
        what is in them is compared by the env's config and state."""
        return {
            *(
                "total_env_steps",
                "max_seconds",
                "eval_every_steps",
                "eval_episodes",
                "eval_envs",
                "eval_device",
                "stop_at_success",
                "stop_greedy",
            ),
            *("checkpoint_every", "keep_checkpoints", "media_every", "device", "run_dir", "resume", "smoke"),
            *("autotune", "watch", "watch_address", "place", *TRACKING, "compile", "log_interval", *self.free),
            *("rom", "start_state", "goal_dir", "stage", "stages", "symbols", CODE),
        }


@dataclass
class GraphFlags(RunFlags):
    """The flags of a trainer whose steps can be recorded."""

    cuda_graph: bool = False
    """on a GPU, the acting and stepping of an update as one CUDA graph, and the gradients of each batch"""

    def check(self) -> None:
        super().check()
        if self.cuda_graph and (self.device == "cpu" or self.env.startswith("pyboy")):
            raise ConfigError("--cuda-graph needs an env on a GPU: give --device cuda and --env gbxcule")

    def free_on_resume(self) -> set[str]:
        return super().free_on_resume() | {"cuda_graph"}


def parse_flags(
    flags: type[Flags],
    prog: str,
    description: str | None,
    argv: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Flags:
    """The command line as a dataclass, with `defaults` in place of some of its own. --help ends the process.

    Raises: ConfigError for a mistake in it.
    """
    argv = _whole_numbers(flags, sys.argv[1:] if argv is None else argv)
    for kind in flags.__mro__:
        _tell_defaults_once(kind)
    for number, word in enumerate(argv):  # a flag whose value may be left out, which tyro does not know
        if word == "--resume" and (number + 1 == len(argv) or argv[number + 1].startswith("--")):
            argv[number] = "--resume="
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            given: dict[str, Any] = {"default": flags(**defaults)} if defaults else {}
            return tyro.cli(flags, prog=prog, description=description, args=argv, **given)
    except SystemExit as end:
        if not end.code:
            raise
    raise ConfigError(f"{_in_one_line(message.getvalue())} (see --help)")


def _in_one_line(message: str) -> str:
    """A message of tyro's, without the box that it draws around: a title in its first line, rules between its parts."""
    lines = [line.strip("\u2502 ") for line in message.splitlines()[1:]]
    text = " ".join(line for line in lines if line.strip("\u2500\u2570\u256f-"))
    for appendix in (" Argument helptext:", " For full helptext"):
        text = text.split(appendix)[0]
    text, *similar = re.split(r" Perhaps you meant:| Arguments similar to \S+:", text)
    if similar:  # each with its help
        near = re.findall(r"^\u2502 {5}(--[\w-]+)", message, re.MULTILINE)
        text += f": did you mean {' or '.join(dict.fromkeys(near))}?"
    for python, plain in (
        (r"invalid literal for int\(\) with base 10", "whole number"),
        (r"could not .* float", "number"),
    ):
        text = re.sub(rf"^Error parsing (\S+): {python}: (.*)", rf"\1 \2 is no {plain}", text)
    return text


def _whole_numbers(flags: type, words: Sequence[str]) -> list[str]:
    """The words of a command line; `1e6` is written out, where an int is parsed from it."""
    counts = {f"--{name.replace('_', '-')}" for name, hint in get_type_hints(flags).items() if _takes_int(hint)}
    found: list[str] = []
    for number, word in enumerate(words):
        flag, equals, text = word.rpartition("=") if word.startswith("--") else (words[number - 1], "", word)
        if (number or equals) and flag in counts:
            match = re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", text)
            if match and float(text).is_integer():
                word = f"{flag}={int(float(text))}" if equals else str(int(float(text)))
        found.append(word)
    return found


def _takes_int(hint: Any) -> bool:
    return hint is int or int in get_args(hint)


@cache  # each call would add to the annotations
def _tell_defaults_once(kind: type) -> None:
    """In --help, a flag of this class whose default is None has the default that its text tells, and no second one."""
    hints = get_type_hints(kind, include_extras=True)
    for name in inspect.get_annotations(kind):
        if getattr(kind, name, ...) is None:
            kind.__annotations__[name] = Annotated[hints[name], tyro.conf.arg(help_behavior_hint="")]


def as_words(flags: Mapping[str, Any]) -> list[str]:
    """Flags as the words of a command line; None, which no flag can be set to, is left out."""
    words = []
    for name, value in flags.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, tuple | list):
            words += [f"--{flag}", *map(str, value)] if value else []
        elif value is not None:
            words.append(f"--{flag}={value}")
    return words


def read_flags(flags: type[Args], prog: str, description: str | None, argv: Sequence[str] | None = None) -> Args:
    """A new run's flags: those of the command line, else the defaults of its device, and with --smoke of a tiny run.

    Raises: ConfigError.
    """
    on_gpu = " ".join(as_words(flags.on_gpu)).replace("=", " ")
    description = f"{description}\n\nDefaults on a GPU: {on_gpu}" if on_gpu else description
    given = parse_flags(flags, prog, description, argv)
    defaults = {**(flags.on_gpu if runs_on_gpu(given) else {}), **({**SMOKE, **flags.in_smoke} if given.smoke else {})}
    return parse_flags(flags, prog, description, argv, defaults)


def resumed_flags(
    flags: type[Args], saved: Mapping[str, Any], source: Path, prog: str, argv: Sequence[str] | None = None
) -> Args:
    """The flags of a run that goes on: its own, as `flags_to_save` put them into the file `source`, and those of the
    command line that may change. --task has to be given again.

    Raises: StateError where no such run can have been saved; ConfigError for a flag that may not change.
    """
    before = flags_of(flags, saved, source, prog)
    words = as_words({name: value for name, value in vars(before).items() if name not in OF_ONE_START})
    now = parse_flags(flags, prog, None, [*words, *(sys.argv[1:] if argv is None else argv)])
    if saved.get(CODE) and not now.task:
        raise ConfigError(f"the run has --{CODE} {saved[CODE]!r:.80}, which is code: give it again to run it")
    for name in sorted(vars(before).keys() - before.free_on_resume()):
        value, was = getattr(now, name), getattr(before, name)
        if value != was and not (name in PATHS and value and was and os.path.abspath(value) == was):
            flag = "--" + name.replace("_", "-")
            raise ConfigError(f"{flag} {value} is not what the run was started with, {was}: leave it out to go on")
    return now


def flags_of(flags: type[Args], saved: Mapping[str, Any], source: Path, prog: str) -> Args:
    """The flags that `flags_to_save` put into the file `source`; one that is newer than the file has its default,
    and so has --task.

    Raises: StateError where no run can have saved them.
    """
    if foreign := sorted(saved.keys() - {field.name for field in fields(flags)}):
        raise StateError(f"{source} has a flag {foreign[0]!r:.40} that {prog} does not know: use its own version")
    try:
        return parse_flags(flags, prog, None, as_words(_full_paths(saved, source) | {CODE: None}))
    except ConfigError as error:
        raise StateError(f"{source} has flags that are damaged ({error}): give another") from None


def flags_to_save(args: RunFlags, folder: Path) -> dict[str, Any]:
    """Flags for a file in `folder`: paths relative to it, and without those that are of one start only."""
    found = {name: value for name, value in vars(args).items() if name not in OF_ONE_START}
    return found | {name: os.path.relpath(found[name], folder) for name in PATHS if found.get(name)}


def _full_paths(saved: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """The inverse of `flags_to_save`, but with full paths.

    Raises: StateError for values that no flag has.
    """
    for name, value in saved.items():
        parts = value if isinstance(value, tuple | list) and name not in PATHS else [value]
        kinds = (str,) if name in PATHS else (str, int, float)
        good = all(part is None or isinstance(part, kinds) for part in parts)
        if not good or any(isinstance(part, str) and part.startswith("-") for part in parts):
            raise StateError(f"{source} is damaged (flag {name!r:.40} is {value!r:.40}): give another")
    found = {name: value for name, value in saved.items() if name not in OF_ONE_START}
    base = source.parent.resolve()
    return found | {name: os.path.normpath(base / found[name]) for name in PATHS if found.get(name)}


def runs_on_gpu(args: RunFlags) -> bool:
    """True where --device means a GPU; PyBoy runs on the CPU only."""
    if args.device == "auto":
        return torch.cuda.is_available() and not args.env.startswith("pyboy")
    return args.device != "cpu"


def own_device(args: RunFlags, world: World) -> str:
    """The full name of this process's device.

    Raises: ConfigError where one GPU is given to several processes; DeviceError where it does not exist.
    """
    device = args.device if args.device != "auto" else "cuda" if runs_on_gpu(args) else "cpu"
    if device.startswith("cuda:") and world.size > 1:
        raise ConfigError(f"--device {device} is one GPU for {world.size} processes: give --device cuda")
    return resolve_device(f"cuda:{world.local_rank}" if device == "cuda" and world.size > 1 else device)
