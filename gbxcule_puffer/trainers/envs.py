"""The env and the task's files that a trainer's flags describe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gbxcule_puffer import env_creator
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.default_task import find_task
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.flags import TaskFlags

DEFAULTS = TaskFlags()
# Flags that are the env's keywords too: of every env; of those with a Game Boy; what only training is to see.
ENV_FLAGS = ("stack_k", "action_codec", "max_steps", "step_cost", "alpha", "goal_bonus")
GAME_FLAGS = ("frames_per_step", "release_after_frames", "tau", "k_consecutive")
EPISODE_FLAGS = ("start_waits", "sticky_actions", "blocked_actions", "chain", "curriculum")
INCENTIVE_FLAGS = ("archive_slots", "archive_share", "visit_bonus", "visit_key", "quest", "reward_scale")
STAGE_FLAGS = ("stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive")


def task_files(args: Any, out: Path, world: World) -> dict[str, str | None]:
    """The env's rom, start_state and goal_dir, or rom and stages: as given, else made in the folder `out` by the first
    process. Empty for the toy env, whose task is its own.

    Raises: ConfigError for an unknown env, and what `find_task` raises.
    """
    if args.env == "toy":
        return {}
    env_creator(args.env)
    given = {name: getattr(args, name) for name in ("rom", "start_state", "goal_dir", "stage", "stages")}
    config = {name: getattr(args, name) for name in STAGE_FLAGS} | {"device": args.eval_device}
    return world.tell(find_task(out, **given, **config) if world.rank == 0 else {})


def make_env(
    args: Any,
    num_envs: int,
    device: str,
    files: Mapping[str, str | None],
    seed: int,
    *,
    incentives: bool = True,
    **options: Any,
) -> Any:
    """The env that the flags and the task's `files` describe, with torch tensors; `options` are more of its keywords.
    Without `incentives`, for evaluation: only the task's rewards; stages drawn equally or, if chained, from the first.

    Raises: ConfigError for a flag that the toy env does not have, and what the env raises for bad input.
    """
    names = (*ENV_FLAGS, *GAME_FLAGS, *EPISODE_FLAGS, *(INCENTIVE_FLAGS if incentives else ()))
    if args.env == "toy":
        for name in (*EPISODE_FLAGS, *INCENTIVE_FLAGS, "stages"):
            if getattr(args, name) != getattr(DEFAULTS, name):
                raise ConfigError(f"--{name.replace('_', '-')} is not for --env toy: leave it out")
        names = ENV_FLAGS
    keywords = {name: getattr(args, name) for name in names} | dict(files) | options
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
