"""The Tasks of an env: they are called after the frames and before any reset; their results are checked and added
up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce

import torch

from gbxcule_puffer.device import one_thread
from gbxcule_puffer.env.curriculum.milestones import Milestones
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.randomness import TASK, CounterRandom, Seed
from gbxcule_puffer.env.task_checks import TaskChecks
from gbxcule_puffer.env.task_memory import TaskMemory
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.view import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task
from gbxcule_puffer.tasks.task_code import code_of

EPISODES = "episodes"  # among the totals: episodes that ended


class TaskSampler:
    """Random numbers for a Task; `seed` is that of the env's last reset."""

    def __init__(self, random: CounterRandom, checks: TaskChecks) -> None:
        self.seed: Seed = 0
        self._random, self._checks = random, checks

    def sample(self, below: int, counter: torch.Tensor) -> torch.Tensor:
        """Task.sample."""
        self._checks.sample(below, counter)
        return self._random.sample(self.seed, TASK, counter) % below


class TaskRunner:
    """One Task of an env, with its memory and the sums of its statistics.

    Raises: ConfigError, from every call, for a mistake of the Task; the message names the Task and the field, or the
    line of its code that raised an exception, which is the error's cause.
    """

    def __init__(self, task: Task, ram: Ram, random: CounterRandom) -> None:
        if task._sampler is not None:
            raise ConfigError(f"task {type(task).__name__} plays in another env already: give its class, or a new one")
        self.task, self.ram, self.name = task, ram, type(task).__name__
        self.n, self.device = ram.num_envs, ram.device
        self._checks = TaskChecks(task, self.n, self.device)
        self._memory = TaskMemory(task, self.n, self._checks.error)
        self.sampler = TaskSampler(random, self._checks)
        task._sampler = self.sampler
        self._names: tuple[str, ...] | None = None  # of the statistics, once a step has given them
        self._all = self._totals = torch.zeros(0, dtype=torch.float64, device=self.device)
        # The least and the greatest of all rewards since `clear`, and of a step's.
        self._rewards = torch.tensor([math.inf, -math.inf], device=self.device)
        self._low, self._high = self._rewards.unbind()
        self._extremes = tuple(torch.zeros(2, device=self.device).unbind())
        with self._code():
            task.setup(ram)
        self._initial = {name: tensor.clone() for name, tensor in self.memory().items()}

    def clear(self) -> None:
        """Returns the Task to its state after `setup`."""
        for name, tensor in self.memory().items():
            tensor.copy_(self._initial[name]) if name in self._initial else tensor.zero_()
        self._low.fill_(math.inf)
        self._high.fill_(-math.inf)
        self._expect(self._names)

    def reset(self, which: torch.Tensor) -> None:
        """Lets the Task begin the episodes of `which`."""
        before = self._memory.attributes()
        with self._code():
            self.task.reset(self.ram, which)
        self._memory.keep_rows(before, which)

    def step(self, picture: torch.Tensor, info: StepInfo) -> StepResult:
        """The Task's result, checked; a reward that is not finite raises at once on a CPU, else in `read_totals`."""
        before = self._memory.attributes()
        with self._code():
            result = self.task.step(self.ram, picture, info)
        return self._memory.keep(before, self._checks.result(result))

    def observe(self, picture: torch.Tensor, out: Mapping[str, torch.Tensor]) -> None:
        """Writes the Task's observations into the tensors of `out` that have their names."""
        with self._code():
            found = self.task.observe(self.ram, picture)
        for name, value in self._checks.observed(found).items():
            out[name].copy_(value)
            if value.is_floating_point():
                self._checks.numbers(name, out[name])

    def holds(self) -> torch.Tensor:
        """Task.holds, checked."""
        with self._code():
            found = self.task.holds(self.ram)
        return self._checks.masks("holds", found, len(self.task.milestones))

    def blocked(self) -> torch.Tensor:
        """Task.blocked, checked."""
        with self._code():
            found = self.task.blocked(self.ram)
        return self._checks.masks("blocked", found, len(self.task.blocks))

    def look(self, reward: torch.Tensor) -> None:
        """Counts a step's rewards for `reward_range`."""
        low, high = torch.aminmax(reward.to(self._low.dtype), out=self._extremes)
        torch.minimum(self._low, low, out=self._low)
        torch.maximum(self._high, high, out=self._high)

    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward since `clear`; waits for the device."""
        low, high = self._rewards.tolist()
        return low, high

    def statistics(self) -> dict[str, torch.Tensor]:
        """The statistics that `count` was given last, (num_envs,) float64 under their names in the infos."""
        return {f"{self.task.prefix}/{name}": self._values[i] for i, name in enumerate(self._names or ())}

    def count(self, statistics: Mapping[str, torch.Tensor], ended: torch.Tensor, some: bool) -> None:
        """Adds the statistics of the episodes that ended to the totals; without `some` there are none."""
        if self._names is None:
            self._expect(tuple(statistics))
        else:
            self._checks.names(tuple(statistics), self._names)
        if self._names and some:
            for row, values in zip(self._values, (*statistics.values(), ended), strict=True):
                row.copy_(values)
            if self.task.of_some:
                known = ended & (self._values == self._values)
                self._known.add_(torch.sum(known, dim=1))
                ended = known
            counted = torch.where(ended, self._values, self._nothing)
            self._totals.add_(torch.sum(counted, dim=1))

    def read(self) -> dict[str, float]:
        """Task.read."""
        with self._code():
            return self.task.read()

    def read_totals(self) -> dict[str, float]:
        """Sums of the statistics over the episodes that ended since the last read, under their names in the infos, and
        the number of these episodes under EPISODES; of a Task whose statistics are `of_some`, also under EPISODES/NAME.
        Empty if the Task has none."""
        self._checks.read()
        if not self._names:
            return {}
        found = {name: float(total) for name, total in zip(self._total_names(), self._all.tolist(), strict=True)}
        self._all.zero_()
        return found

    def _total_names(self) -> list[str]:
        """The names of all totals."""
        names = [f"{self.task.prefix}/{name}" for name in self._names or ()]
        known = [f"{EPISODES}/{name}" for name in (*names, EPISODES)] if self.task.of_some else []
        return [*names, EPISODES, *known]

    def totals(self) -> dict[str, torch.Tensor]:
        """Sums of the statistics by name, for a saved state; none before the first step."""
        names = self._total_names() if self._names is not None else []
        start = f"{self.task.prefix}/"
        return {start + name.removeprefix(start): self._all[i] for i, name in enumerate(names)}

    def load_totals(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Restores the result of `totals`; the names of the statistics are unknown before the first step."""
        start = f"{self.task.prefix}/"
        names = [name.removeprefix(start) for name in saved if name.startswith(start)]
        if names:
            self._expect(tuple(names[: names.index(EPISODES)]))
            if len(names) == len(self._all):
                self._all.copy_(torch.stack([saved[start + name] for name in names]))

    def _expect(self, names: tuple[str, ...] | None) -> None:
        """Allocates the totals of these statistics, which are then 0. Existing totals keep their addresses, because a
        CUDA graph may use them."""
        self._names = names
        if names is not None and (size := len(names) + 1) == len(self._totals):
            self._all.zero_()
        elif names is not None:
            parts = 1 + self.task.of_some
            self._all = torch.zeros(parts * size, dtype=torch.float64, device=self.device)
            self._totals, self._known = self._all[:size], self._all[size:]
            self._values = torch.zeros((size, self.n), dtype=torch.float64, device=self.device)
            self._nothing = torch.zeros((), dtype=torch.float64, device=self.device)

    def memory(self) -> dict[str, torch.Tensor]:
        """The Task's attributes that are tensors."""
        return self._memory.tensors()

    def _code(self) -> AbstractContextManager[None]:
        return code_of(self.name, type(self.task))


class TaskRunners:
    """All Tasks of an env, in the order in which their rewards are added; then the sum is multiplied by `scale`.

    `active` if there is anything to do. `t` has the step's rewards and ends, and `info`; both are changed in place.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        ram: Ram,
        info: StepInfo,
        t: EnvTensors,
        random: CounterRandom,
        scale: float,
    ) -> None:
        self.runners = [TaskRunner(task, ram, random) for task in tasks]
        self._observing = [runner for runner in self.runners if runner.task.observations]
        self.info, self.rewards, self.ended, self.failures, self.scale = info, t.rewards, t.ended, t.failures, scale
        self.active = bool(tasks) or scale != 1
        self._may_fail = False  # a Task has given `failure`, and may leave it out in the next step
        self.may_succeed = False  # a Task has given `terminal`
        self.milestones: Milestones | None = None  # which may cut episodes off, too

    def followed(self, task: Task | None) -> tuple[Sequence[str], Callable[[], torch.Tensor]]:
        """The milestones of a Task of the env, and the function that says which of them hold.

        Raises: ConfigError for a Task that has none.
        """
        for runner in self.runners:
            if runner.task is task and task is not None and task.milestones:
                return task.milestones, runner.holds
        raise ConfigError(
            "milestone_slots, milestone_steps, swarm_steps and archive_behind need milestones: give a game whose "
            "game.toml has [milestones] (--game), or a Task with `milestones` and `holds`"
        )

    def block(self, actions: Sequence[str], blocked: torch.Tensor) -> None:
        """Writes which of the `actions` the Tasks block now into `blocked`, (num_envs, actions) bool."""
        for runner in self.runners:
            if runner.task.blocks:
                found = runner.blocked()
                for row, name in zip(found, runner.task.blocks, strict=True):
                    if name in actions:
                        blocked[:, actions.index(name)].copy_(row)

    def step(self, picture: torch.Tensor) -> None:
        """Completes the rewards and ends of the last step."""
        with one_thread(self.ended.device):
            self._step(picture)

    def _step(self, picture: torch.Tensor) -> None:
        terminal, truncation = self.info.terminal, self.info.truncation
        results = []
        for runner in self.runners:
            result = runner.step(picture, self.info)
            self.rewards.add_(result.reward)
            if runner.task.pays:
                runner.look(result.reward)
            if result.terminal is not None:
                self.may_succeed = True
                terminal.logical_or_(result.terminal)
            if result.truncation is not None:
                truncation.logical_or_(result.truncation)
            results.append(result)
        if self.milestones is not None:
            truncation.logical_or_(self.milestones.ends())
        failed = [result.failure for result in results if result.failure is not None]
        if failed:
            self._may_fail = True
            torch.gt(reduce(torch.logical_or, failed), terminal, out=self.failures)  # a success is neither
            terminal.logical_or_(self.failures)
        elif self._may_fail:
            self.failures.zero_()
        ends = (end for result in results for end in (result.terminal, result.truncation))
        if failed or self.milestones is not None or any(end is not None for end in ends):
            torch.gt(truncation, terminal, out=truncation)
            torch.logical_or(terminal, truncation, out=self.ended)
        some = _may_have_any(self.ended)
        for runner, result in zip(self.runners, results, strict=True):
            runner.count(result.statistics, self.ended, some)
        if self.scale != 1:
            self.rewards.mul_(self.scale)

    def observe(self, picture: torch.Tensor, out: Mapping[str, torch.Tensor]) -> None:
        """Writes the Tasks' observations into the tensors of `out` that have their names."""
        if self._observing:
            with one_thread(self.ended.device):
                for runner in self._observing:
                    runner.observe(picture, out)

    def reset(self, which: torch.Tensor, seed: Seed) -> None:
        """Begins the episodes of `which`; the Tasks sample with the env's `seed`."""
        with one_thread(self.ended.device):
            for runner in self.runners if _may_have_any(which) else ():
                runner.sampler.seed = seed
                runner.reset(which)

    def read(self) -> dict[str, float]:
        """Statistics for the infos."""
        own = [runner.read() for runner in self.runners]
        return {name: value for part in (*own, means(self.read_totals())) for name, value in part.items()}

    def reward_ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the greatest reward of each Task that pays, by its name."""
        return {runner.name: runner.reward_range() for runner in self.runners if runner.task.pays}

    def statistics(self) -> dict[str, torch.Tensor]:
        """TaskRunner.statistics of all Tasks."""
        return {name: values for runner in self.runners for name, values in runner.statistics().items()}

    def read_totals(self) -> list[dict[str, float]]:
        """TaskRunner.read_totals of each Task."""
        return [runner.read_totals() for runner in self.runners]

    def clear(self) -> None:
        """Forgets everything."""
        for runner in self.runners:
            runner.clear()

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that the Tasks' next steps depend on."""
        found: dict[str, torch.Tensor] = {}
        for runner in self.runners:
            found |= {f"{runner.task.prefix}.{name}": tensor for name, tensor in runner.memory().items()}
        return found

    def close(self) -> None:
        """Releases the Tasks, so that another env can use them."""
        for runner in self.runners:
            runner.task._sampler = None

    def totals(self) -> dict[str, torch.Tensor]:
        """The sums of all statistics, for a saved state."""
        return {name: total for runner in self.runners for name, total in runner.totals().items()}

    def load_totals(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Restores the result of `totals`."""
        for runner in self.runners:
            runner.load_totals(saved)


def _may_have_any(mask: torch.Tensor) -> bool:
    """False if no env is in a mask; on a GPU always True, because the host would have to wait for the answer."""
    return mask.device.type != "cpu" or bool(mask.any())


def means(*parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The totals of several parts of an env's Game Boys, each with the same Tasks, as means over the episodes; empty if
    none has ended."""
    found: dict[str, float] = {}
    for of_one_task in zip(*parts, strict=True):
        episodes = sum(totals.get(EPISODES, 0) for totals in of_one_task)
        names = dict.fromkeys(name for totals in of_one_task for name in totals if not name.startswith(EPISODES))
        for name in names:
            known = sum(totals.get(f"{EPISODES}/{name}", totals.get(EPISODES, 0)) for totals in of_one_task)
            if episodes and known:
                found[name] = sum(totals.get(name, 0) for totals in of_one_task) / known
    return found
