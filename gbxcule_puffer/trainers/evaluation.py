"""Playing whole episodes with a policy: success rate with its confidence interval, return, steps to the goal."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from gbxcule_puffer.env.protocol import EnvLike, PlayedEnv, Policy
from gbxcule_puffer.tasks.actions import ActionCodec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.task import PREFIX

PolicyMaker = Callable[[PlayedEnv, bool, int], Policy]  # (env, greedy, seed) -> the policy as it is now


class Watcher(Protocol):
    """A viewer of the first policy's envs in an evaluation."""

    def begin(self, num_envs: int) -> None: ...

    def step(self, ended: torch.Tensor, won: torch.Tensor) -> None: ...


class Part:
    """`num_envs` rows of an env from `first` on, as an env for a policy."""

    def __init__(self, env: EnvLike, first: int, num_envs: int) -> None:
        self.env, self.num_envs, self.rows = env, num_envs, slice(first, first + num_envs)

    @property
    def device(self) -> torch.device:
        return self.env.device

    @property
    def codec(self) -> ActionCodec:
        return self.env.codec

    @property
    def layout(self) -> ObservationLayout:
        return self.env.layout

    @property
    def final_mask(self) -> torch.Tensor:
        return self.env.final_mask[self.rows]


def evaluate(policy: Policy, env: EnvLike, episodes: int, seed: int) -> dict[str, float]:
    """Plays at least `episodes` whole episodes: success rate, mean return, median steps of the successful ones, means
    of the Tasks' statistics. Where the task cannot succeed, there are no success_rate, success_low and success_high.

    Each env plays the same number of episodes, the next multiple of num_envs in all: the first ones to end anywhere
    would be the short ones, which are mostly the successes. With num_envs=1 they are played one after the other.
    stage/NAME/success_rate: of the episodes that began at a stage, where they began at several.
    """
    return evaluate_each([lambda env: policy], env, env.num_envs, [episodes], seed)[0]


def evaluate_each(
    makers: Sequence[Callable[[PlayedEnv], Policy]],
    env: EnvLike,
    num_envs: int,
    episodes: Sequence[int],
    seed: int,
    watcher: Watcher | None = None,
) -> list[dict[str, float]]:
    """`evaluate` for several policies, each in `num_envs` rows of the env and with its number of episodes: at the same
    time if the env has enough rows for all, otherwise one after the other. maker(env) makes a policy for its part of
    the env."""
    if env.num_envs < len(makers) * num_envs:
        looks = [watcher, *[None] * len(makers)]
        jobs = zip(makers, episodes, looks, strict=False)
        return [_play([maker], env, num_envs, [count], seed, look)[0] for maker, count, look in jobs]
    return _play(makers, env, num_envs, episodes, seed, watcher)


@torch.no_grad()
def _play(
    makers: Sequence[Callable[[PlayedEnv], Policy]],
    env: EnvLike,
    num_envs: int,
    episodes: Sequence[int],
    seed: int,
    watcher: Watcher | None,
) -> list[dict[str, float]]:
    parts = [Part(env, number * num_envs, num_envs) for number in range(len(makers))]
    policies = [maker(part) for maker, part in zip(makers, parts, strict=True)]
    quotas = [-(-count // num_envs) for count in episodes]
    obs, _ = env.reset(seed=seed)
    n, device = len(obs), env.device
    row = torch.arange(n, device=device)
    quota = torch.tensor(quotas, device=device).repeat_interleave(num_envs)
    quota = torch.nn.functional.pad(quota, (0, n - len(quota)))  # rows that nobody plays in
    starts = torch.ones(n, dtype=torch.bool, device=device)
    actions, played, length = (torch.zeros(n, dtype=torch.int64, device=device) for _ in range(3))
    total = torch.zeros(n, dtype=torch.float64, device=device)
    stages = [stage.name for stage in env.stages] or [""]
    first = env.stage.clone() if len(stages) > 1 else torch.zeros_like(played)  # the stage that an episode began at
    # Of each episode that counts: its return, its steps if it succeeded, else 0, its stage, and the Tasks' statistics.
    found, names = torch.zeros(0, dtype=torch.float64, device=device), list[str]()
    if watcher:
        watcher.begin(num_envs)
    every = 1 if device.type == "cpu" else 8  # steps between two checks of progress: a GPU's host waits for each
    for step in itertools.count(1):
        for policy, part in zip(policies, parts, strict=True):
            actions[part.rows] = policy(obs[part.rows], starts[part.rows])
        obs, rewards, terminals, truncations, _ = env.step(actions)
        length += 1
        total += rewards
        starts, won = terminals | truncations, terminals & ~env.failures
        if watcher:
            watcher.step(starts, won)
        of_tasks = env.statistics()
        facts = torch.stack([total, length * won, first.double(), *of_tasks.values()], 1)
        if step == 1:
            found, names = facts.new_zeros((max(quotas), *facts.shape)), list(of_tasks)
        episode = played.clamp(max=len(found) - 1)
        counted = starts & (played < quota)
        found[episode, row] = torch.where(counted[:, None], facts, found[episode, row])
        played += starts
        if len(stages) > 1:
            first = torch.where(starts, env.stage, first)
        length *= ~starts
        total *= ~starts
        if step % every == 0 and bool((played >= quota).all()):
            break
    results, has_success = found.cpu(), env.has_success
    of_policies = (results[:count, part.rows].flatten(0, 1) for part, count in zip(parts, quotas, strict=True))
    return [_summary(episodes, stages, names, has_success) for episodes in of_policies]


def _summary(
    episodes: torch.Tensor, stages: Sequence[str], names: Sequence[str], has_success: bool
) -> dict[str, float]:
    """What `evaluate` returns of episodes (count, 3 + statistics): the return, the steps if it succeeded, else 0, the
    stage, and the statistics, of which these are the `names`."""
    returns, steps, first, *values = episodes.unbind(1)
    result = {"episodes": float(len(episodes)), "return": statistics.fmean(returns.tolist())}
    if has_success:
        result |= _successes(steps, first, stages)
    known = {name: value[~value.isnan()] for name, value in zip(names, values, strict=True)}  # Task.of_some
    return result | {name: float(value.mean()) for name, value in known.items() if len(value)}


def _successes(steps: torch.Tensor, first: torch.Tensor, stages: Sequence[str]) -> dict[str, float]:
    """Success rate of episodes with its interval, that of the stages that they began at, median steps of those that
    succeeded."""
    lengths = steps[steps > 0]
    low, high = wilson_interval(len(lengths), len(steps))
    result = {"success_rate": len(lengths) / len(steps), "success_low": low, "success_high": high}
    begun = {name: steps[first == number] for number, name in enumerate(stages)}
    rates = {name: float((own > 0).double().mean()) for name, own in begun.items() if len(own)}
    if len(rates) > 1:
        result |= {f"stage/{name}/success_rate": rate for name, rate in rates.items()}
    return result | ({"median_steps": float(statistics.median(lengths.tolist()))} if len(lengths) else {})


def assess(sampled: Mapping[str, float], greedy: Mapping[str, float]) -> dict[str, float]:
    """eval/...: all of the sampled policy's evaluation; eval/greedy_...: the greedy one's success, return, median steps
    and statistics of Tasks."""
    result = dict(sampled)
    for name, value in greedy.items():
        if name in ("success_rate", "return", "median_steps") or name.startswith(PREFIX):
            result[f"greedy_{'success' if name == 'success_rate' else name}"] = value
    return {f"eval/{name}": value for name, value in result.items()}


class Evaluations:
    """A run's evaluations of its current policy, and one of random actions.

    In an env with three times num_envs rows, random actions are played beside the first evaluation.
    """

    def __init__(self, env: EnvLike, num_envs: int, episodes: int, seed: int) -> None:
        self.env, self.num_envs, self.episodes, self.seed = env, num_envs, episodes, seed
        self._random: dict[str, float] | None = None

    def assess(self, play: PolicyMaker, seed: int, watcher: Watcher | None = None) -> dict[str, float]:
        """eval/...: the sampled policy over `episodes`, the greedy policy over an episode of each env."""
        makers: list[Callable[[PlayedEnv], Policy]] = [
            lambda env, greedy=one: play(env, greedy, seed) for one in (False, True)
        ]
        if self._random is None and self.env.num_envs >= 3 * self.num_envs:
            makers.append(self._at_random)
        episodes = [self.episodes, self.num_envs, self.episodes][: len(makers)]
        sampled, greedy, *others = evaluate_each(makers, self.env, self.num_envs, episodes, seed, watcher)
        for found in others:
            self._random = found
        return assess(sampled, greedy)

    def of_random(self) -> dict[str, float]:
        """`evaluate` of random actions."""
        if self._random is None:
            (self._random,) = evaluate_each([self._at_random], self.env, self.num_envs, [self.episodes], self.seed)
        return self._random

    def _at_random(self, env: PlayedEnv) -> Policy:
        return random_policy(env, self.seed)


def lowest_success(result: Mapping[str, float], greedy: bool = False) -> float:
    """Of an assessment the success rate, where episodes began at several stages that of the stage with the lowest; with
    `greedy` the greedy policy's, if that is lower. Less than any where the task cannot succeed."""
    if "eval/success_rate" not in result:
        return -math.inf
    rates = [rate for name, rate in result.items() if name.startswith("eval/stage/")]
    rates = rates or [result["eval/success_rate"]]
    return min([*rates, result["eval/greedy_success"]] if greedy else rates)


def random_policy(env: PlayedEnv, seed: int) -> Policy:
    """Uniformly random actions."""
    generator = torch.Generator(env.device).manual_seed(seed)
    size, num_actions = (env.num_envs,), env.codec.num_actions
    return lambda obs, starts=None: torch.randint(num_actions, size, generator=generator, device=env.device)


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % confidence interval of a success rate (Wilson's score interval, which is correct near 0 and 1, too)."""
    share, z2 = successes / trials, z * z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
