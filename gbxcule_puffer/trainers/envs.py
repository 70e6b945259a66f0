"""The env and the task's files that a trainer's flags describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from gbxcule_puffer.emulator.cartridge import Rom, load_cartridge
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env.options import EXPLORATION, EnvOptions
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.env.saved_state import deflated
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import make_folder
from gbxcule_puffer.games.starts import played_start
from gbxcule_puffer.layout import is_suite
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.tasks.actions import Schedule
from gbxcule_puffer.tasks.goals.recipe import GoalSettings
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import observation_kind
from gbxcule_puffer.tasks.source import TaskSource
from gbxcule_puffer.tasks.start import play_to_start
from gbxcule_puffer.toy import OPTIONS as TOY_OPTIONS
from gbxcule_puffer.toy import board_layout
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.flags import SET_BY_TRAINERS, RunFlags

# Options only for training.
INCENTIVES = {each.name for each in fields(EnvOptions) if each.metadata["subject"] == EXPLORATION}
STAGE_FLAGS = ("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive", "model")


def task_files(args: RunFlags, out: Path, world: World) -> dict[str, str | None]:
    """The env's rom, start_state and goal_dir, or rom and stages: as given, else made in the folder `out` by the first
    process. Empty for the toy env and the suite, whose tasks are their own.

    Raises: RomError for a damaged ROM; ConfigError for an unknown env, or a file that a game of the suite has itself,
    and what TaskSource raises.
    """
    if args.env == "toy":
        return {}
    env_creator(args.env, args.game, variant=args.variant, levels=args.levels)
    names = ("rom", "start_state", "goal_dir", "stage", "stages", "task")
    given = {name: getattr(args, name) for name in names}
    if is_suite(args.env) and args.start_actions is not None:
        given["start_actions"] = args.start_actions
    if is_suite(args.env):
        for name in (name for name, path in given.items() if path is not None):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} is not for --env {args.env}, which has its own: leave it out")
        return {}
    if args.rom is not None and world.rank == 0:
        load_cartridge(args.rom, args.header, args.model)  # what is wrong with it comes before what goes with it
    if args.game is not None:
        return world.tell(_start_of_game(args, given, out) if world.rank == 0 else {})
    settings = GoalSettings(
        **{name: getattr(args, name) for name in STAGE_FLAGS}, device=args.eval_device or args.device
    )
    return world.tell(_make_files(args, given, out, settings) if world.rank == 0 else {})


def _start_of_game(args: RunFlags, given: Mapping[str, Any], out: Path) -> dict[str, str | None]:
    """The start that --start-actions leads to in a game of a folder, which has all other files itself."""
    from gbxcule_puffer.games import load_game

    for name in ("stage", "stages"):
        if given[name] is not None:
            raise ConfigError(f"--{name} and --game exclude each other: a game has a start of its own")
    if args.start_actions is None:
        return {}
    assert args.game is not None
    game = load_game(args.game)
    rom = game.cartridge(game.chosen(args.variant), args.rom)
    return {"start_state": _played(args, rom, out)}


def _make_files(args: RunFlags, given: Mapping[str, Any], out: Path, settings: GoalSettings) -> dict[str, str | None]:
    """TaskSource.make of what is `given`, with the start that --start-actions leads to."""
    if args.start_actions is None:
        return TaskSource(**given).make(out, settings)
    for name in ("stage", "stages"):
        if given[name] is not None:
            raise ConfigError(f"--start-actions and --{name} exclude each other: a stage has a start of its own")
    files = TaskSource(**given).make(out, settings)
    assert files["rom"] is not None
    return files | {"start_state": _played(args, files["rom"], out)}


def _played(args: RunFlags, rom: Rom, out: Path) -> str:
    """The file of the start that --start-actions leads to."""
    if not isinstance(args.start_state, str | None):
        raise ConfigError("--start-actions leads on from one start: give one --start-state, or none")
    assert args.start_actions is not None
    schedule = Schedule(args.frames_per_step, args.release_after_frames)
    cartridge = load_cartridge(rom, args.header, args.model)
    if args.start_state is None:
        start = Snapshot.from_file(played_start(cartridge, args.header, args.start_actions, schedule))
    else:
        start = play_to_start(cartridge, args.start_actions, args.start_state, schedule, args.header, None)
    path = make_folder(out / "start") / "start.state"
    start.to_file(path)
    return str(path)


def make_env(
    args: RunFlags,
    num_envs: int,
    device: str,
    files: Mapping[str, str | None],
    seed: int,
    *,
    incentives: bool = True,
    **options: Any,
) -> EnvLike:
    """The env that the flags and the task's `files` describe, with torch tensors; `options` are more keywords. Without
    `incentives`, for evaluation: only the task's rewards; stages equally often or, if chained, from the first.

    Raises: ConfigError for a flag that the toy env does not have, and the env's errors for bad input.
    """
    flags = [each for each in fields(EnvOptions) if each.name not in SET_BY_TRAINERS]
    left_out = set() if incentives else INCENTIVES
    # A game of a folder may set an incentive that is left out here.
    keywords = {each.name: each.default if each.name in left_out else getattr(args, each.name) for each in flags}
    if args.env == "toy":
        for each in flags:
            if each.name not in TOY_OPTIONS and keywords.pop(each.name) != each.default:
                raise ConfigError(f"--{each.name.replace('_', '-')} is not for --env toy: leave it out")
    keywords |= dict(files) | options
    if args.env != "toy":
        keywords["io"] = "torch"
        if not incentives:
            keywords["curriculum"] = "first" if keywords.get("chain") else "uniform"
            keywords |= {"stagger": False, "autotune": False}  # an evaluation counts the first episodes, and is short
    if args.game is not None:
        keywords["rom"] = args.rom
    creator = env_creator(args.env, args.game, variant=args.variant, levels=args.levels)
    return creator(num_envs=num_envs, device=device, seed=seed, **keywords)


def layout_of(args: RunFlags) -> ObservationLayout:
    """The layout of the observations without vectors, which only an env knows."""
    if args.env == "toy":
        return board_layout(args.obs, args.stack_k)
    return ObservationLayout(observation_kind(args.obs), args.stack_k)


def env_state(env: EnvLike) -> dict[str, Any]:
    """An env's state for a checkpoint. On a GPU, thousands of machines would take gigabytes: they are left out, and a
    resumed run begins with new episodes. The states of an archive are compressed."""
    state = env.state_dict(machines=env.device.type == "cpu")
    return {**state, "tensors": deflated(state["tensors"])}
