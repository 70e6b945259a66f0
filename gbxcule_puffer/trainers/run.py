"""How a run starts and ends: its folder, task and envs from the flags, exit codes, the report; and a stopwatch."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StateError, StorageError
from gbxcule_puffer.tasks.stage_list import is_stage_list, make_stages
from gbxcule_puffer.tasks.stages import make_stage
from gbxcule_puffer.trainers.checkpoints import load_checkpoint
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.flags import ROOT, TaskFlags

DEFAULTS = TaskFlags()
SEED_STEP = 10_000  # between the env seeds of groups and processes
# Flags that are the env's keywords too: of every env; of those with a Game Boy; what only training is to see.
ENV_FLAGS = ("stack_k", "action_codec", "max_steps", "step_cost", "alpha", "goal_bonus")
GAME_FLAGS = ("frames_per_step", "release_after_frames", "tau", "k_consecutive")
EPISODE_FLAGS = ("start_waits", "sticky_actions", "blocked_actions", "chain", "curriculum")
INCENTIVE_FLAGS = ("archive_slots", "archive_share", "visit_bonus", "visit_key", "quest", "reward_scale")
STAGE_FLAGS = ("stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive")


def _run_folder(args: Any, exp_name: str, world: World) -> Path:
    """--run-dir, else the folder of --resume, else a new one under runs/ with CleanRL's name; not made here."""
    if args.run_dir:
        return Path(args.run_dir)
    if args.resume:
        return Path(args.resume).resolve().parent
    return world.tell(ROOT / "runs" / f"{args.env}__{exp_name}__{args.seed}__{int(time.time())}")


@dataclass
class Run:
    """What `open_run` made: the run's folder and envs, and the checkpoint that it goes on from."""

    run_dir: Path
    envs: list[Any]
    eval_env: Any  # None but in the first process
    resumed: dict[str, Any] | None


def open_run(args: Any, exp_name: str, world: World, free: Collection[str], groups: int = 1, **options: Any) -> Run:
    """Opens the checkpoint of --resume (made with the same flags but `free`), the task and `groups` training envs of
    --num-envs together, with `options` as more of their keywords; bad input leaves no folder behind.

    Raises: GBxCuLEError of the kind that the input deserves.
    """
    if args.num_envs % groups:
        raise ConfigError(f"--num-envs {args.num_envs} is not a multiple of --env-groups {groups}")
    run_dir = _run_folder(args, exp_name, world)
    # Read once, for all: no process may go on from another checkpoint, also where only the first one has the file.
    resumed = world.tell(load_checkpoint(args.resume, args, free) if args.resume and world.rank == 0 else None)
    if resumed and (others := len(resumed["processes"])) != world.size:
        raise StateError(f"checkpoint {args.resume} is of {others} processes, not {world.size}: start as many")
    fresh = world.rank == 0 and not run_dir.exists()
    try:
        files = task_files(args, run_dir, world)
        seeds = [args.seed + SEED_STEP * (world.rank * groups + group) for group in range(groups)]
        envs = [make_env(args, args.num_envs // groups, args.device, files, seed, **options) for seed in seeds]
        eval_env = None
        if world.rank == 0:
            eval_env = make_env(args, args.eval_envs, args.eval_device, files, args.seed, incentives=False)
        for name, value in envs[0].config.items():
            if resumed and (saved := resumed["env_config"].get(name)) != value:
                raise StateError(f"checkpoint {args.resume} has another {name} ({saved}, not {value}): give the same")
        if world.rank == 0:
            run_dir.mkdir(parents=True, exist_ok=True)
    except (GBxCuLEError, torch.OutOfMemoryError):
        if fresh:
            shutil.rmtree(run_dir, ignore_errors=True)
        raise
    return Run(run_dir, envs, eval_env, resumed)


def task_files(args: Any, run_dir: Path, world: World) -> dict[str, Any]:
    """The env's rom, start_state and goal_dir, or rom and stages: as given, else made in the run's folder by the first
    process. Empty for the toy env, whose task is its own.

    Raises: ConfigError and what `make_stage` and `make_stages` raise.
    """
    if args.env == "toy":
        return {}
    env_creator(args.env)
    stages = getattr(args, "stages", None)
    if stages and (args.goal_dir or args.start_state):
        raise ConfigError("--stages has starts and goals of its own: leave --start-state and --goal-dir out")
    if args.rom and not (args.goal_dir or stages):
        raise ConfigError("--rom needs --goal-dir: make a goal for it with `puffer goal make`")
    rom = str(args.rom or ROOT / "roms/homeward.gb")
    if args.goal_dir:
        return {"rom": rom, "start_state": args.start_state, "goal_dir": args.goal_dir}
    made: dict[str, Any] | None = None
    if world.rank == 0:
        config = {name: getattr(args, name) for name in STAGE_FLAGS} | {"device": args.eval_device}
        if stages and is_stage_list(stages) and '"recipe"' in Path(stages).read_text():
            recipe_rom, path = make_stages(stages, run_dir / "stages", **config)
            made = {"rom": str(recipe_rom), "stages": str(path)}
        elif stages:
            made = {"rom": rom, "stages": stages}
        else:
            files = make_stage(args.stage, run_dir / "stage", **config)
            start = args.start_state or str(files.start_state)
            made = {"rom": str(files.rom), "start_state": start, "goal_dir": str(files.goal_dir)}
    return world.tell(made) or {}


def make_env(
    args: Any, num_envs: int, device: str, files: dict[str, Any], seed: int, *, incentives: bool = True, **options: Any
) -> Any:
    """The env that the flags and the task's `files` describe, with torch tensors; `options` are more of its keywords.
    Without `incentives`, for evaluation: only the task's rewards; stages drawn equally or, if chained, from the first.

    Raises: ConfigError for a flag that the toy env does not have, and what the env raises for bad input.
    """
    names = (*ENV_FLAGS, *GAME_FLAGS, *EPISODE_FLAGS, *(INCENTIVE_FLAGS if incentives else ()))
    if args.env == "toy":
        for name in (*EPISODE_FLAGS, *INCENTIVE_FLAGS, "stages"):
            if getattr(args, name, getattr(DEFAULTS, name)) != getattr(DEFAULTS, name):
                raise ConfigError(f"--{name.replace('_', '-')} is not for --env toy: leave it out")
        names = ENV_FLAGS
    keywords = {name: getattr(args, name) for name in names if hasattr(args, name)} | files | options
    if args.env != "toy":
        keywords["io"] = "torch"
        if not incentives:
            keywords["curriculum"] = "first" if keywords.get("chain") else "uniform"
    return env_creator(args.env)(num_envs=num_envs, device=device, seed=seed, **keywords)


def env_state(env: Any) -> dict[str, Any]:
    """An env's state for a checkpoint. On a GPU the thousands of machines would make it gigabytes: they are left out,
    and a resumed run begins with new episodes."""
    if env.device.type == "cpu" or not hasattr(env, "emulator"):
        return env.state_dict()
    return env.state_dict(machines=False)


class Stopwatch:
    """Seconds between marks; on a GPU a mark waits for the work, so `on` only where a record is due."""

    def __init__(self, device: torch.device, on: bool) -> None:
        self.cuda, self.on = device.type == "cuda", on
        self.seconds: dict[str, float] = {}
        self.last = self._now() if on else 0.0

    def mark(self, name: str) -> None:
        """Everything since the mark before was `name`; the same name again adds up."""
        if self.on:
            now = self._now()
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
            self.last = now

    def _now(self) -> float:
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


def report(run_dir: Path, step: int, result: Mapping[str, float], random_rate: float, seconds: float) -> None:
    """A run's result in words, on stdout; `result` as of `evaluation.assess`."""
    median = f"{result['eval/median_steps']:.0f}" if "eval/median_steps" in result else "-"
    rate, mean = result["eval/success_rate"], result["eval/return"]
    print(f"success rate   {rate:.2f}   (median {median} steps, mean return {mean:.2f})")
    print(f"random policy  {random_rate:.2f}")
    print(f"trained        {step:,} steps in {seconds:.0f} s")
    print(f"checkpoint     {run_dir / 'checkpoint.pt'}")
    print(f"TensorBoard    {Path(sys.executable).parent / 'tensorboard'} --logdir {run_dir}")


def exit_code(prog: str, train: Callable[[], None]) -> int:
    """Runs one training: bad input is one line on stderr and 2, a full disk 1, Ctrl-C 130."""
    try:
        train()
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        print(f"{prog}: GPU memory is too small ({reason}): give fewer --num-envs", file=sys.stderr)
        return 2
    except GBxCuLEError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1 if isinstance(error, StorageError) else 2
    except KeyboardInterrupt:
        print(f"\n{prog}: stopped; go on from the last checkpoint with --resume", file=sys.stderr)
        return 130
    return 0
