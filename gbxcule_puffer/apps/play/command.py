"""`puffer play`: play a ROM by hand, or let an agent play; save states and action traces."""

from __future__ import annotations

import argparse

from gbxcule_puffer.apps.parser import add_header, add_model


def add(commands: argparse._SubParsersAction) -> None:
    play = commands.add_parser("play", help="play a ROM by hand, in real time or a step a key; save states and traces")
    play.add_argument("rom", help="Game Boy image, or homeward")
    add_header(play)
    add_model(play)
    play.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    play.add_argument("--out", default="play", help="folder for states and traces (default: play)")
    play.add_argument("--agent", metavar="RUN", help="a run whose agent may play beside you or take over")
    play.add_argument("--greedy", action="store_true", help="the agent takes the likeliest action instead of sampling")
    play.add_argument("--frames-per-step", type=int, default=24)
    play.add_argument("--release-after-frames", type=int, default=8)
    add_display(play)
    play.set_defaults(run=_run)


def add_display(parser: argparse.ArgumentParser) -> None:
    """--window, --browser with its --address, and --terminal."""
    display = parser.add_mutually_exclusive_group()
    for name, use in (
        ("window", "play in a window (default where there is a display)"),
        ("browser", "play on a web page"),
        ("terminal", "play right here, a step a key"),
    ):
        display.add_argument(f"--{name}", dest="display", action="store_const", const=name, default="auto", help=use)
    parser.add_argument("--address", default="127.0.0.1:8484", help="HOST:PORT of --browser (default: 127.0.0.1:8484)")


def _run(args: argparse.Namespace) -> None:
    from gbxcule_puffer.apps.play.agent import Agent
    from gbxcule_puffer.apps.play.play import show
    from gbxcule_puffer.apps.play.session import PlaySession

    session = PlaySession(
        args.rom,
        args.out,
        start_state=args.start_state,
        header=args.header,
        model=args.model,
        frames_per_step=args.frames_per_step,
        release_after_frames=args.release_after_frames,
        agent=Agent(args.agent, args.rom, greedy=args.greedy) if args.agent else None,
    )
    show(session, args.display, args.address)
    for path in session.written:
        print(f"saved  {path}")
