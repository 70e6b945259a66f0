"""Checks of what a Task gives: names, shapes, types, devices and numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from gbxcule_puffer.env.randomness import RANGE
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.task import StepResult, Task


class TaskChecks:
    """Checks for one Task of `num_envs` envs.

    Numbers that are not finite raise at once on a CPU. Those of a GPU are added up, without a look at them, and `read`
    raises.

    Raises: ConfigError, from every call, that names the Task, what it gave, and what it should.
    """

    def __init__(self, task: Task, num_envs: int, device: torch.device) -> None:
        self.task, self.n, self.device = task, num_envs, device
        # Sums of the rewards and observations since the last read: not finite if one of them was not.
        self._sums = torch.zeros(2, dtype=torch.float64, device=device)
        self._reward_sum, self._observation_sum = self._sums.unbind()

    def error(self, text: str) -> ConfigError:
        """The error that names the Task."""
        return ConfigError(f"task {type(self.task).__name__}: {text}")

    def result(self, found: object) -> StepResult:
        """Checks the answer of `step`, a StepResult or the reward alone, and returns it as a StepResult."""
        result = StepResult(found) if isinstance(found, torch.Tensor) else found
        if not isinstance(result, StepResult):
            raise self.error(f"step gave a {type(found).__name__}: give a StepResult, or the reward as a tensor")
        self._check("reward", result.reward, None)
        for name in ("terminal", "truncation", "failure"):
            if (value := getattr(result, name)) is not None:
                self._check(name, value, torch.bool)
        if not isinstance(result.statistics, Mapping):
            raise self.error(f"statistics are a {type(result.statistics).__name__}: give tensors by name")
        for name, value in result.statistics.items():
            self._check(f"statistics[{name!r}]", value, None)
        if self.task.checks_numbers:
            reward = result.reward  # finite as a float64 is not finite as the env's float32
            self._check_finite("reward", reward.float() if reward.dtype == torch.float64 else reward, self._reward_sum)
        return result

    def observed(self, found: object) -> Mapping[str, torch.Tensor]:
        """Checks the answer of `observe` by the names and shapes in `observations`, and returns it."""
        wanted = self.task.observations
        if not isinstance(found, Mapping) or set(found) != set(wanted):
            given = list(found) if isinstance(found, Mapping) else f"a {type(found).__name__}"
            raise self.error(f"observe gave {given}: give what `observations` names, {list(wanted)}")
        for name, value in found.items():
            self._check(f"observation {name!r}", value, None, wanted[name])
        return found

    def numbers(self, name: str, observation: torch.Tensor) -> None:
        """Checks that an observation (num_envs, ...) is finite, float32 as the env has it."""
        if self.task.checks_numbers:
            self._check_finite(f"observation {name!r}", observation, self._observation_sum)

    def names(self, statistics: Sequence[str], before: Sequence[str]) -> None:
        """Checks that the statistics of a step have the names of those `before`, in the first step."""
        if tuple(statistics) != tuple(before):
            raise self.error(f"statistics are {list(statistics)}, in the first step {list(before)}: give the same")

    def masks(self, name: str, found: object, count: int) -> torch.Tensor:
        """Checks the answer of `holds` or `blocked`, (count, num_envs) bool, and returns it."""
        shape = (count, self.n)
        good = isinstance(found, torch.Tensor) and found.shape == shape and found.dtype == torch.bool
        if not good or not isinstance(found, torch.Tensor) or found.device != self.device:
            raise self.error(
                f"{name} gave {_kind(found)}: give a tensor of shape {shape} of torch.bool on {self.device}"
            )
        return found

    def sample(self, below: int, counter: torch.Tensor) -> None:
        """Checks the arguments of Task.sample."""
        if not 1 <= below <= RANGE or counter.shape != (self.n,) or counter.dtype != torch.int64:
            given = f"below {below}, counter {tuple(counter.shape)} of {counter.dtype}"
            raise self.error(f"sample has {given}: give 1 to {RANGE:,}, and ({self.n},) of torch.int64")

    def read(self) -> None:
        """Checks the numbers of a GPU since the last read."""
        for field, total in zip(("reward", "an observation"), self._sums.tolist(), strict=True):
            if not math.isfinite(total):
                raise self.error(f"{field} is NaN or infinite in some env: check what it divides by")
        self._sums.zero_()

    def _check_finite(self, field: str, values: torch.Tensor, total: torch.Tensor) -> None:
        if self.device.type != "cpu":
            total.add_(torch.sum(values, dtype=torch.float64))
            return
        finite = torch.isfinite(values) if not math.isfinite(values.sum()) else None
        if finite is not None and not finite.all():  # a sum may be infinite where no number is
            env, *inner = (~finite).nonzero()[0].tolist()
            raise self.error(f"{field} is {float(values[env, *inner])} in env {env}: check what it divides by")

    def _check(self, field: str, value: object, dtype: torch.dtype | None, inner: Sequence[int] = ()) -> None:
        shape = (self.n, *inner)
        if not isinstance(value, torch.Tensor):
            raise self.error(f"{field} is a {type(value).__name__}: give a tensor of shape {shape}")
        wanted = "numbers" if dtype is None else str(dtype)
        wrong_type = value.dtype.is_complex if dtype is None else value.dtype != dtype
        if value.shape != shape or wrong_type:
            found = f"{tuple(value.shape)} of {value.dtype}"
            raise self.error(f"{field} has shape {found}: give {shape} of {wanted}")
        if value.requires_grad:
            raise self.error(f"{field} carries gradients: give it with .detach()")
        if value.device != self.device:
            raise self.error(f"{field} is on {value.device}, the env on {self.device}: make it there (ram.device)")


def _kind(value: object) -> str:
    """A value in words, for an error."""
    if not isinstance(value, torch.Tensor):
        return f"a {type(value).__name__}"
    return f"{tuple(value.shape)} of {value.dtype} on {value.device}"
