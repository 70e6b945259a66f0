"""The memory of a Task: its attributes that are tensors. They keep their addresses, so that they can be saved and
recorded in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from gbxcule_puffer.env.rows import copy_rows
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.task import StepResult, Task


class TaskMemory:
    """Memory of a Task of `num_envs` envs; `error` makes the ConfigError of a message.

    Raises: ConfigError, from every call, for an attribute that cannot keep its address.
    """

    def __init__(self, task: Task, num_envs: int, error: Callable[[str], ConfigError]) -> None:
        self.task, self.n, self._error = task, num_envs, error

    def tensors(self) -> dict[str, torch.Tensor]:
        """The attributes that are tensors."""
        return {name: value for name, value in vars(self.task).items() if isinstance(value, torch.Tensor)}

    def attributes(self) -> dict[str, Any]:
        """All current attributes, for `keep` and `keep_rows`."""
        return dict(vars(self.task))

    def keep(self, before: Mapping[str, object], result: StepResult) -> StepResult:
        """Copies new values of attributes, assigned since `before`, into the tensors of `before`; returns the step's
        result, copied if it is one of these tensors."""
        assigned, taken = self._assigned(before)
        if not assigned:
            return result

        if any(_storage(value) in taken for value in _tensors(result)):
            result = _copied(result)
        for name, old, new in assigned:
            if old is None:
                raise self._error(f"attribute {name!r} is new in step: make it in setup or reset")
            old.copy_(new)
            setattr(self.task, name, old)
        return result

    def keep_rows(self, before: Mapping[str, object], which: torch.Tensor) -> None:
        """The same, only for the rows of `which` (num_envs,) bool; a tensor without a row per env is copied as a
        whole."""
        for name, old, new in self._assigned(before)[0]:
            if old is None:
                setattr(self.task, name, new.clone(memory_format=torch.contiguous_format))
                continue
            if not new.dim() or len(new) != self.n:
                old.copy_(new)
            elif old.is_contiguous():
                copy_rows(new, old, which)
            else:
                old.copy_(torch.where(which.view(-1, *[1] * (new.dim() - 1)), new, old))
            setattr(self.task, name, old)

    def _assigned(self, before: Mapping[str, object]) -> tuple[list[tuple[str, Any, torch.Tensor]], set[int]]:
        """(name, tensor before or None, tensor now) of the attributes that were assigned. Values that are themselves
        old tensors are copied first: otherwise self.a, self.b = self.b, x would make both x."""
        now = vars(self.task)
        for name, value in before.items():
            if isinstance(value, torch.Tensor) and not isinstance(now.get(name), torch.Tensor):
                raise self._error(f"attribute {name!r} is not a tensor any more: give zeros where it has no use")
        found: list[tuple[str, Any, torch.Tensor]] = []
        for name, new in now.items():
            old = before.get(name)
            if old is new:
                continue
            if isinstance(new, torch.Tensor):
                found.append((name, self._checked(name, old, new), new))
            elif isinstance(new, list | tuple | dict) and any(isinstance(each, torch.Tensor) for each in _items(new)):
                kind = type(new).__name__
                raise self._error(f"attribute {name!r} is a {kind} of tensors, which is not kept: stack them into one")
        taken = {_storage(old) for _, old, _ in found if old is not None}
        return [(name, old, new.clone() if _storage(new) in taken else new) for name, old, new in found], taken

    def _checked(self, name: str, old: object, new: torch.Tensor) -> torch.Tensor | None:
        """The tensor of this name before, or None."""
        if new.requires_grad:
            raise self._error(f"attribute {name!r} keeps the gradients of all steps so far: assign it with .detach()")
        if not isinstance(old, torch.Tensor):
            return None
        if (old.shape, old.dtype, old.device) != (new.shape, new.dtype, new.device):
            kinds = [f"{tuple(t.shape)} of {t.dtype} on {t.device}" for t in (old, new)]
            raise self._error(f"attribute {name!r} changes from {kinds[0]} to {kinds[1]}: keep it of one kind")
        return old


def _tensors(result: StepResult) -> list[torch.Tensor]:
    """All tensors of a result."""
    ends = (result.terminal, result.truncation, result.failure)
    return [result.reward, *(end for end in ends if end is not None), *result.statistics.values()]


def _copied(result: StepResult) -> StepResult:
    """A result whose tensors are copies."""
    ends = {name: getattr(result, name) for name in ("terminal", "truncation", "failure")}
    copies = {name: None if end is None else end.clone() for name, end in ends.items()}
    statistics = {name: value.clone() for name, value in result.statistics.items()}
    return StepResult(result.reward.clone(), statistics=statistics, **copies)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _items(several: Iterable[object]) -> Iterable[object]:
    return several.values() if isinstance(several, dict) else several
