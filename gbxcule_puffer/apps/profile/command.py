"""`puffer profile`: why a game is as fast as it is."""

from __future__ import annotations

import argparse
from pathlib import Path

from gbxcule_puffer.apps.parser import add_action_codec, add_header, add_model, plain_codec, positive


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    profile = commands.add_parser(
        "profile",
        help="say why a game is as fast as it is: loops that wait, interrupts, what stops a GPU",
        description="Plays a game with random actions on the CPU, counts what is executed and what interrupts it, and "
        "says it in plain words. The first run compiles the kernels that count.",
    )
    profile.add_argument("rom", help="Game Boy image")
    profile.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    profile.add_argument("--num-envs", type=positive, default=4, help="games (default: 4)")
    profile.add_argument("--warmup", type=positive, default=24, help="steps before it counts (default: 24)")
    profile.add_argument("--steps", type=positive, default=12, help="steps that it counts (default: 12)")
    profile.add_argument("--frames-per-step", type=positive, default=24, help="default: 24")
    add_action_codec(profile)
    profile.add_argument("--symbols", metavar="FILE", help=".sym file of the ROM, to name places in the code")
    add_header(profile)
    add_model(profile)
    profile.add_argument("--cpu-only", action="store_true", help="leave out what stops the GPU's kernel")
    profile.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.profile.measure import measure
    from gbxcule_puffer.apps.profile.names import Places
    from gbxcule_puffer.apps.profile.report import report

    names = Places(None if args.symbols is None else Path(args.symbols))
    kernels = ("interpreter",) if args.cpu_only else ("interpreter", "datapath")
    counts = [
        measure(
            args.rom,
            kernel,
            plain_codec(args.action_codec),
            start_state=args.start_state,
            header=args.header,
            model=args.model,
            num_envs=args.num_envs,
            warmup=args.warmup,
            steps=args.steps,
            frames_per_step=args.frames_per_step,
            release_after_frames=max(1, args.frames_per_step // 3),
        )
        for kernel in kernels
    ]
    print(report(Path(args.rom).name, counts[0], counts[1] if len(counts) > 1 else None, names))
