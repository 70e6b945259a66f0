"""The environment's options, declared once: keywords, flags, PufferLib's ini and the table in the docs follow."""

# ruff: noqa: RUF009  (`option` is a dataclasses.field)

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gbxcule_puffer.emulator.cartridge import HEADERS, MODELS
from gbxcule_puffer.emulator.schedule import FRAMES_PER_STEP, MOST_FRAMES, RELEASE_AFTER_FRAMES
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, MOST_STEPS, Schedule, get_codec
from gbxcule_puffer.tasks.observe.pictures import MOST_PICTURES, MOST_RADIUS, observation_kind
from gbxcule_puffer.tasks.ram.addresses import check_visit_key

if TYPE_CHECKING:
    from gbxcule_puffer.tasks.task import TaskSpec

Kind = TypeVar("Kind")
Options = TypeVar("Options", bound="EnvOptions")
PICTURE, TASK, EPISODES = "Observations and actions", "The task", "How episodes begin and what is pressed"
ANY_REWARD: dict[str, Any] = {"least": -1e9, "most": 1e9}  # so that sums and products of several stay finite in float32
STEP_COST = -0.01  # where the options do not say otherwise
LARGEST_SEED = 2**62  # steps are added to it, and torch's seeds have 64 bits
EXPLORATION, RUNNING = "Exploration, and rewards beside the goal's", "How it runs"


def option(
    default: Kind,
    help: str,
    subject: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    one_of: Collection[str] = (),
    check: Callable[[Any], object] | None = None,
    weight: bool = False,
) -> Kind:
    """A field of EnvOptions: its default, help text, section in the docs, and allowed values. check: raises a
    ConfigError for a value that passes the other limits; weight: True for a term of the reward, which the kernels read
    as a member of Episode."""
    limits = {"least": least, "most": most, "below": below, "one_of": tuple(one_of), "check": check}
    return field(default=default, metadata={"help": help, "subject": subject, "weight": weight, **limits})


@dataclass(frozen=True)
class EnvOptions:
    """All options of the environment except the ROM, the number of envs, the device and PufferLib's buffers.

    A new option is one more field here, and the code that uses it.

    Raises: ConfigError for a value that is not allowed; the message names the option and the allowed values.
    """

    # fmt: off
    obs: str = option("shades", "what the agent observes: shades (72x80), packed (the same, four pixels per byte), "
                      "averaged (72x80 sums of four shades), full (144x160), grey (84x84, 0 to 255; grey_64x96 has "
                      "another size); in colour luma, rgb or rgb555, each also as _full (docs/color.md); tiles (18x20) "
                      "or objects (40 sprites) instead of pixels (docs/objects.md)", PICTURE,
                      check=observation_kind)
    stack_k: int = option(1, "pictures in an observation, the newest last", PICTURE, least=1, most=MOST_PICTURES)
    ram_obs: str | None = option(
        None, "bytes of RAM to observe too: symbols or hexadecimal addresses, with a length and :bits where needed, "
        "such as wMoney:3,D347,wEventFlags:32:bits", PICTURE)
    visited_obs: int = option(0, "observe a map of the cells that the episode has visited, up to this number of cells "
                              "around the player (needs position)", PICTURE, least=0, most=MOST_RADIUS)
    action_obs: int = option(0, "observe this number of past actions as well", PICTURE, least=0, most=64)
    action_codec: str = option(
        DEFAULT_CODEC, "the actions: pokemonred_puffer_v0, pokemonred_puffer_v1 (with NOOP), multi_binary, "
        "multi_discrete, a list such as NOOP:60,A,B,SELECT,UP+B (NOOP for 60 frames), or several lists separated by "
        "slashes",
        PICTURE, check=get_codec)
    frames_per_step: int = option(
        FRAMES_PER_STEP, "emulated frames of one step", PICTURE, least=1, most=MOST_FRAMES)
    release_after_frames: int = option(
        RELEASE_AFTER_FRAMES, "frames after which a step releases its buttons; if this is frames_per_step, they stay "
        "held until a step does not press them", PICTURE, least=1)

    until: str | None = option(
        None, "end a step early once all these conditions on RAM hold, such as wJoyIgnore==0,C0A3&04!=0; "
        "frames_per_step is then the limit", PICTURE)

    start_state: StrPath | Sequence[StrPath] | None = option(
        None, "state or .sav file in which episodes start (default: power-on); from a folder or a list of files, each "
        "episode takes one", TASK)
    goal_dir: StrPath | None = option(None, "folder of the goal (default: none, only time ends an episode)", TASK)
    stages: StrPath | None = option(
        None, "list of stages, each with its own start, goal and limit; replaces start_state and goal_dir", TASK)
    chain: bool = option(False, "at a stage's goal, continue with the next stage in the same episode", TASK)
    max_steps: int | None = option(
        None, "steps after which an episode is truncated (default: the task's limit, or 128)", TASK, least=1,
        most=MOST_STEPS)
    tau: float | None = option(None, "distance below which a picture counts as the goal (default: the goal's own)",
                               TASK, least=0, most=1)
    k_consecutive: int | None = option(
        None, "steps in a row in which the picture must match the goal (default: the goal's own)", TASK, least=1,
        most=MOST_STEPS)
    task: TaskSpec | None = option(
        None, "your own reward from RAM: package.module:Class or file.py:Class; in Python also a Task or its class "
        "(docs/your-reward.md)", TASK)
    symbols: StrPath | None = option(
        None, "symbol file of the ROM, for addresses by name; symbol files beside the ROM are used without it", TASK)
    position: str | None = option(
        None, "RAM of the player's map number, row and column, such as D35E,D361,D362 or symbols; for visited_obs, "
        "coverage and the map of a viewer (default: the task's)", TASK)
    step_cost: float | None = option(
        None, f"reward of every step (default: {STEP_COST}; 0 with a task and no goal)", TASK, weight=True,
        **ANY_REWARD)
    alpha: float = option(10.0, "reward for coming closer to the goal's picture, per unit of distance", TASK,
                           weight=True, **ANY_REWARD)
    goal_bonus: float = option(5.0, "reward for reaching the goal", TASK, weight=True, **ANY_REWARD)

    start_waits: int = option(0, "begin each episode with a random number of steps without a button, up to this number",
                              EPISODES, least=0, most=10_000)
    stagger: bool = option(False, "truncate the first episode of each Game Boy at a random step, so that later "
                           "episodes do not all end in the same step", EPISODES)
    sticky_actions: float = option(0.0, "probability that a step repeats the previous action", EPISODES, least=0,
                                   below=1)
    blocked_actions: tuple[str, ...] = option((), "names of actions that press nothing", EPISODES)
    curriculum: str = option("uniform", "which start or stage an episode takes (docs/exploration.md)", EPISODES,
                             one_of=("uniform", "first", "progress", "by_env"))

    archive_slots: int = option(
        0, "states to keep in the archive: each with a new cell, for later episodes to start in", EXPLORATION, least=0,
        most=2**24)
    archive_share: float = option(0.5, "share of the episodes that start in a state of the archive", EXPLORATION,
                                  least=0, below=1)
    archive_steps: int | None = option(
        None, "steps after which an episode from the archive is truncated (default: max_steps)", EXPLORATION,
        least=1, most=MOST_STEPS)
    archive_behind: float = option(
        1.0, "prefer states of the archive that are ahead: multiply the weight of a state by this for each milestone "
        "that it is behind the furthest one (below 1: needs milestones)", EXPLORATION, least=2**-8, most=1)
    milestone_slots: int = option(
        0, "states to keep of each milestone of the game, for later episodes to start in", EXPLORATION, least=0,
        most=1_024)
    milestone_share: float = option(0.5, "share of the episodes that start in a milestone's state", EXPLORATION,
                                    least=0, most=1)
    milestone_steps: int | None = option(
        None, "steps without a new milestone after which an episode is truncated", EXPLORATION, least=1,
        most=MOST_STEPS)
    swarm_steps: int | None = option(
        None, "every this many steps, move Game Boys that have reached fewer milestones than the best kept state to "
        "that state", EXPLORATION, least=1, most=MOST_STEPS)
    swarm_share: float = option(0.5, "probability with which a Game Boy that is behind is moved", EXPLORATION, least=0,
                                most=1)
    coverage: bool = option(False, "count how often each position of the game's maps was visited, for a picture (needs "
                            "position)", EXPLORATION)
    visit_bonus: float = option(0.0, "reward for the n-th visit of a cell: this number divided by the square root of n",
                                 EXPLORATION, **ANY_REWARD)
    visit_key: str = option("picture", "what a cell is: picture (coarse), pixels (the exact picture), or bytes of RAM "
                            "such as ram:C0A0,C0B0:24, also by symbols", EXPLORATION, check=check_visit_key)
    reward_scale: float = option(1.0, "factor that multiplies the whole reward", EXPLORATION, **ANY_REWARD)

    io: str = option("numpy", "numpy: PufferLib's NumPy buffers; torch: tensors on the device, without a copy", RUNNING,
                     one_of=("numpy", "torch"))
    info_mode: str = option("stats", "what the infos have: stats (statistics), full (and the share of each action), or "
                            "none", RUNNING, one_of=("full", "stats", "none"))
    log_interval: int = option(64, "steps between two infos", RUNNING, least=1)
    header: str = option("strict", "pyboy also runs ROMs of 16 KiB, and ROMs shorter than their header says",
                         RUNNING, one_of=HEADERS)
    model: str = option("dmg", "the Game Boy: dmg, cgb (docs/color.md), or auto (PyBoy's choice for the game)",
                        RUNNING, one_of=MODELS)
    sound: bool = option(False, "emulate the sound registers, as PyBoy does with sound_emulated=True; otherwise they "
                         "read 00 (docs/sound.md)", RUNNING)
    instruction_budget: int = option(0, "instructions per step after which the Game Boy is locked at the end of the "
                                     "frame (0: no limit)", RUNNING, least=0, most=2**31 - 1)
    num_threads: int | None = option(None, "CPU threads that emulate (default: one per core)", RUNNING, least=1)
    autotune: bool = option(True, "on a GPU, time some steps to find the fastest way to launch the kernel for this "
                            "game; changes no result", RUNNING)
    native: bool = option(True, "on a CPU, after 20 seconds compile the code that this game executes most, in the "
                          "background; changes no result", RUNNING)
    seed: int | None = option(
        0, "seed of everything that is sampled (None: 0)", RUNNING, least=-LARGEST_SEED, most=LARGEST_SEED)
    first_env: int = option(
        0, "Game Boy i gets the random numbers of Game Boy first_env + i of a larger environment", RUNNING, least=0,
        most=2**31 - 1)
    # fmt: on

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, checked(each, getattr(self, each.name)))
        Schedule(self.frames_per_step, self.release_after_frames)


@dataclass(frozen=True)
class OptionType:
    """A type of option: its description, its type on a command line, and the conversion of a value to plain Python
    (`take` raises TypeError or ValueError for a value of another type)."""

    words: str
    flag: Any
    take: Callable[[Any], Any]


def _boolean(value: object) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy's, too
        raise TypeError
    return bool(value)


def _integer(value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError
    return int(value)


def _number(value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError
    try:
        number = float(value)
    except OverflowError:  # a whole number that is larger than any float
        raise TypeError from None
    if not math.isfinite(number):
        raise TypeError
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _task(value: object) -> TaskSpec:
    """A Task, its class, or text. tasks.task is imported only for the first two, because it imports torch."""
    if isinstance(value, str):
        return value
    from gbxcule_puffer.tasks.task import checked_task

    return checked_task(value)


def _paths(value: object) -> str | tuple[str, ...]:
    return tuple(map(_path, value)) if isinstance(value, list | tuple) else _path(value)


def _path(value: object) -> str:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise TypeError
    return os.fspath(value)


def _names(value: Iterable[object]) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        raise TypeError
    return (value,) if isinstance(value, str) else tuple(map(_text, value))


# By the annotation of a field, without "| None".
OPTION_TYPES = {
    "bool": OptionType("True or False", bool, _boolean),
    "int": OptionType("a whole number", int, _integer),
    "float": OptionType("a finite number", float, _number),
    "str": OptionType("text", str, _text),
    "tuple[str, ...]": OptionType("names", tuple[str, ...], _names),
    "TaskSpec": OptionType("a Task, its class, or text such as package.module:Class", str, _task),
    "StrPath": OptionType("a path", str, _path),
    "StrPath | Sequence[StrPath]": OptionType("a path or a list of paths", str, _paths),
}


def type_of(option: Field[object]) -> tuple[OptionType, bool]:
    """(the type of an option, True if it may be None)."""
    annotation = str(option.type)
    return OPTION_TYPES[annotation.removesuffix(" | None")], annotation.endswith(" | None")


def flag_type(option: Field[object]) -> type:
    """The type of an option on a command line: a Literal if only some texts are allowed."""
    own_type, optional = type_of(option)
    one_of = option.metadata["one_of"]
    plain: Any = Literal[one_of] if one_of else own_type.flag
    return plain | None if optional else plain


def limits_of(option: Field[object]) -> str:
    """The allowed values of an option, in words; empty if all values of its type are allowed."""
    limits = option.metadata
    if limits["one_of"]:
        return f"one of {', '.join(limits['one_of'])}"
    if not math.isinf(limits["most"]):
        return f"from {_figure(limits['least'])} to {_figure(limits['most'])}"
    bounds = (("at least", limits["least"]), ("below", limits["below"]))
    return " and ".join(f"{word} {_figure(bound)}" for word, bound in bounds if not math.isinf(bound))


def _figure(bound: float) -> str:
    """A limit in digits: whole numbers without a decimal point."""
    return f"{int(bound) if bound == int(bound) else bound:,}"


def checked(option: Field[object], value: object) -> object:
    """`value` as plain Python of the option's type.

    Raises: ConfigError if it is of another type or outside the limits.
    """
    own_type, optional = type_of(option)
    if value is None and optional:
        return None
    limits = option.metadata
    try:
        value = own_type.take(value)
    except (TypeError, ValueError):
        wanted = [own_type.words] if own_type.take is _integer or not limits_of(option) else []
        wanted += [limits_of(option)] if limits_of(option) else []
        raise ConfigError(f"{option.name} {value!r:.80} must be {', '.join(wanted)}") from None
    if limits["one_of"] and value not in limits["one_of"]:
        raise ConfigError(f"{option.name} {value!r:.80} is unknown: give {limits_of(option)}")
    if isinstance(value, int | float) and not (limits["least"] <= value <= limits["most"] and value < limits["below"]):
        raise ConfigError(f"{option.name} {value} must be {limits_of(option)}")
    if limits["check"] is not None:
        limits["check"](value)
    return value


def whole_number(name: str, value: object, least: int = 1) -> int:
    """An argument that is not an option, such as num_envs, as plain Python.

    Raises: ConfigError if it is not a whole number, or below `least`.
    """
    try:
        value = _integer(value)
    except TypeError:
        raise ConfigError(f"{name} {value!r} must be a whole number") from None
    if value < least:
        raise ConfigError(f"{name} {value} must be at least {least}")
    return value


OTHERS = ("rom", "num_envs", "device")  # arguments of every env besides its options
WEIGHTS = tuple(each.name for each in fields(EnvOptions) if each.metadata["weight"])


def options_of(keywords: Mapping[str, Any], kind: type[Options], names: Collection[str] = ()) -> Options:
    """A call's keywords as options, all or those of `names`.

    Raises: ConfigError for a keyword that is not an option, naming the nearest one, and a value that is not allowed.
    """
    known = [each.name for each in fields(kind) if not names or each.name in names]
    for name in keywords:
        if name not in known:
            close = difflib.get_close_matches(name, (*known, *OTHERS), 1)
            remedy = f"did you mean {close[0]}?" if close else f"give one of {', '.join(known)}"
            raise ConfigError(f"option {name!r} is unknown: {remedy}")
    return kind(**keywords)


def first_difference(saved: Mapping[str, object], config: Mapping[str, object]) -> tuple[str, Any, Any] | None:
    """(name, value in `saved`, value in `config`) of the first difference between two envs' configs, None if there is
    none. A missing value is None."""
    values = ((name, saved.get(name), config.get(name)) for name in (*config, *saved))
    return next(((name, was, now) for name, was, now in values if was != now), None)


def signature(function: Callable[..., object], names: Collection[str] = ()) -> inspect.Signature:
    """The signature of a function whose **keywords are options, all or those of `names`, with each of them spelled out,
    for `inspect` and editors."""
    own = inspect.signature(function)
    listed = [each for each in own.parameters.values() if each.name != "self" and each.kind is not each.VAR_KEYWORD]
    known = {each.name for each in listed}
    spelled = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in fields(EnvOptions)
        if each.name not in known and (not names or each.name in names)
    ]
    return own.replace(parameters=[*listed, *spelled])
