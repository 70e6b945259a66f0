"""`puffer verify`: a ROM in lockstep with PyBoy."""

from __future__ import annotations

import argparse

from gbxcule_puffer.tasks.actions import CODECS, DEFAULT_CODEC


def add(commands: argparse._SubParsersAction) -> None:
    verify = commands.add_parser(
        "verify", help="run a ROM in lockstep with PyBoy; exit code 0 equal, 1 different, 2 bad input"
    )
    verify.add_argument("rom", help="Game Boy image")
    verify.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    verify.add_argument("--steps", type=int, help="steps to compare (default: 500, or all of an action file)")
    verify.add_argument("--frames-per-step", type=int, default=24, help="1 compares every frame")
    verify.add_argument("--release-after-frames", type=int, help="default: a third of the step's frames")
    verify.add_argument("--actions", default="random:0", help="random:SEED, or a file of action names")
    verify.add_argument("--action-codec", choices=tuple(CODECS), default=DEFAULT_CODEC)
    verify.add_argument("--device", default="cpu", help="the emulator's device: cpu, cuda or cuda:N")
    verify.add_argument(
        "--mem-region", default="C000:E000", help="memory to compare, FIRST:END in hex; VRAM, OAM and HRAM always are"
    )
    verify.add_argument("--rom-sha256", help="refuse another ROM")
    verify.add_argument("--out", help="folder of a difference's repro bundle (default: runs/verify/<ROM>-step<N>)")
    verify.add_argument("--no-bundle", action="store_true", help="only report a difference")
    verify.add_argument("--json", help="file for the JSON summary (default: standard output)")
    verify.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from gbxcule_puffer.apps.verify.bundle import run

    names = ("rom", "start_state", "steps", "frames_per_step", "release_after_frames", "actions", "action_codec")
    names += ("device", "mem_region", "rom_sha256")
    options = {name: getattr(args, name) for name in names}
    return run(options, bundle=not args.no_bundle, out=args.out, json_path=args.json)
