"""Plays episodes with a checkpoint of any trainer: success rate with its 95 % confidence interval, steps to the goal,
return, and on request one episode's actions and distances as JSON and its pictures as a GIF.

    python cleanrl_style/evaluate.py runs/NAME/checkpoint.pt --episodes 200
    python cleanrl_style/evaluate.py runs/NAME/checkpoint.pt --num-envs 1 --trajectory out.json --gif out.gif
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from gbxcule_puffer.commandline import flag, parse, word
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import check_output, write_bytes, write_json
from gbxcule_puffer.progress import say
from gbxcule_puffer.tasks.task import PREFIX
from gbxcule_puffer.trainers.evaluation import evaluate
from gbxcule_puffer.trainers.launch import exit_code
from gbxcule_puffer.trainers.media import film, gif
from gbxcule_puffer.trainers.trained import Trained

EXP_NAME = Path(__file__).stem
GIVEN = ("env", "game", "variant", "levels", "rom", "start_state", "goal_dir", "task")  # in place of the checkpoint's


@dataclass
class Args:
    checkpoint: str = word("checkpoint.pt of a run, or the run's folder", "RUN")
    episodes: int = flag(
        50, "episodes of each policy, rounded up to a multiple of --num-envs; each Game Boy plays equally many", least=1
    )
    num_envs: int = flag(10, "Game Boys in parallel; 1 plays the episodes one after the other", least=1)
    policy: Literal["both", "sampled", "greedy"] = flag("both", "sampled: as in training; greedy: the likeliest action")
    seed: int = flag(1, "seed of the sampled actions and of the environment")
    device: str = flag("cpu", "cpu, cuda or cuda:N")
    env: str | None = flag(
        None, "environment: gbxcule, pyboy_puffer_single, pyboy_puffer_vec or toy (default: the checkpoint's)"
    )
    game: str | None = flag(None, "a game's folder (default: the checkpoint's)")
    variant: str | None = flag(None, "variant of the game, or several with commas (default: the checkpoint's)")
    levels: str | None = flag(None, "levels of the game: how many, or test (default: the checkpoint's)")
    rom: str | None = flag(None, "Game Boy image; needs --goal-dir (default: the checkpoint's)")
    start_state: str | None = flag(None, "snapshot that episodes start from (default: the checkpoint's)")
    goal_dir: str | None = flag(None, "folder of the goal (default: the checkpoint's, or the run's stage)")
    task: str | None = flag(None, "package.module:Class or file.py:Class (default: the training's, unless changed)")
    chain: bool = flag(False, "play several stages in one episode, from the first (default: as trained)")
    json: str | None = flag(None, "file for the result as JSON; - prints it on stdout, and everything else on stderr")
    trajectory: str | None = flag(
        None, "file for one episode as JSON: actions, rewards, and the distance to the goal after each step"
    )
    gif: str | None = flag(None, "file for the same episode's pictures")


def shown(policy: str, result: dict[str, float]) -> str:
    """One policy's result as a line, one with the rates of its stages, and one with the statistics of Tasks."""
    parts = [f"median steps {result['median_steps']:.0f}"] if "median_steps" in result else []
    parts += [f"mean return {result['return']:.2f}", f"{result['episodes']:.0f} episodes"]
    if "success_rate" in result:
        low, high = result["success_low"], result["success_high"]
        parts.insert(0, f"success {result['success_rate']:.3f} (95 % between {low:.3f} and {high:.3f})")
    stages = [f"{key.split('/')[1]} {rate:.3f}" for key, rate in result.items() if key.startswith("stage/")]
    statistics = [f"{key} {value:.2f}" for key, value in result.items() if key.startswith(PREFIX)]
    more = [f"\n{'':8} {', '.join(line)}" for line in (stages, statistics) if line]
    return f"{policy:8} {', '.join(parts)}{''.join(more)}"


def run(args: Args) -> None:
    """Evaluates, prints a line for each policy, and writes the requested files."""
    to_stdout = args.json == "-"
    for path in (None if to_stdout else args.json, args.trajectory, args.gif):
        if path and not check_output(path).parent.is_dir():
            raise ConfigError(f"{path} cannot be written: {Path(path).parent} is not a folder, make it first")
    if args.gif and not args.gif.lower().endswith(".gif"):
        raise ConfigError(f"--gif {args.gif} has another ending: name it .gif")
    trained = Trained(args.checkpoint)
    given = {name: getattr(args, name) for name in GIVEN}
    make = partial(trained.open_env, device=resolve_device(args.device), seed=args.seed, chain=args.chain, **given)
    env, results = make(args.num_envs), {}
    for name in ("sampled", "greedy") if args.policy == "both" else (args.policy,):
        policy = trained.policy(env, args.seed, name == "greedy")
        say(f"playing {args.episodes} episodes with {name} actions")
        results[name] = evaluate(policy, env, args.episodes, args.seed)
        print(shown(name, results[name]), file=sys.stderr if to_stdout else sys.stdout, flush=True)
    result = {"checkpoint": label(trained), "seed": args.seed, **results}
    if to_stdout:
        print(json.dumps(result))
    elif args.json:
        write_json(Path(args.json), result)
    if args.trajectory or args.gif:
        rates = {name: found.get("success_rate", 0.0) for name, found in results.items()}
        best = max(rates, key=lambda name: rates[name])  # the first of equals, which is sampled
        write_episode(args, trained, make(1), best, args.episodes if rates[best] else 1)


def label(trained: Trained) -> str:
    """The names of the checkpoint and its run."""
    return "/".join(trained.path.resolve().parts[-2:])


def write_episode(args: Args, trained: Trained, env: EnvLike, name: str, tries: int) -> None:
    """Writes one episode of the policy `name` with one Game Boy into --trajectory and --gif: the first of `tries`
    episodes that reaches the goal, or the last."""
    policy = trained.policy(env, args.seed, name == "greedy")
    for seed in range(args.seed, args.seed + tries):
        episode = film(policy, env, seed)
        if episode.success:
            break
    end = " that reaches the goal" if episode.success else " that does not reach the goal" if env.has_success else ""
    text = f"filmed   {name}: an episode{end}, {len(episode.actions)} steps"
    print(text, file=sys.stderr if args.json == "-" else sys.stdout)
    if args.trajectory:
        actions = [env.codec.actions[action] for action in episode.actions]
        content = {"checkpoint": label(trained), "policy": name, "seed": seed, **env.config}
        content |= {"actions": actions} | ({"success": episode.success} if env.has_success else {})
        write_json(Path(args.trajectory), content | {"rewards": episode.rewards, "distance": episode.distances})
    if args.gif:
        write_bytes(args.gif, gif(episode.pictures))


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates one checkpoint; bad input is one line on stderr and exit code 2."""
    return exit_code(EXP_NAME, lambda: run(parse(Args, EXP_NAME, __doc__, argv)), "interrupted")


if __name__ == "__main__":
    sys.exit(main())
