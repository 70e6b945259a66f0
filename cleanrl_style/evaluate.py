"""Plays episodes with a checkpoint of any trainer: success rate with its 95 % confidence interval, steps to the goal,
return, and on request one episode's actions and distances as JSON and its pictures as a GIF.

    python cleanrl_style/evaluate.py runs/NAME/checkpoint.pt --episodes 200
    python cleanrl_style/evaluate.py runs/NAME/checkpoint.pt --num-envs 1 --trajectory out.json --gif out.gif
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, Literal

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: see a2c_streaming.py

import tyro

from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.errors import ConfigError, StateError, StorageError
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.flags import parse_flags
from gbxcule_puffer.trainers.manifest import write_json
from gbxcule_puffer.trainers.media import film, gif
from gbxcule_puffer.trainers.run import exit_code, make_env, task_files

EXP_NAME = Path(__file__).stem
TRAINERS = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != EXP_NAME)


@dataclass
class Args:
    checkpoint: Annotated[str, tyro.conf.Positional]
    """checkpoint.pt of a run"""
    episodes: int = 50
    """episodes of each policy; the next multiple of --num-envs, each env plays as many"""
    num_envs: int = 10
    """Game Boys in parallel; 1 plays the episodes one after the other"""
    policy: Literal["both", "sampled", "greedy"] = "both"
    """sampled: as in training; greedy: the likeliest action"""
    seed: int = 1
    """seed of the sampled actions and of the environment"""
    device: str = "cpu"
    """cpu, cuda or cuda:N"""
    env: str | None = None
    """environment: gbxcule, pyboy_puffer_single, pyboy_puffer_vec or toy (default: the checkpoint's)"""
    rom: str | None = None
    """Game Boy image; needs --goal-dir (default: the checkpoint's)"""
    start_state: str | None = None
    """snapshot that episodes start from (default: the checkpoint's)"""
    goal_dir: str | None = None
    """folder of the goal (default: the checkpoint's, or the run's stage)"""
    chain: bool = False
    """of several stages play all in one episode, from the first (default: as trained)"""
    json: str | None = None
    """file for the result as JSON"""
    trajectory: str | None = None
    """file for one episode as JSON: actions, rewards, and the distance to the goal after each step"""
    gif: str | None = None
    """file for the same episode's pictures"""


def trainer_of(checkpoint: dict[str, Any], path: str) -> ModuleType:
    """The script that made a checkpoint, which knows its model.

    Raises: StateError when it is none of this folder's.
    """
    name = checkpoint.get("exp_name")
    if name not in TRAINERS:
        raise StateError(f"checkpoint {path} is of trainer {name!r}: give one of {', '.join(TRAINERS)}")
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_task(args: Args, checkpoint: dict[str, Any]) -> Callable[[int], Any]:
    """A function that makes an env of n Game Boys with the checkpoint's task, or the one of the flags.

    Raises: GBxCuLEError of the kind that the input deserves; StateError when the task is not the checkpoint's kind.
    """
    saved = SimpleNamespace(**checkpoint["args"])
    made = Path(args.checkpoint).resolve().parent  # by the run, beside the checkpoint
    saved.chain = args.chain or getattr(saved, "chain", False)
    saved.env, saved.eval_device, stages = args.env or saved.env, "cpu", getattr(saved, "stages", None)
    if args.rom or args.goal_dir:
        saved.rom, saved.start_state, saved.goal_dir, saved.stages = args.rom, args.start_state, args.goal_dir, None
    elif stages and (made / "stages/stages.json").is_file():
        saved.stages = str(made / "stages/stages.json")
    elif not saved.goal_dir and (made / "stage/goal").is_dir():
        saved.goal_dir, start = str(made / "stage/goal"), str(made / "stage/start.state")
        saved.start_state = args.start_state or saved.start_state or start
    elif args.start_state:
        saved.start_state = args.start_state
    if saved.env != "toy" and not (saved.goal_dir or saved.stages):
        raise StateError(f"{made}/stage is missing and the checkpoint names no goal: give --rom and --goal-dir")
    files = task_files(saved, made, World())
    device = resolve_device(args.device)

    def make(num_envs: int) -> Any:
        env = make_env(saved, num_envs, device, files, args.seed, incentives=False)
        for name, value in env.config.items():
            if (was := checkpoint["env_config"].get(name)) != value:
                raise StateError(
                    f"checkpoint {args.checkpoint} was trained with {name} {was}, not {value}: give the same"
                )
        return env

    return make


def shown(policy: str, result: dict[str, float]) -> str:
    """One policy's result as a line, and one with the rates of its stages."""
    low, high = result["success_low"], result["success_high"]
    steps = f"{result['median_steps']:.0f}" if "median_steps" in result else "-"
    stages = [f"{key.split('/')[1]} {rate:.3f}" for key, rate in result.items() if key.startswith("stage/")]
    return (
        f"{policy:8} success {result['success_rate']:.3f} (95 % between {low:.3f} and {high:.3f}), "
        f"median steps {steps}, mean return {result['return']:.2f}, {result['episodes']:.0f} episodes"
        + (f"\n{'':8} {', '.join(stages)}" if stages else "")
    )


def run(args: Args) -> None:
    """Evaluates, prints a line for each policy, and writes the files that were asked for."""
    for name in ("episodes", "num_envs"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {getattr(args, name)} must be at least 1")
    outputs = [Path(path) for path in (args.json, args.trajectory, args.gif) if path]
    for path in outputs:
        if not path.parent.is_dir():
            raise ConfigError(f"{path} cannot be written: {path.parent} is no folder")
    checkpoint = read_checkpoint(args.checkpoint)
    trainer = trainer_of(checkpoint, args.checkpoint)
    make = open_task(args, checkpoint)
    policies = ("sampled", "greedy") if args.policy == "both" else (args.policy,)
    env, results = make(args.num_envs), {}
    for name in policies:
        policy = trainer.load_policy(checkpoint, env, args.seed, name == "greedy")
        results[name] = evaluate(policy, env, args.episodes, args.seed)
        print(shown(name, results[name]), flush=True)
    try:
        if args.json:
            write_json(Path(args.json), {"checkpoint": args.checkpoint, "seed": args.seed, **results})
        if args.trajectory or args.gif:
            write_episode(args, checkpoint, trainer, make(1), policies[-1])
    except OSError as error:
        raise StorageError(
            f"{error.filename or 'the result'} cannot be written ({error.strerror}): make room"
        ) from None


def write_episode(args: Args, checkpoint: dict[str, Any], trainer: ModuleType, env: Any, name: str) -> None:
    """One episode with one env into --trajectory and --gif."""
    episode = film(trainer.load_policy(checkpoint, env, args.seed, name == "greedy"), env, args.seed)
    if args.trajectory:
        actions = [env.codec.actions[action] for action in episode.actions]
        content = {"checkpoint": args.checkpoint, "policy": name, "seed": args.seed, **env.config}
        content |= {"success": episode.success, "actions": actions}
        write_json(Path(args.trajectory), content | {"rewards": episode.rewards, "distance": episode.distances})
    if args.gif:
        Path(args.gif).write_bytes(gif(episode.pictures))


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates one checkpoint; bad input is one line on stderr and exit code 2."""
    args = parse_flags(Args, EXP_NAME, __doc__, argv)
    return exit_code(EXP_NAME, partial(run, args))


if __name__ == "__main__":
    sys.exit(main())
