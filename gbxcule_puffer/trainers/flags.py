"""A dataclass of flags as a command line, and the defaults that depend on the device."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import torch
import tyro

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env.options import EnvOptions, flag_type
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers.distributed import World

Flags = TypeVar("Flags")
ROOT = Path(__file__).resolve().parents[2]


# Options of the environment that each trainer sets by itself.
SET_BY_TRAINERS = ("io", "obs", "log_interval", "info_mode", "num_threads", "seed", "first_env")


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
    """The flags of every trainer: the environment's options, where it runs, its evaluation and its files. `None` means:
    by device, or the task's own."""

    env: str = "gbxcule"
    """environment: gbxcule, pyboy_puffer_single, pyboy_puffer_vec or toy"""
    rom: str | None = None
    """Game Boy image; needs --goal-dir (default: the stage's)"""
    stage: str = str(ROOT / "roms/homeward/stage1.json")
    """stage file that the start and the goal are made from when --goal-dir is not given"""
    eval_episodes: int = 50
    """episodes of an evaluation"""
    eval_envs: int = 10
    """Game Boys that play an evaluation"""
    eval_device: str = "cpu"
    """where the evaluation plays: a CPU core runs one Game Boy faster than a GPU, to the same bits"""
    stop_at_success: float = 0.95
    """end when two evaluations in a row succeed at least this often, at every stage; above 1 never"""
    keep_checkpoints: int = 3
    """checkpoints to keep: checkpoint.pt, checkpoint.1.pt before it and so on"""
    seed: int = 1
    """seed of the weights, the sampled actions and the environment"""
    device: str = "auto"
    """cpu, cuda or cuda:N (default: a GPU if there is one)"""
    run_dir: str | None = None
    """folder of this run's files (default: runs/ENV__EXP__SEED__TIME)"""
    resume: str | None = None
    """checkpoint.pt to continue from"""
    smoke: bool = False
    """a tiny run of a few seconds that goes through everything once, for debugging"""


# Of these, what a resumed run may change; the env's config and state are compared instead of the task's files.
FREE_ON_RESUME = (
    *("eval_episodes", "eval_envs", "eval_device", "stop_at_success", "keep_checkpoints", "device", "run_dir"),
    *("resume", "smoke", "rom", "start_state", "goal_dir", "stage", "stages"),
)


def parse_flags(flags: type[Flags], prog: str, description: str | None, argv: Sequence[str] | None = None) -> Flags:
    """The command line as a dataclass; a mistake is one line on stderr and exit code 2."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(flags, prog=prog, description=description, args=argv)
    except SystemExit as end:
        if end.code:
            # tyro draws a box around its message, with a title in its first line and rules between its parts.
            lines = [line.strip("\u2502 ") for line in message.getvalue().splitlines()[1:]]
            text = " ".join(line for line in lines if line.strip("\u2500\u2570\u256f-"))
            for appendix in (" Argument helptext:", " For full helptext"):
                text = text.split(appendix)[0]
            print(f"{prog}: {text} (see --help)", file=sys.stderr)
        raise


def settle_flags(
    args: Any,
    device_defaults: Mapping[str, Mapping[str, Any]],
    world: World,
    smoke: Mapping[str, Any],
) -> None:
    """Sets `args.device` to this process's own, fills in what is None from `device_defaults` ("cpu" and "cuda"); with
    --smoke, sets the values of a tiny run, `smoke`.

    Raises: ConfigError or DeviceError.
    """
    for name, value in smoke.items() if args.smoke else ():
        setattr(args, name, value)
    if args.device == "auto":  # PyBoy runs on the CPU only
        args.device = "cuda" if torch.cuda.is_available() and not args.env.startswith("pyboy") else "cpu"
    if args.device.startswith("cuda:") and world.size > 1:
        raise ConfigError(f"--device {args.device} is one GPU for {world.size} processes: give --device cuda")
    if args.device == "cuda" and world.size > 1:
        args.device = f"cuda:{world.local_rank}"
    args.device = resolve_device(args.device)
    for name, value in device_defaults[args.device.split(":")[0]].items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def check_at_least_one(args: Any, names: Collection[str]) -> None:
    """Raises: ConfigError naming the flag of `names`, or of the counts in TaskFlags, that is below 1."""
    for name in (*names, "eval_episodes", "eval_envs", "keep_checkpoints"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(args, name)} must be at least 1")
