"""`puffer verify`: a ROM in lockstep with PyBoy."""

from __future__ import annotations

import argparse

from gbxcule_puffer.apps.parser import add_action_codec, add_header, add_model

OPTIONS = ("rom", "start_state", "steps", "frames_per_step", "release_after_frames", "actions", "action_codec")
OPTIONS += ("device", "mem_region", "rom_sha256", "header", "model")


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    verify = commands.add_parser(
        "verify",
        help="check a ROM against PyBoy, step by step",
        description="Runs a ROM on the emulator and on PyBoy and compares registers, memory and picture after every "
        "step. Exit code: 0 equal, 1 different, 2 bad input.",
        argument_default=argparse.SUPPRESS,
    )
    verify.add_argument("rom", help="Game Boy image")
    add_header(verify, argparse.SUPPRESS)  # a bundle to replay has its own
    add_model(verify, argparse.SUPPRESS)
    verify.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    verify.add_argument("--steps", type=int, help="steps to compare (default: 500, or all of an action file)")
    verify.add_argument("--frames-per-step", type=int, help="default: 24; 1 compares every frame")
    verify.add_argument("--release-after-frames", type=int, help="default: a third of the step's frames")
    verify.add_argument("--actions", help="random:SEED, or a file of action names (default: random:0)")
    add_action_codec(verify, argparse.SUPPRESS)
    verify.add_argument("--device", help="the emulator's device: cpu, cuda or cuda:N (default: cpu)")
    verify.add_argument(
        "--mem-region",
        help="memory to compare, FIRST:END in hex (default: C000:E000); VRAM, OAM and HRAM always are",
    )
    verify.add_argument("--rom-sha256", help="refuse another ROM")
    verify.add_argument("--replay", metavar="BUNDLE", help="show again what a repro bundle holds; other flags win")
    verify.add_argument("--out", help="folder of a difference's repro bundle (default: runs/verify/ROM-stepN)")
    verify.add_argument("--no-bundle", action="store_true", default=False, help="only report a difference")
    verify.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="where the summary goes as JSON; without FILE, or with -, to stdout, as where stdout is no terminal",
    )
    verify.set_defaults(run=_run, may_hang=True)


def _run(args: argparse.Namespace) -> int:
    from gbxcule_puffer.apps.verify.bundle import run

    given = {name: getattr(args, name) for name in OPTIONS if hasattr(args, name)}
    places = {name: getattr(args, name, None) for name in ("replay", "out")}
    return run(given, bundle=not args.no_bundle, json_path=getattr(args, "json", None), **places)
