"""`puffer goal ...` and `puffer stage`: start states and goal templates."""

from __future__ import annotations

import argparse

from gbxcule_puffer.actions import CODECS, DEFAULT_CODEC
from gbxcule_puffer.commands.parser import OneLineParser


def add(commands: argparse._SubParsersAction) -> None:
    _add_stage(commands)
    _add_goal(commands)


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


def _report(files) -> None:
    from gbxcule_puffer.goals import GoalTemplate

    goal = GoalTemplate.load(files.goal_dir)
    print(f"start state  {files.start_state}")
    print(f"goal         {files.goal_dir}: {len(goal.frames)} pictures, {len(goal.meta['solve_actions'])} actions away")
    print(f"tau          {goal.meta['tau']:.5f}; the start is {goal.meta['calibration']['start_distance']:.5f} away")
