"""A run's result in words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from gbxcule_puffer.tasks.task import PREFIX
from gbxcule_puffer.trainers.evaluation import CUT
from gbxcule_puffer.trainers.flags import RunFlags
from gbxcule_puffer.trainers.folder import CHECKPOINT
from gbxcule_puffer.trainers.runlog import TAGS

RETURN, SUCCESS = TAGS["episode_return"], TAGS["success"]
SPEED = "charts/SPS"  # in every record of a training


def report(
    run_dir: Path,
    result: Mapping[str, float],
    random: Mapping[str, float],
    training: Mapping[str, float],
    seconds_of: Mapping[str, float],
    trained: str,
    steps: int = 0,
) -> str:
    """The last lines of a run: its last evaluation next to a random policy's and to the `training`'s own episodes (its
    newest metrics), the shares of a step's time (from its parts `seconds_of`), its files, and how long it `trained`;
    steps: of each Game Boy."""
    sampled = {name.removeprefix("eval/"): value for name, value in result.items()}
    greedy = {name.removeprefix("greedy_"): value for name, value in sampled.items() if name.startswith("greedy_")}
    greedy = {"success_rate" if name == "success" else name: value for name, value in greedy.items()}
    whole = sum(seconds_of.values()) or 1.0
    by_length = sorted(seconds_of.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name.removeprefix('time/')} {part / whole:.0%}" for name, part in by_length)
    return (
        outcome("success rate" if "success_rate" in sampled else "mean return", sampled)
        + outcome("greedy", {name: value for name, value in greedy.items() if name != "median_steps"})
        + outcome("random policy", {name: value for name, value in random.items() if name != "median_steps"})
        + in_training(training, steps)
        # A run shorter than --log-interval has measured no times.
        + (f"a step's time  {shares}\n" if shares else "")
        + f"checkpoint     {run_dir / CHECKPOINT}\n"
        f"TensorBoard    {Path(sys.executable).parent / 'tensorboard'} --logdir {shlex.quote(str(run_dir))}\n"
        f"trained        {trained}"
    )


def how_long(args: RunFlags, step: int, seconds: float, speed: float, share: float, passed: bool) -> str:
    """A training's length and speed in words, and why it ended. speed: steps a second; share: of the time that
    evaluations took; passed: two in a row reached --stop-at-success."""
    twice = f"until two evaluations in a row reached --stop-at-success {args.stop_at_success}"
    through = "all of --total-env-steps" if step >= args.total_env_steps else "for --max-seconds"
    pace = f"{speed:,.0f} a second, evaluations {share:.1%} of the time"
    return f"{step:,} steps in {seconds:.0f} s ({pace}), {twice if passed else through}"


def in_training(metrics: Mapping[str, float], steps: int) -> str:
    """The training's own episodes of the last record in which some ended, as a line; where none has in that many steps
    of each Game Boy, a line that says so, if there were records."""
    if RETURN not in metrics:
        text = f"no episode has ended in {steps:,} steps of each Game Boy: train longer, or lower --max-steps"
        return f"{'in training':<15}{text}\n" if SPEED in metrics else ""
    result = {"return": metrics[RETURN], **({"success_rate": metrics[SUCCESS]} if SUCCESS in metrics else {})}
    statistics = {name.removeprefix("env/"): value for name, value in metrics.items()}
    result |= {name: value for name, value in statistics.items() if name.startswith(PREFIX)}
    return outcome("in training", result)


def outcome(label: str, result: Mapping[str, float]) -> str:
    """A policy's result, as `evaluate` names it, as a line: success where the task knows one, return, statistics."""
    parts = [f"median {result['median_steps']:.0f} steps"] if "median_steps" in result else []
    first = result.get("success_rate", result["return"])
    if "success_rate" in result:
        parts.append(f"mean return {result['return']:.2f}")
    if CUT in result:
        parts.append(f"of the first {result[CUT]:.0f} steps of episodes: no time for whole ones")
    statistics = [(name.partition("/")[2], value) for name, value in result.items() if name.startswith(PREFIX)]
    more = [f"({', '.join(parts)})"] if parts else []
    more += [", ".join(f"{name} {value:.2f}" for name, value in statistics)] if statistics else []
    return "   ".join([f"{label:<15}{first:.2f}", *more]) + "\n"
