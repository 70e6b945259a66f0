"""`puffer plot`: the learning curves of runs as a PNG."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> None:
    plot = commands.add_parser("plot", help="draw runs' reward, success, distance, entropy and speed against steps")
    plot.add_argument("runs", nargs="+", metavar="RUN", help="a run's folder; seeds of one experiment are one line")
    plot.add_argument("--out", help="PNG file (default: RUN/curves.png, or curves.png for several runs)")
    plot.add_argument("--smooth", type=int, default=4, help="records that a point of a curve is the mean of")
    plot.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.plot.plot import draw
    from gbxcule_puffer.errors import ConfigError

    if args.smooth < 1:
        raise ConfigError(f"--smooth {args.smooth} must be at least 1")
    paths = [Path(run) for run in args.runs]
    out = Path(args.out) if args.out else (paths[0] / "curves.png" if len(paths) == 1 else Path("curves.png"))
    draw(paths, out, args.smooth)
    print(out)
