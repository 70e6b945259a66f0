"""`puffer bench`: environments measured in turns, with records, a report and a plot."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from gbxcule_puffer.apps.bench import ACTIONS, NAMES, STAGES
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC

MICRO = ("alu_loop", "mem_rwb", "joy_diverge_persist")
SIZES = {"cpu": "16,64", "cuda": "1024,4096,16384"}
ROMS = Path(__file__).resolve().parents[3] / "roms"


def add(commands: argparse._SubParsersAction) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure steps per second, alone or beside another environment; exit code 1 where a limit is missed",
        description="Measures env steps per second in turns with another environment: same ROM, state and actions.",
    )
    bench.add_argument("env", nargs="?", choices=NAMES, default="gbxcule", help="what is measured (default: gbxcule)")
    bench.add_argument("--vs", choices=NAMES, help="measure this one beside it and give the ratio")
    what = bench.add_mutually_exclusive_group()
    what.add_argument("--rom", nargs="+", metavar="ROM", help="Game Boy images (default: HOMEWARD)")
    what.add_argument(
        "--suite",
        choices=("micro", "games"),
        help="micro: three small programs with --actions striped; games: HOMEWARD and those of --roms",
    )
    bench.add_argument("--roms", metavar="DIR", help="folder of more Game Boy images for --suite games")
    bench.add_argument(
        "--start-state", metavar="FILE", help="snapshot or PyBoy .state to start from (default: post-boot)"
    )
    bench.add_argument("--goal-dir", metavar="DIR", help="goal to measure the distance to (default: a checkerboard)")
    bench.add_argument(
        "--num-envs", type=_counts, metavar="N[,N]", help=f"envs (default: {SIZES['cpu']}; on a GPU {SIZES['cuda']})"
    )
    bench.add_argument("--stage", choices=STAGES, default="full_step", help="how much of a step (default: full_step)")
    bench.add_argument("--obs", choices=("shades", "packed", "full"), default="shades", help="kind of observation")
    bench.add_argument("--stack-k", type=_positive, default=1, help="pictures in an observation")
    bench.add_argument("--actions", choices=ACTIONS, help="striped: env i holds action i mod n")
    bench.add_argument("--action-codec", choices=tuple(CODECS), default=DEFAULT_CODEC)
    bench.add_argument("--frames-per-step", type=_positive, default=24)
    bench.add_argument("--release-after-frames", type=_positive, default=8)
    bench.add_argument(
        "--reset-every",
        type=_counts_or_0,
        default=[0],
        metavar="K[,K]",
        help="end all episodes after K steps; 0: never",
    )
    bench.add_argument("--warmup", type=_count_or_0, default=100, help="steps before the first repeat (default: 100)")
    bench.add_argument("--steps", type=_positive, default=200, help="steps of a repeat (default: 200)")
    bench.add_argument("--repeat", type=_positive, default=3, help="repeats, whose median counts (default: 3)")
    bench.add_argument("--seed", type=_count_or_0, default=0, help="seed of the random actions")
    bench.add_argument(
        "--device", default="auto", help="gbxcule's: cpu, cuda or cuda:N (default: a GPU if there is one)"
    )
    bench.add_argument("--cores", type=_positive, help="PyBoy's processes, gbxcule's CPU threads (default: all cores)")
    bench.add_argument(
        "--vec-backend", choices=("serial", "mp_sync", "mp_async"), default="mp_async", help="of pyboy_puffer_vec"
    )
    bench.add_argument("--vs-num-envs", type=_positive, help="envs of --vs (default: 8 for each core)")
    bench.add_argument(
        "--max-mem-delta", type=_count_or_0, metavar="BYTES", help="fail if more are allocated after warm-up"
    )
    bench.add_argument(
        "--min-ratio", type=_ratio, metavar="X", help="fail if the ratio to --vs is less at the most envs"
    )
    bench.add_argument(
        "--autotune",
        action="store_true",
        help="instead: find and keep the fastest way to launch this GPU's kernel",
    )
    bench.add_argument("--out", help="folder for records, report and plot (default: runs/bench/TIME)")
    bench.set_defaults(run=_run, may_hang=True)


def _run(args: argparse.Namespace) -> int | None:
    import torch

    from gbxcule_puffer.apps.bench.run import Plan, run
    from gbxcule_puffer.device import resolve_device
    from gbxcule_puffer.provenance import usable_cores

    if args.min_ratio is not None and args.vs is None:
        raise ConfigError("--min-ratio needs --vs: give what to compare with, e.g. --vs pyboy_puffer_vec")
    if args.vs == args.env:
        raise ConfigError(f"--vs {args.vs} is what is measured already: give another one")
    if args.cores is not None and args.cores > usable_cores():
        raise ConfigError(f"--cores {args.cores}: this process may use {usable_cores()}")
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    device = resolve_device(args.device)
    sizes = args.num_envs or _counts(SIZES[device.split(":")[0] if args.env == "gbxcule" else "cpu"])
    if args.autotune:
        from gbxcule_puffer.apps.bench.autotune import autotune

        return autotune(_workloads(args)[0], sizes, device)
    plan = Plan(
        name=args.env,
        versus=args.vs,
        workloads=_workloads(args),
        sizes=sizes,
        device=device,
        cores=args.cores or usable_cores(),
        vec_backend=args.vec_backend,
        versus_num_envs=args.vs_num_envs,
        max_mem_delta=args.max_mem_delta,
        min_ratio=args.min_ratio,
    )
    out = Path(args.out or Path("runs/bench") / time.strftime("%Y%m%d-%H%M%S"))
    return run(plan, out, shlex.join(["puffer", *sys.argv[1:]]))


def _workloads(args: argparse.Namespace) -> list:
    """One for each ROM and length of episodes."""
    from gbxcule_puffer.apps.bench.workload import Workload

    roms = _roms(args)
    for name in ("start_state", "goal_dir"):
        if getattr(args, name) is not None and len(roms) > 1:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to one game: give one --rom")
    start, goal = (None if path is None else Path(path) for path in (args.start_state, args.goal_dir))
    actions = args.actions or ("striped" if args.suite == "micro" else "random")
    names = ("stage", "obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames")
    names += ("warmup", "steps", "repeat", "seed")
    options = {name: getattr(args, name) for name in names}
    return [
        Workload(rom, start, goal, actions=actions, reset_every=reset_every, **options)
        for rom in roms
        for reset_every in args.reset_every
    ]


def _roms(args: argparse.Namespace) -> list[Path]:
    if args.roms is not None and args.suite != "games":
        raise ConfigError("--roms belongs to --suite games: use --rom for single images")
    if args.rom:
        return [Path(rom) for rom in args.rom]
    own = [ROMS / "micro" / f"{name}.gb" for name in MICRO] if args.suite == "micro" else [ROMS / "homeward.gb"]
    for rom in own:
        if not rom.is_file():
            raise ConfigError(f"{rom.name} is not installed: run in a clone of the repository, or give --rom")
    if args.roms is None:
        return own
    more = sorted(path for path in Path(args.roms).glob("*") if path.suffix in (".gb", ".gbc"))
    if not more:
        raise ConfigError(f"--roms {args.roms} holds no .gb file: give a folder of Game Boy images")
    return [*own, *more]


def _number(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < least:
        raise argparse.ArgumentTypeError(f"{value} must be at least {least}")
    return value


def _positive(text: str) -> int:
    return _number(text, 1)


def _count_or_0(text: str) -> int:
    return _number(text, 0)


def _counts(text: str) -> list[int]:
    return [_number(part, 1) for part in text.split(",")]


def _counts_or_0(text: str) -> list[int]:
    return [_number(part, 0) for part in text.split(",")]


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
