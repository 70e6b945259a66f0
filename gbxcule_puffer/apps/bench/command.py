"""`puffer bench`: environments measured in turns, with records, a report and a plot."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from gbxcule_puffer.apps.bench import ACTIONS, NAMES, STAGES
from gbxcule_puffer.apps.parser import add_action_codec, add_model, number, positive
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import find_rom

SIZES = {"cpu": "16,64", "cuda": "1024,4096,16384"}
STEPS, MANY_STEPS = (100, 200), (24, 8)  # warm-up and repeat; of a suite of many games
MANY_SIZES = {"cpu": "16", "cuda": "16384"}
RELEASE_AFTER_FRAMES = 8


def add(commands: argparse._SubParsersAction) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure steps per second, alone or beside another environment; exit code 1 where a limit is missed",
        description="Measures env steps per second in turns with another environment: same ROM, state and actions.",
    )
    bench.add_argument("env", nargs="?", choices=NAMES, default="gbxcule", help="what is measured (default: gbxcule)")
    bench.add_argument(
        "--vs",
        choices=(*NAMES, "none"),
        help="measure this one beside it and give the ratio (default: none; for --suite corpus and folders "
        "pyboy_puffer_vec)",
    )
    what = bench.add_mutually_exclusive_group()
    what.add_argument("--rom", nargs="+", metavar="ROM", help="Game Boy images (default: HOMEWARD)")
    what.add_argument(
        "--suite",
        metavar="NAME",
        help="micro: three small programs with --actions striped; corpus: HOMEWARD and the shared homebrew; or a "
        "folder of your own Game Boy images",
    )
    add_model(bench)
    bench.add_argument(
        "--start-state", metavar="FILE", help="snapshot or PyBoy .state to start from (default: post-boot)"
    )
    bench.add_argument("--goal-dir", metavar="DIR", help="goal to measure the distance to (default: a checkerboard)")
    bench.add_argument(
        "--num-envs", type=_counts, metavar="N[,N]", help=f"envs (default: {SIZES['cpu']}; on a GPU {SIZES['cuda']})"
    )
    bench.add_argument(
        "--stage",
        type=_stages,
        default=["full_step"],
        metavar="STAGE[,STAGE]",
        help=f"how much of a step: {', '.join(STAGES)} (default: full_step)",
    )
    bench.add_argument("--obs", default="shades", help="kind of observation, as the environment's obs")
    bench.add_argument("--stack-k", type=positive, default=1, help="pictures in an observation")
    bench.add_argument("--actions", choices=ACTIONS, help="striped: env i holds action i mod n")
    add_action_codec(bench)
    bench.add_argument("--frames-per-step", type=positive, default=24)
    bench.add_argument(
        "--release-after-frames",
        type=positive,
        help="default: 8, or what --frames-per-step leaves room for; of 1 frame, 1: buttons are held over steps",
    )
    bench.add_argument(
        "--reset-every",
        type=_counts_or_0,
        default=[0],
        metavar="K[,K]",
        help="end all episodes after K steps; 0: never",
    )
    bench.add_argument(
        "--warmup",
        type=_count_or_0,
        help=f"steps before the first repeat (default: {STEPS[0]}; {MANY_STEPS[0]} for --suite corpus and folders)",
    )
    bench.add_argument(
        "--steps",
        type=positive,
        help=f"steps of a repeat (default: {STEPS[1]}; {MANY_STEPS[1]} for --suite corpus and folders)",
    )
    bench.add_argument("--repeat", type=positive, default=3, help="repeats, whose median counts (default: 3)")
    bench.add_argument("--seed", type=_count_or_0, default=0, help="seed of the random actions")
    bench.add_argument(
        "--device", default="auto", help="gbxcule's: cpu, cuda or cuda:N (default: a GPU if there is one)"
    )
    bench.add_argument("--cores", type=positive, help="PyBoy's processes, gbxcule's CPU threads (default: all cores)")
    bench.add_argument(
        "--vec-backend", choices=("serial", "mp_sync", "mp_async"), default="mp_async", help="of pyboy_puffer_vec"
    )
    bench.add_argument("--vs-num-envs", type=positive, help="envs of --vs (default: 8 for each core)")
    bench.add_argument(
        "--max-mem-delta", type=_count_or_0, metavar="BYTES", help="fail if more are allocated after warm-up"
    )
    bench.add_argument(
        "--min-ratio", type=_ratio, metavar="X", help="fail if the ratio to --vs is less at the most envs"
    )
    bench.add_argument(
        "--baseline", metavar="FILE", help="records.json of an earlier run: fail where a record is slower than there"
    )
    bench.add_argument(
        "--max-loss", type=_share, metavar="X", help="how much slower --baseline may find it (default: 0.05, 5 %%)"
    )
    bench.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="also write the records here; without FILE, or with -, to stdout, and all else to stderr",
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

    from gbxcule_puffer.apps.bench.baseline import load
    from gbxcule_puffer.apps.bench.run import Plan, run
    from gbxcule_puffer.device import resolve_device
    from gbxcule_puffer.files import check_target
    from gbxcule_puffer.provenance import usable_cores

    is_many = args.suite not in (None, "micro")
    versus = args.vs or ("pyboy_puffer_vec" if is_many and args.env == "gbxcule" else "none")
    if args.min_ratio is not None and versus == "none":
        raise ConfigError("--min-ratio needs --vs: give what to compare with, e.g. --vs pyboy_puffer_vec")
    if versus == args.env:
        raise ConfigError(f"--vs {args.vs} is what is measured already: give another one")
    if args.cores is not None and args.cores > usable_cores():
        raise ConfigError(f"--cores {args.cores}: this process may use {usable_cores()}")
    if args.max_loss is not None and args.baseline is None:
        raise ConfigError("--max-loss needs --baseline: give the records.json of an earlier run")
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    device = resolve_device(args.device)
    usual = MANY_SIZES if is_many else SIZES
    sizes = args.num_envs or _counts(usual[device.split(":")[0] if args.env == "gbxcule" else "cpu"])
    workloads = _workloads(args, MANY_STEPS if is_many else STEPS)
    if args.autotune:
        from gbxcule_puffer.apps.bench.autotune import autotune

        return autotune(workloads[0], sizes, device)
    if args.json not in (None, "-"):
        check_target(args.json)
    plan = Plan(
        name=args.env,
        versus=None if versus == "none" else versus,
        workloads=workloads,
        sizes=sizes,
        device=device,
        cores=args.cores or usable_cores(),
        vec_backend=args.vec_backend,
        versus_num_envs=args.vs_num_envs,
        max_mem_delta=args.max_mem_delta,
        min_ratio=args.min_ratio,
        baseline=() if args.baseline is None else load(Path(args.baseline)),
        max_loss=0.05 if args.max_loss is None else args.max_loss,
        json_out=args.json,
    )
    out = Path(args.out or Path("runs/bench") / time.strftime("%Y%m%d-%H%M%S"))
    return run(plan, out, shlex.join(["puffer", *sys.argv[1:]]))


def _workloads(args: argparse.Namespace, usual_steps: tuple[int, int]) -> list:
    """One for each ROM, stage and length of episodes; usual_steps: of warm-up and repeat, where none are given."""
    from gbxcule_puffer.apps.bench.suites import roms_of_suite
    from gbxcule_puffer.apps.bench.workload import Workload
    from gbxcule_puffer.tasks.observe.pictures import picture_kind
    from gbxcule_puffer.tasks.source import default_rom

    picture_kind(args.obs)
    if args.suite is not None:
        roms = roms_of_suite(args.suite)
    else:
        roms = [Path(find_rom(rom)) for rom in args.rom] if args.rom else [default_rom()]
    for name in ("start_state", "goal_dir"):
        if getattr(args, name) is not None and len(roms) > 1:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to one game: give one --rom")
    start, goal = (None if path is None else Path(path) for path in (args.start_state, args.goal_dir))
    names = ("model", "obs", "stack_k", "action_codec", "frames_per_step", "repeat", "seed")
    options = {name: getattr(args, name) for name in names}
    options["actions"] = args.actions or ("striped" if args.suite == "micro" else "random")
    options["warmup"] = usual_steps[0] if args.warmup is None else args.warmup
    options["steps"] = args.steps or usual_steps[1]
    options["release_after_frames"] = args.release_after_frames or max(
        1, min(RELEASE_AFTER_FRAMES, args.frames_per_step - 1)
    )
    return [
        Workload(rom, start, goal, stage=stage, reset_every=reset_every, **options)
        for rom in roms
        for stage in args.stage
        for reset_every in args.reset_every
    ]


def _count_or_0(text: str) -> int:
    return number(text, 0)


def _counts(text: str) -> list[int]:
    return [number(part, 1) for part in text.split(",")]


def _stages(text: str) -> list[str]:
    stages = text.split(",")
    for stage in stages:
        if stage not in STAGES:
            raise argparse.ArgumentTypeError(f"{stage!r} is no stage: give some of {', '.join(STAGES)}")
    return stages


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up to 1")
    return value


def _counts_or_0(text: str) -> list[int]:
    return [number(part, 0) for part in text.split(",")]


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
