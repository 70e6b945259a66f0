"""`puffer watch RUN`: the agent of a run's newest checkpoint plays, and a web page shows it."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    watch = commands.add_parser("watch", help="watch a run's agent play, in a browser")
    watch.add_argument("run_dir", metavar="RUN", help="a run's folder, or a checkpoint.pt")
    watch.add_argument("--num-envs", type=int, default=12, help="Game Boys (default: 12)")
    watch.add_argument("--address", default="127.0.0.1:8484", help="HOST:PORT of the page (default: 127.0.0.1:8484)")
    watch.add_argument("--greedy", action="store_true", help="take the likeliest action instead of sampling")
    watch.add_argument("--task", help="package.module:Class or file.py:Class, of a run that was trained with one")
    watch.add_argument("--symbols", help="symbol file of the ROM, for --task (default: the training's)")
    watch.add_argument("--position", help="RAM of the player's map, row and column for the page's map: D35E,D361,D362")
    watch.add_argument("--seed", type=int, default=0)
    watch.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    watch.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.watch.watch import watch

    options = ("num_envs", "address", "greedy", "seed", "device", "task", "symbols", "position")
    watch(args.run_dir, **{name: getattr(args, name) for name in options})
