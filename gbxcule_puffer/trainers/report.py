"""A run's result in words, and advice on a goal that cannot be learned as it is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from gbxcule_puffer.tasks.goals.advice import never_near
from gbxcule_puffer.trainers.folder import CHECKPOINT

PATIENCE = 1_000_000  # steps after which a run in which nobody came near the goal says so


def advise(text: str | None) -> None:
    """The advice as a line on stderr, if there is any."""
    if text is not None:
        print(f"warning: {text}", file=sys.stderr, flush=True)


class Nearness:
    """A watch on whether a Game Boy comes near the goal: warns, once, where none has in PATIENCE steps from `begun`
    on."""

    def __init__(self, begun: int) -> None:
        self._begun, self._over = begun, False
        self._nearest: float | None = None  # the least env/dist_p10 so far

    def look(self, step: int, infos: Mapping[str, float]) -> None:
        """Takes the infos of a record."""
        if self._over:
            return
        if (tenth := infos.get("env/dist_p10")) is not None:
            self._nearest = min(tenth, self._nearest or 1.0)
        came_near = infos.get("charts/success_rate", 0) > 0 or infos.get("env/dist_below_tau", 0) > 0
        self._over = came_near or step - self._begun >= PATIENCE
        if self._over and not came_near:
            advise(never_near(step - self._begun, self._nearest))


def report(
    run_dir: Path,
    result: Mapping[str, float],
    random: Mapping[str, float],
    seconds_of: Mapping[str, float],
    trained: str,
) -> str:
    """The lines that a run ends with: its last evaluation beside a random policy's, the shares of a step's time, of
    which `seconds_of` are the parts, its files, and how long it `trained`."""
    median = f"median {result['eval/median_steps']:.0f} steps, " if "eval/median_steps" in result else ""
    whole = sum(seconds_of.values()) or 1.0
    by_length = sorted(seconds_of.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name.removeprefix('time/')} {part / whole:.0%}" for name, part in by_length)
    return (
        f"success rate   {result['eval/success_rate']:.2f}   ({median}mean return {result['eval/return']:.2f})\n"
        f"greedy         {result['eval/greedy_success']:.2f}   (mean return {result['eval/greedy_return']:.2f})\n"
        f"random policy  {random['success_rate']:.2f}   (mean return {random['return']:.2f})\n"
        # A run shorter than --log-interval has measured no times.
        + (f"a step's time  {shares}\n" if shares else "")
        + f"checkpoint     {run_dir / CHECKPOINT}\n"
        f"TensorBoard    {Path(sys.executable).parent / 'tensorboard'} --logdir {shlex.quote(str(run_dir))}\n"
        f"trained        {trained}"
    )
