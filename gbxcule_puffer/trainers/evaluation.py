"""Playing whole episodes with a policy: success rate with its confidence interval, return, steps to the goal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any, Protocol

import torch


class Policy(Protocol):
    """(observations (n, ...), starts (n,) bool: where an episode begins with this observation) -> actions (n,) int64.

    A policy is made for one env; without `starts` it looks at the env's final_mask.
    """

    def __call__(self, obs: torch.Tensor, starts: torch.Tensor | None = None, /) -> torch.Tensor: ...


@torch.no_grad()
def evaluate(policy: Policy, env: Any, episodes: int, seed: int) -> dict[str, float]:
    """Plays at least `episodes` whole episodes: success rate, mean return, median steps of the successful ones.

    Each env plays the same number of episodes, the next multiple of num_envs in all: the first ones to end anywhere
    would be the short ones, which are mostly the successes. With num_envs=1 they are played one after the other.
    stage/NAME/success_rate: of the episodes that began at a stage, where they began at several.
    """
    obs, _ = env.reset(seed=seed)
    n = len(obs)
    quota = -(-episodes // n)
    starts = torch.ones(n, dtype=torch.bool, device=env.device)
    played, length = (torch.zeros(n, dtype=torch.int64, device=env.device) for _ in range(2))
    total = torch.zeros(n, dtype=torch.float64, device=env.device)
    lengths: list[int] = []
    returns: list[float] = []
    names = [stage.name for stage in getattr(env, "stages", ())] or [""]
    first = env.stage.clone() if len(names) > 1 else torch.zeros_like(played)  # the stage that an episode began at
    tally = torch.zeros((2, len(names)), dtype=torch.int64)
    while len(returns) < quota * n:
        obs, rewards, terminals, truncations, _ = env.step(policy(obs, starts))
        length += 1
        total += rewards
        starts, won = terminals | truncations, terminals & ~env.failures
        counted = starts & (played < quota)
        played += starts
        if counted.any():
            lengths += length[counted & won].tolist()
            returns += total[counted].tolist()
            for row, ended in zip(tally, (counted, counted & won), strict=True):
                row += torch.bincount(first[ended], minlength=len(names)).cpu()
        if len(names) > 1:
            first = torch.where(starts, env.stage, first)
        length *= ~starts
        total *= ~starts
    successes, count = len(lengths), len(returns)
    low, high = wilson_interval(successes, count)
    result = {"success_rate": successes / count, "success_low": low, "success_high": high, "episodes": float(count)}
    result["return"] = statistics.fmean(returns)
    rates = {name: won / ended for name, (ended, won) in zip(names, tally.T.tolist(), strict=True) if ended}
    if len(rates) > 1:
        result |= {f"stage/{name}/success_rate": rate for name, rate in rates.items()}
    return result | ({"median_steps": float(statistics.median(lengths))} if lengths else {})


def assess(sampled: Policy, greedy: Policy, env: Any, episodes: int, seed: int) -> dict[str, float]:
    """eval/...: `episodes` of the sampled policy; eval/greedy_...: success, return and median steps of the greedy one
    over an episode of each env."""
    result = evaluate(sampled, env, episodes, seed)
    likeliest = evaluate(greedy, env, env.num_envs, seed)
    for name, short in (("success_rate", "success"), ("return", "return"), ("median_steps", "median_steps")):
        if name in likeliest:
            result[f"greedy_{short}"] = likeliest[name]
    return {f"eval/{name}": value for name, value in result.items()}


def lowest_success(result: Mapping[str, float], greedy: bool = False) -> float:
    """Of an assessment the success rate, where episodes began at several stages that of the stage with the lowest; with
    `greedy` the greedy policy's, if that is lower."""
    rates = [rate for name, rate in result.items() if name.startswith("eval/stage/")]
    rates = rates or [result["eval/success_rate"]]
    return min([*rates, result["eval/greedy_success"]] if greedy else rates)


def random_policy(env: Any, seed: int) -> Policy:
    """Uniformly random actions."""
    generator = torch.Generator(env.device).manual_seed(seed)
    size, num_actions = (env.num_envs,), env.codec.num_actions
    return lambda obs, starts=None: torch.randint(num_actions, size, generator=generator, device=env.device)


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % confidence interval of a success rate (Wilson's score interval: right also near 0 and 1)."""
    share, z2 = successes / trials, z * z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
