"""`puffer play`: play a ROM by hand; save states and action traces."""

from __future__ import annotations

import argparse

from gbxcule_puffer.apps.parser import add_header


def add(commands: argparse._SubParsersAction) -> None:
    play = commands.add_parser("play", help="play a ROM by hand, one step a key; save states and traces")
    play.add_argument("rom", help="Game Boy image")
    add_header(play)
    play.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    play.add_argument("--out", default="play", help="folder for states and traces (default: play)")
    play.add_argument("--frames-per-step", type=int, default=24)
    play.add_argument("--release-after-frames", type=int, default=8)
    add_display(play)
    play.set_defaults(run=_run)


def add_display(parser: argparse.ArgumentParser) -> None:
    """--window and --terminal."""
    display = parser.add_mutually_exclusive_group()
    for name, use in (
        ("window", "play in a window (default where there is a display)"),
        ("terminal", "play right here"),
    ):
        display.add_argument(f"--{name}", dest="display", action="store_const", const=name, default="auto", help=use)


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.play.play import show
    from gbxcule_puffer.apps.play.session import PlaySession

    session = PlaySession(
        args.rom,
        args.out,
        start_state=args.start_state,
        header=args.header,
        frames_per_step=args.frames_per_step,
        release_after_frames=args.release_after_frames,
    )
    show(session, args.display)
    for path in session.written:
        print(f"saved  {path}")
