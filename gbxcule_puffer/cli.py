"""The command line: `puffer ...` or `python -m gbxcule_puffer ...`. Bad input is one line and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from gbxcule_puffer.actions import CODECS, DEFAULT_CODEC
from gbxcule_puffer.errors import GBxCuLEError


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = OneLineParser(prog="puffer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    _add_stage(commands)
    _add_goal(commands)
    _add_verify(commands)
    size = commands.add_parser("size", help="print what the kernels compile to")
    size.set_defaults(run=_run_size)
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except GBxCuLEError as error:
        print(f"puffer: {error}", file=sys.stderr)
        return 2


def _add_stage(commands: argparse._SubParsersAction) -> None:
    stage = commands.add_parser("stage", help="make the start state and the goal of a stage file")
    stage.add_argument("--stage", required=True, help="JSON with rom, start_actions and solve_actions")
    _add_task_options(stage)
    stage.set_defaults(run=_run_stage)


def _add_goal(commands: argparse._SubParsersAction) -> None:
    goal = commands.add_parser("goal", help="goal templates").add_subparsers(
        dest="goal_command", required=True, parser_class=OneLineParser
    )
    make = goal.add_parser("make", help="play named actions; the picture they end at is the goal")
    make.add_argument("--rom", required=True, help="Game Boy image")
    start = make.add_mutually_exclusive_group()
    start.add_argument("--start-actions", help="file of action names that lead to the start (default: none)")
    start.add_argument("--start-state", help="snapshot file to start from (default: post-boot)")
    make.add_argument("--actions", required=True, help="file of action names that lead from the start to the goal")
    _add_task_options(make)
    make.set_defaults(run=_run_goal_make)


def _add_verify(commands: argparse._SubParsersAction) -> None:
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
    verify.set_defaults(run=_run_verify)


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="folder for start.state and goal/")
    parser.add_argument("--obs", choices=("shades", "packed", "full"), default="shades")
    parser.add_argument("--stack-k", type=int, default=1, help="pictures in an observation")
    parser.add_argument("--action-codec", choices=tuple(CODECS), default=DEFAULT_CODEC)
    parser.add_argument("--frames-per-step", type=int, default=24)
    parser.add_argument("--release-after-frames", type=int, default=8)
    parser.add_argument("--k-consecutive", type=int, default=4, help="steps that the goal has to show for")


def _task_options(args: argparse.Namespace) -> dict:
    names = ("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive")
    return {name: getattr(args, name) for name in names}


def _run_stage(args: argparse.Namespace) -> None:
    from gbxcule_puffer.stages import make_stage

    _report(make_stage(args.stage, args.out, **_task_options(args)))


def _run_goal_make(args: argparse.Namespace) -> None:
    from gbxcule_puffer.stages import make_task, read_names

    start = read_names(args.start_actions) if args.start_actions else ()
    options = _task_options(args)
    solve = read_names(args.actions)
    _report(make_task(args.rom, solve, args.out, start_actions=start, start_state=args.start_state, **options))


def _run_verify(args: argparse.Namespace) -> int:
    from gbxcule_puffer.verify_bundle import run

    names = ("rom", "start_state", "steps", "frames_per_step", "release_after_frames", "actions", "action_codec")
    names += ("device", "mem_region", "rom_sha256")
    options = {name: getattr(args, name) for name in names}
    return run(options, bundle=not args.no_bundle, out=args.out, json_path=args.json)


def _report(files) -> None:
    from gbxcule_puffer.goals import GoalTemplate

    goal = GoalTemplate.load(files.goal_dir)
    print(f"start state  {files.start_state}")
    print(f"goal         {files.goal_dir}: {len(goal.frames)} pictures, {len(goal.meta['solve_actions'])} actions away")
    print(f"tau          {goal.meta['tau']:.5f}; the start is {goal.meta['calibration']['start_distance']:.5f} away")


def _run_size(_: argparse.Namespace) -> int | None:
    from gbxcule_puffer.codegen.report import main as report

    return report()
