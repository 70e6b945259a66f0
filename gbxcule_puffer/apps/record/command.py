"""`puffer record`: a GIF or MP4 of Game Boys that play."""

from __future__ import annotations

import argparse

from gbxcule_puffer.apps.parser import add_header, add_model

OPTIONS = ("policy", "start_state", "goal_dir", "num_envs", "steps", "max_steps", "columns", "scale", "fps")
OPTIONS += ("greedy", "seed", "device", "header", "model", "task", "symbols")


def add(commands: argparse._SubParsersAction) -> None:
    record = commands.add_parser("record", help="film random buttons or a trained policy, one Game Boy or a mosaic")
    record.add_argument("rom", help="Game Boy image")
    add_header(record)
    add_model(record, None)
    record.add_argument("--out", required=True, help="film to write, .gif or .mp4")
    record.add_argument("--policy", default="random", help="random, or a trainer's checkpoint.pt (default: random)")
    record.add_argument("--start-state", help="snapshot or PyBoy .state file that episodes start from")
    record.add_argument("--goal-dir", help="goal folder; reaching its picture ends an episode")
    record.add_argument("--task", help="package.module:Class or file.py:Class, which ends episodes")
    record.add_argument("--symbols", help="symbol file of the ROM, for --task (default: the training's)")
    record.add_argument("--num-envs", type=int, default=1, help="Game Boys, side by side (default: 1)")
    record.add_argument("--steps", type=int, default=120, help="steps to film (default: 120)")
    record.add_argument("--max-steps", type=int, help="steps of an episode (default: the training's, or all)")
    record.add_argument("--columns", type=int, help="Game Boys in a row (default: nearly a square)")
    record.add_argument("--scale", type=int, default=2, help="pixels of the film a pixel of the screen (default: 2)")
    record.add_argument("--fps", type=float, default=8.0, help="steps a second; the console makes 2.5 (default: 8)")
    record.add_argument("--greedy", action="store_true", help="take the likeliest action instead of sampling")
    record.add_argument("--seed", type=int, default=0)
    record.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    record.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.record.record import record

    made = record(args.rom, args.out, **{name: getattr(args, name) for name in OPTIONS})
    size, kilobytes = f"{made.width}x{made.height}", made.path.stat().st_size // 1000
    boys = f"{args.num_envs} Game Boy{'s' * (args.num_envs > 1)}"
    print(f"{made.path}: {made.steps} steps of {boys}, {size}, {kilobytes:,} kB")
    print(f"episodes {made.episodes}, solved {made.solved}")
