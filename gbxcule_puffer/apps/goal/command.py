"""`puffer goal ...` and `puffer stage`: start states, goal templates and lists of stages."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gbxcule_puffer.apps.parser import OneLineParser, add_action_codec, add_header, add_model
from gbxcule_puffer.apps.play.command import add_display
from gbxcule_puffer.errors import ConfigError

TELL_SECONDS = 10  # between two lines that say how far a measurement is


def add(commands: argparse._SubParsersAction) -> None:
    _add_stage(commands)
    goal = commands.add_parser("goal", help="goal templates and stages").add_subparsers(
        dest="goal_command", metavar="COMMAND", required=True, parser_class=OneLineParser
    )
    _add_make(goal)
    _add_calibrate(goal)
    show = goal.add_parser("show", help="write a goal's pictures as PNG and say what it was made for")
    show.add_argument("dir", help="folder of `puffer goal make`")
    show.add_argument("--out", help="folder for the pictures (default: DIR/pictures)")
    show.set_defaults(run=_run_show)
    stages = goal.add_parser("stages", help="write a stages.json of goals that were made")
    stages.add_argument("dirs", nargs="+", metavar="DIR[:MAX_STEPS]", help="folders of `puffer goal make`, in order")
    stages.add_argument("--out", required=True, help="the stages.json to write")
    stages.set_defaults(run=_run_stages)


def _add_stage(commands: argparse._SubParsersAction) -> None:
    stage = commands.add_parser("stage", help="make the start states and goals of a stage file or a list of stages")
    stage.add_argument("--stage", required=True, help="JSON with rom, start_actions and solve_actions, or stages.json")
    add_model(stage)
    _add_task_options(stage)
    stage.set_defaults(run=_run_stage)


def _add_make(goal: argparse._SubParsersAction) -> None:
    make = goal.add_parser("make", help="play actions; the picture they end at is the goal")
    make.add_argument("--rom", required=True, help="Game Boy image")
    add_header(make)
    add_model(make)
    start = make.add_mutually_exclusive_group()
    start.add_argument("--start-actions", help="actions that lead to the start (default: none)")
    start.add_argument("--start-state", help="snapshot or PyBoy .state file to start from (default: post-boot)")
    way = make.add_mutually_exclusive_group(required=True)
    way.add_argument(
        "--actions",
        action="append",
        help="trace of `puffer play`, or file of action names, from the start to the goal; again for more ways",
    )
    way.add_argument("--png", action="append", help="screenshot that is the goal; again for more that count as well")
    way.add_argument("--play", action="store_true", help="play to the goal by hand, and press g there")
    add_display(make)
    _add_task_options(make)
    make.set_defaults(run=_run_make)


def _add_calibrate(goal: argparse._SubParsersAction) -> None:
    calibrate = goal.add_parser("calibrate", help="measure how well a goal's picture tells; propose tau and k")
    calibrate.add_argument("dir", help="folder of `puffer goal make`")
    calibrate.add_argument("--rom", help="Game Boy image (default: where the goal was made from)")
    calibrate.add_argument("--steps", type=int, default=20_000, help="steps of random play (default: 20000)")
    calibrate.add_argument("--num-envs", type=int, default=64, help="Game Boys in parallel (default: 64)")
    calibrate.add_argument("--max-steps", type=int, help="steps of an episode (default: the goal's own, else 128)")
    calibrate.add_argument(
        "--truth", action="append", default=[], help="what holds in RAM at the goal, e.g. C0A3==5; again for more"
    )
    calibrate.add_argument("--symbols", help="symbol file (.sym) of the ROM, whose names --truth may use")
    calibrate.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    calibrate.add_argument("--seed", type=int, default=0)
    calibrate.add_argument("--apply", action="store_true", help="write the proposed tau and k into the goal")
    calibrate.add_argument("--out", help="the PNG (default: DIR/calibration.png)")
    calibrate.set_defaults(run=_run_calibrate)


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="folder for start.state and goal/")
    kinds = "{shades,packed,averaged,full,luma,rgb,rgb555,...}"  # tasks.observe, which checks it, has torch
    parser.add_argument("--obs", metavar=kinds, default="shades", help="picture of an observation (default: shades)")
    parser.add_argument("--stack-k", type=int, default=1, help="pictures in an observation; a goal fits any number")
    add_action_codec(parser)
    parser.add_argument("--frames-per-step", type=int, default=24)
    parser.add_argument("--release-after-frames", type=int, default=8)
    parser.add_argument("--k-consecutive", type=int, help="steps that the goal has to show for (default: 4)")


def _task_options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive")
    return {name: getattr(args, name) for name in names}


def _run_stage(args: argparse.Namespace) -> None:
    from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
    from gbxcule_puffer.tasks.stages.list import is_stage_list, make_stages

    settings = GoalSettings(model=args.model, **_task_options(args))
    if is_stage_list(args.stage):
        rom, path = make_stages(args.stage, args.out, settings)
        print(f"ROM     {rom}\nstages  {path}")
    else:
        _report(GoalRecipe.load(args.stage, settings).make(args.out))


def _run_make(args: argparse.Namespace) -> None:
    from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
    from gbxcule_puffer.tasks.goals.traces import read_actions

    settings = GoalSettings(header=args.header, model=args.model, **_task_options(args))
    options: dict[str, Any] = {"start_state": args.start_state, "settings": settings}
    if args.start_actions:
        options["start_actions"], _ = read_actions(args.start_actions)
    if args.play:
        ways, options = [_played(args, options)], {**options, "start_actions": ()}
    elif args.png:
        ways, options = [([], None)], {**options, "png": args.png}
    else:
        ways = [read_actions(path) for path in args.actions]
        for (_, trace), path in zip(ways, args.actions, strict=True):
            if trace is not None:
                options.setdefault("traces", {})[path] = trace
    (first, _), *more = ways
    _report(GoalRecipe(args.rom, first, more_ways=[names for names, _ in more], **options).make(args.out))


def _played(args: argparse.Namespace, options: dict[str, Any]) -> tuple[list[str], None]:
    """The way to the goal that a person plays; the start where that began goes into `options`."""
    from gbxcule_puffer.apps.play.play import show
    from gbxcule_puffer.apps.play.session import PlaySession

    session = PlaySession(
        args.rom,
        None,
        start_state=args.start_state,
        header=args.header,
        model=args.model,
        frames_per_step=args.frames_per_step,
        release_after_frames=args.release_after_frames,
        goal=True,
    )
    for name in options.get("start_actions", ()):
        session.press(name)
    if session.actions:
        session.mark()
    show(session, args.display, args.address)
    if not session.reached:
        raise ConfigError("no goal was marked: play again and press g where the goal is reached")
    options["start_state"] = session.origin
    return session.actions, None


def _progress() -> Callable[[int, int], None]:
    """A report of random play: a line on stderr every TELL_SECONDS."""
    told = time.monotonic()

    def report(done: int, steps: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            print(f"{done:,} of {steps:,} random steps", file=sys.stderr, flush=True)

    return report


def _run_calibrate(args: argparse.Namespace) -> None:
    from gbxcule_puffer.pictures import png_target
    from gbxcule_puffer.tasks.goals.advice import hardly_apart, met_by_chance
    from gbxcule_puffer.tasks.goals.calibrate import calibrate, draw_histogram, read_task
    from gbxcule_puffer.tasks.goals.template import GoalTemplate
    from gbxcule_puffer.tasks.ram.quest import parse_condition
    from gbxcule_puffer.tasks.ram.symbols import Symbols

    path = png_target(args.out or Path(args.dir) / "calibration.png")
    symbols = None if args.symbols is None else Symbols.load(args.symbols)
    truth = [parse_condition(text, "--truth", symbols) for text in args.truth]
    names = ("rom", "steps", "num_envs", "max_steps", "device", "seed")
    result = calibrate(args.dir, truth=truth, report=_progress(), **{name: getattr(args, name) for name in names})
    goal, _ = read_task(args.dir)
    draw_histogram(path, result, goal.meta, f"Goal {Path(args.dir).resolve().name}")
    record = {}
    for label, tau, k in (
        ("now", goal.meta["tau"], goal.meta["k_consecutive"]),
        ("proposed", result.tau, result.k_consecutive),
    ):
        rates = result.rates(tau, k)
        record[label] = {"tau": tau, "k_consecutive": k, **rates}
        missed, false, goals = f"{rates['false_negative']:.2%}", f"{rates['false_positive']:.4%}", rates["false_goals"]
        print(f"{label:9} tau {tau:.5f}, k_consecutive {k}: {missed} of the steps at the goal are not recognised;")
        print(f"          of {rates['random_steps']:,} random steps {false} are, falsely, and {goals} runs of {k}")
    apart = goal.meta.get("calibration", {}).get("start_distance", 1.0)
    for advice in (hardly_apart(apart), met_by_chance(result.by_chance())):
        if advice is not None:
            print(f"warning: {advice}", file=sys.stderr)
    if args.apply:
        calibration = {**goal.meta.get("calibration", {}), "measured": record["proposed"]}
        meta = {**goal.meta, "tau": result.tau, "k_consecutive": result.k_consecutive, "calibration": calibration}
        GoalTemplate(goal.frames, meta).save(Path(args.dir) / "goal")
        print(f"written   {Path(args.dir) / 'goal'}")
    print(f"histogram {path}")


def _run_show(args: argparse.Namespace) -> None:
    from gbxcule_puffer.files import make_folder
    from gbxcule_puffer.pictures import mosaic, save_png
    from gbxcule_puffer.tasks.goals.calibrate import read_task
    from gbxcule_puffer.tasks.goals.template import CHECKED_FIELDS

    goal, start = read_task(args.dir)
    out = make_folder(args.out or Path(args.dir) / "pictures")
    for i, frame in enumerate(goal.frames):
        save_png(out / f"goal{i}.png", frame)
    save_png(out / "goals.png", mosaic(goal.frames))
    for name in (*CHECKED_FIELDS, "tau", "k_consecutive"):
        value = goal.meta[name]
        print(f"{name:20} {f'{value:.5g}' if isinstance(value, float) else value}")
    print(f"{'start state':20} {start}")
    print(f"{'pictures':20} {len(goal.frames)} in {out}")


def _run_stages(args: argparse.Namespace) -> None:
    from gbxcule_puffer.tasks.goals.calibrate import read_task
    from gbxcule_puffer.tasks.stages.list import StageFiles, write_stages

    stages, sums = [], {}
    for text in args.dirs:
        name, _, limit = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "128")
        goal, start = read_task(name)
        stages.append(StageFiles(Path(name).resolve().name, start.resolve(), Path(name).resolve() / "goal", int(limit)))
        sums[goal.meta["rom_sha256"]] = name
    if len(sums) > 1:
        raise ConfigError(f"{' and '.join(sums.values())} are of different ROMs: give goals of one ROM")
    out = Path(args.out).resolve()
    write_stages(out, next(iter(sums)), stages)
    print(f"stages  {args.out}: {', '.join(f'{stage.name} ({stage.max_steps} steps)' for stage in stages)}")


def _report(files: Any) -> None:
    from gbxcule_puffer.tasks.goals.advice import hardly_apart
    from gbxcule_puffer.tasks.goals.template import GoalTemplate

    goal = GoalTemplate.load(files.goal_dir)
    print(f"start state  {files.start_state}")
    count, away = len(goal.frames), len(goal.meta["solve_actions"])
    way = f", {away} actions away" if away else ""
    print(f"goal         {files.goal_dir}: {count} picture{'s' * (count > 1)}{way}")
    apart = goal.meta["calibration"]["start_distance"]
    print(f"tau          {goal.meta['tau']:.5f}; the start is {apart:.5f} away")
    if advice := hardly_apart(apart):
        print(f"warning: {advice}", file=sys.stderr)
