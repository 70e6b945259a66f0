"""Playing whole episodes with a policy: success rate with its confidence interval, return, steps to the goal."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from gbxcule_puffer.env.protocol import EnvLike, PlayedEnv, Policy
from gbxcule_puffer.tasks.actions import ActionCodec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.task import PREFIX

CUT = "cut_at"  # the step at which episodes were cut, in an evaluation that had no time for whole ones
GIVEN_UP = "given_up"  # all that is left of an evaluation that could not reach its goal any more
SAMPLED, GREEDY, RANDOM = "sampled", "greedy", "random"
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
    (found,) = Play([lambda part: policy], env, env.num_envs, [episodes], seed).go().results()
    return found


class Play:
    """Episodes of several policies side by side, each in `num_envs` rows of the env, a few steps at a time."""

    def __init__(
        self,
        makers: Sequence[Callable[[PlayedEnv], Policy]],
        env: EnvLike,
        num_envs: int,
        episodes: Sequence[int],
        seed: int,
        watcher: Watcher | None = None,
        goals: Sequence[float] | None = None,
    ) -> None:
        """goals: success rates; once one cannot be reached any more, the episodes are `hopeless`, and end."""
        self.env, self.over, self.hopeless, self.steps, self._watcher = env, False, False, 0, watcher
        self._parts = [Part(env, number * num_envs, num_envs) for number in range(len(makers))]
        self._policies = [maker(part) for maker, part in zip(makers, self._parts, strict=True)]
        self._quotas = [-(-count // num_envs) for count in episodes]
        self._obs, _ = env.reset(seed=seed)
        n, device = len(self._obs), env.device
        self._row = torch.arange(n, device=device)
        quota = torch.tensor(self._quotas, device=device).repeat_interleave(num_envs)
        self._quota = torch.nn.functional.pad(quota, (0, n - len(quota)))  # rows that nobody plays in
        self._starts = torch.ones(n, dtype=torch.bool, device=device)
        self._actions, self._played, self._length = (torch.zeros(n, dtype=torch.int64, device=device) for _ in range(3))
        self._total = torch.zeros(n, dtype=torch.float64, device=device)
        self._goals, self._lost = goals or (), torch.zeros(n, dtype=torch.int64, device=device)
        self._stages = [stage.name for stage in env.stages] or [""]
        several = len(self._stages) > 1
        self._first = env.stage.clone() if several else torch.zeros_like(self._played)  # stage an episode began at
        # Of each episode that counts: its return, its steps if it succeeded, else 0, its stage, the Tasks' statistics.
        self._found, self._names = torch.zeros(0, dtype=torch.float64, device=device), list[str]()
        self._facts = self._found  # the same of the episodes that were running before the last step
        self._every = 1 if device.type == "cpu" else 8  # steps between two checks: a GPU's host waits for each
        if watcher:
            watcher.begin(num_envs)

    @torch.no_grad()
    def go(self, until: float = math.inf, clock: Callable[[], float] = time.perf_counter) -> Play:
        """Plays on until it is `over`, or the clock shows `until` seconds."""
        while not self.over:
            for _ in range(self._every):
                self._step()
            self.over = bool((self._played >= self._quota).all())
            self.hopeless = any(map(self._is_lost, self._parts, self._quotas, self._goals))
            if self.hopeless or clock() >= until:
                break
        return self

    def _is_lost(self, part: Part, quota: int, goal: float) -> bool:
        count = quota * part.num_envs
        return (count - int(self._lost[part.rows].sum())) / count < goal

    def _step(self) -> None:
        env = self.env
        for policy, part in zip(self._policies, self._parts, strict=True):
            self._actions[part.rows] = policy(self._obs[part.rows], self._starts[part.rows])
        self._obs, rewards, terminals, truncations, _ = env.step(self._actions)
        self.steps += 1
        self._length += 1
        self._total += rewards
        self._starts, won = terminals | truncations, terminals & ~env.failures
        if self._watcher:
            self._watcher.step(self._starts, won)
        of_tasks = env.statistics()
        facts = torch.stack([self._total, self._length * won, self._first.double(), *of_tasks.values()], 1)
        if self.steps == 1:
            self._found, self._names = facts.new_zeros((max(self._quotas), *facts.shape)), list(of_tasks)
        episode = self._played.clamp(max=len(self._found) - 1)
        counted = self._starts & (self._played < self._quota)
        self._found[episode, self._row] = torch.where(counted[:, None], facts, self._found[episode, self._row])
        self._facts = facts
        self._lost += counted & ~won
        self._played += self._starts
        if len(self._stages) > 1:
            self._first = torch.where(self._starts, env.stage, self._first)
        self._length *= ~self._starts
        self._total *= ~self._starts

    def results(self) -> list[dict[str, float]]:
        """`evaluate` of each policy. If it is not `over`: of as many episodes of each row as all rows have ended, so
        that none is left out for its length; where some row is still in its first one, of the first ones, which are cut
        at the last step, with that as `cut_at`."""
        played, results = self._played.cpu(), self._found.cpu()
        first = torch.where((self._played == 0)[:, None], self._facts, self._found[0]).cpu()
        found = []
        for part, quota in zip(self._parts, self._quotas, strict=True):
            whole = min(quota, int(played[part.rows].min()))
            if whole:
                episodes, names, cut = results[:whole, part.rows].flatten(0, 1), self._names, {}
            else:  # the Tasks' statistics are known of episodes that have ended
                episodes, names, cut = first[part.rows, : -len(self._names) or None], [], {CUT: float(self.steps)}
            found.append(_summary(episodes, self._stages, names, self.env.has_success) | cut)
        return found


def _summary(
    episodes: torch.Tensor, stages: Sequence[str], names: Sequence[str], has_success: bool
) -> dict[str, float]:
    """The result of `evaluate` for episodes (count, 3 + statistics). A row has the return, the steps of a success or
    else 0, the stage, and the statistics with these `names`."""
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
        if name in ("success_rate", "return", "median_steps", CUT) or name.startswith(PREFIX):
            result[f"greedy_{'success' if name == 'success_rate' else name}"] = value
    return {f"eval/{name}": value for name, value in result.items()}


class Evaluations:
    """A run's evaluations of its policy, sampled over `episodes` and greedy over an episode of each env, and one of
    random actions.

    An evaluation plays the policy as it was at its `begin`. It may go on for a while beside the training, `advance` by
    `advance`. In an env with three times num_envs rows all is played at the same time, random actions beside the first
    evaluation; in a smaller one after the other.
    """

    def __init__(
        self, env: EnvLike, num_envs: int, episodes: int, seed: int, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.env, self.num_envs, self.episodes, self.seed, self._clock = env, num_envs, episodes, seed, clock
        self._random: dict[str, float] | None = None
        self._plays: list[tuple[list[str], Callable[[], Play]]] = []  # that have not begun, with their policies' names
        self._play: Play | None = None
        self._names: list[str] = []  # of the policies that play
        self._found: dict[str, dict[str, float]] = {}

    @property
    def running(self) -> bool:
        """True from `begin` on until the evaluation has ended."""
        return self._play is not None

    def begin(
        self,
        play: PolicyMaker,
        seed: int,
        watcher: Watcher | None = None,
        with_random: bool = False,
        goals: Mapping[str, float] | None = None,
    ) -> None:
        """Starts an evaluation of the policy as it is now; one that is running is dropped. with_random: also of random
        actions, if there was none. goals: success rates of SAMPLED and GREEDY; once one cannot be reached any more, the
        evaluation is given up. The greedy policy then plays first: its episodes are few."""
        beside = self.env.num_envs >= 3 * self.num_envs
        parts = [Part(self.env, number * self.num_envs * beside, self.num_envs) for number in range(3)]
        jobs = {
            SAMPLED: (play(parts[0], False, seed), self.episodes),
            GREEDY: (play(parts[1], True, seed), self.num_envs),
        }
        if (beside or with_random) and self._random is None:
            jobs[RANDOM] = self._at_random(parts[2]), self.episodes
        groups = [list(jobs)] if beside else [[name] for name in (sorted(jobs) if goals else jobs)]
        self._plays = []
        for names in groups:
            own = [(goals or {}).get(name, -math.inf) for name in names]
            watches = watcher if SAMPLED in names else None
            self._plays.append((names, self._playing([jobs[name] for name in names], seed, watches, own)))
        self._found = {}
        self._next()

    def _next(self) -> None:
        self._names, start = self._plays.pop(0) if self._plays else ([], None)
        self._play = None if start is None else start()

    def _playing(
        self,
        jobs: Sequence[tuple[Policy, int]],
        seed: int,
        watcher: Watcher | None,
        goals: Sequence[float] | None = None,
    ) -> Callable[[], Play]:
        makers = [lambda part, policy=policy: policy for policy, _ in jobs]
        return lambda: Play(makers, self.env, self.num_envs, [count for _, count in jobs], seed, watcher, goals)

    def advance(self, seconds: float = math.inf, last: bool = False) -> dict[str, float]:
        """Plays on, for as many seconds: eval/... if the evaluation has ended in them, else nothing; GIVEN_UP alone of
        one that cannot reach its goals. With `last` it ends in any case, each part of it in its share of the seconds
        (`Play.results`)."""
        begun = self._clock()
        while self._play is not None:
            now = self._clock()
            until = now + (begun + seconds - now) / (len(self._plays) + 1) if last else begun + seconds
            play = self._play.go(until, self._clock)
            if play.hopeless:
                self._play = None
                return {GIVEN_UP: 1.0}
            if not play.over and not last:
                return {}
            self._found |= zip(self._names, play.results(), strict=True)
            self._next()
        self._random = self._found.get(RANDOM, self._random)
        return assess(self._found[SAMPLED], self._found[GREEDY])

    def of_random(self, seconds: float = math.inf) -> dict[str, float]:
        """`evaluate` of random actions, played for at most as many seconds if it has not been yet."""
        if self._random is None:
            job = self._at_random(Part(self.env, 0, self.num_envs)), self.episodes
            play = self._playing([job], self.seed, None)().go(self._clock() + seconds, self._clock)
            (self._random,) = play.results()
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
