"""From the command line to a script's training: flags, a run to resume, processes, and the exit code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from gbxcule_puffer import errors
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import find_own
from gbxcule_puffer.trainers.checkpoints import find_resumed
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import layout_of
from gbxcule_puffer.trainers.flags import Args, RunFlags, own_device, read_flags, resumed_flags
from gbxcule_puffer.trainers.kernels import ahead
from gbxcule_puffer.trainers.run import RUNS, Run
from gbxcule_puffer.trainers.speed import GraphFlags, SpeedFlags

MALLOPT = {"M_MMAP_THRESHOLD": (-3, 2**30), "M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 2**26)}  # glibc's
OWN = {"rom": ".gb", "symbols": ".sym", "stage": "", "stages": ""}  # flags whose files may be ours
RESUMED = "stopped; --resume continues from the last checkpoint, or starts again if there is none"


def launch(
    train: Callable[[Any, Run], None],
    flags: type[Args],
    prog: str,
    description: str | None,
    argv: Sequence[str] | None = None,
    processes: bool = True,
) -> int:
    """Runs one training of the script `prog` with the flags of the command line; returns the exit code.

    processes: True if several can learn together.
    """
    return exit_code(prog, partial(_start, train, flags, prog, description, argv, processes))


def _start(
    train: Callable[[Any, Run], None],
    flags: type[Args],
    prog: str,
    description: str | None,
    argv: Sequence[str] | None,
    processes: bool,
) -> None:
    world = World.from_environment()
    if world.size > 1 and not processes:
        raise ConfigError(f"{prog} runs in one process: start it without torchrun")
    args = read_flags(flags, prog, description, argv)
    args.check()
    for name, suffix in OWN.items():
        if isinstance(path := getattr(args, name), str):
            setattr(args, name, find_own(path, suffix))
    _find_game(args)
    args.device = own_device(args, world)
    joined = world.join(args.device)
    resumed = None
    if args.resume is not None:
        # Read once, for all processes: none may continue from another checkpoint, and only the first may have the file.
        resumed = world.tell(find_resumed(args.resume, args.run_dir, RUNS, prog) if world.rank == 0 else None)
    if resumed is not None:
        device, args = args.device, resumed_flags(flags, resumed.flags, resumed.path, prog, argv, resumed.note)
        args.check()
        _find_game(args)
        # With several processes, the devices are those of this start.
        args.device = device if world.size > 1 else own_device(args, world)
    if args.device == "cpu":
        _keep_freed_memory()
    elif isinstance(args, SpeedFlags) and args.bf16:
        ahead.begin(torch.device(args.device), layout_of(args).picture_shape, args.fused)
    if world.rank == 0 and isinstance(args, GraphFlags) and args.left_out:
        print(args.left_out)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    # Not the default stream, on which no graph can be recorded; on a CPU there are no streams.
    stream = nullcontext() if args.device == "cpu" else torch.cuda.stream(torch.cuda.Stream(args.device))
    with Run(args, prog, world, resumed) as run, stream:
        train(args, run)
    if joined:
        world.leave()


def _find_game(args: RunFlags) -> None:
    """Replaces --game by the text that a run saves."""
    if args.game is not None:
        from gbxcule_puffer.games import saved_name

        args.game = saved_name(args.game)


def _keep_freed_memory() -> None:
    """Makes glibc keep the memory of large tensors, which each step frees and allocates again. Memory that went back to
    the system would come back as pages of zeros."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        for option, value in MALLOPT.values():
            mallopt(option, value)


def exit_code(prog: str, work: Callable[[], None], interrupted: str = RESUMED) -> int:
    """Runs `work` as `errors.exit_code` does; after Ctrl-C it says how to continue."""
    return errors.exit_code(prog, work, interrupted)
