"""A Task: reward, ends and statistics of an episode from the memory and the picture of all envs at once."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.view import Ram


@dataclass(frozen=True)
class StepInfo:
    """Facts of the step just made, each (num_envs,), changed in place by the next one.

    actions int64: what was pressed; length int32: the episode's steps with this one; frames int32: those of this step;
    locked bool: an illegal opcode has locked the Game Boy; terminal, truncation bool: whether the picture goal,
    max_steps or a lock ends the episode.
    """

    actions: torch.Tensor
    length: torch.Tensor
    frames: torch.Tensor
    locked: torch.Tensor
    terminal: torch.Tensor
    truncation: torch.Tensor


@dataclass(frozen=True)
class StepResult:
    """The answer of `Task.step`, each (num_envs,).

    reward: numbers, added to the env's; terminal bool: the episode ends as a success; failure bool: it ends for good,
    as a lost game does (`terminals` has it, success has not); truncation bool: it is cut, and might have gone on;
    statistics: numbers by name, whose mean over the episodes' last steps is in the infos.
    """

    reward: torch.Tensor
    terminal: torch.Tensor | None = None
    truncation: torch.Tensor | None = None
    statistics: Mapping[str, torch.Tensor] = field(default_factory=dict)
    failure: torch.Tensor | None = None


class Task:
    """Base class of what is rewarded. An env makes one and calls it in every step, after the frames and before an
    episode that has ended is replaced by the next.

    Attributes that are tensors are the Task's memory: they are saved with the env's state, and they keep their place:
    one that `step` assigns anew is copied into the old one, one that `reset` assigns only in the rows of `which`; what
    `reset` writes in place (`self.x += 1`) reaches all rows. So a Task can be recorded in a CUDA graph as it is
    written, as long as it does not ask for values on the host.
    """

    observations: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Shapes by name of what `observe` gives: part of each env's observation, behind the pictures."""

    prefix: ClassVar[str] = "task"  # of its statistics in the infos
    checks_numbers: ClassVar[bool] = True  # look for NaN in its rewards and in what it observes
    # Bytes for `Ram` that tell where the player is, (map,) row, column, or text as of the option: for those who watch.
    place: tuple[Any, ...] | str | None = None
    _runner: Any = None  # of the env that it plays in

    def setup(self, ram: Ram) -> None:
        """Called once, before the first episode. `ram` has num_envs and device."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        """Episodes begin in the envs of `which` (num_envs,) bool; `ram` shows their starts. On a GPU, for which
        nobody waits, it is called behind every step, and `which` may have none."""

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult | torch.Tensor:
        """The result of a step, or its reward alone. picture: (num_envs, 72, 80), or 144 x 160, shades 0-3, uint8."""
        raise ConfigError("has no step: write one that gives the reward")

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Numbers for the policy, (num_envs, *shape) by the names in `observations`, of the state as it is now: called
        after `step`, and again after `reset`, whose episodes show their starts then."""
        return {}

    def sample(self, below: int, counter: torch.Tensor) -> torch.Tensor:
        """Random whole numbers from 0 to below - 1, (num_envs,) int64, with `below` at most 2 ** 24: the same for the
        same seed of the env, number of the Game Boy and `counter` (num_envs,) int64. For `reset` and `step`."""
        return self._runner.sample(below, counter)

    def read(self) -> dict[str, float]:
        """More infos, asked for once every log_interval steps; may wait for the device."""
        return {}


TaskSpec = str | type[Task] | Task


def checked_task(value: Any) -> TaskSpec:
    """The value of the option `task`: a Task, a class of Tasks, or where one is.

    Raises: TypeError for anything else.
    """
    if isinstance(value, str | Task) or (isinstance(value, type) and issubclass(value, Task)):
        return value
    raise TypeError


def make_task(spec: TaskSpec) -> Task:
    """The Task itself, of a class, or of a class's name: 'package.module:Class' or 'folder/file.py:Class'.

    Raises: ConfigError where there is none, or where it cannot be made without arguments.
    """
    if isinstance(spec, Task):
        return spec
    kind = _find_class(spec) if isinstance(spec, str) else spec
    try:
        return kind()
    except TypeError as error:
        raise ConfigError(f"task {kind.__name__} cannot be made without arguments ({error}): give one made") from None


def _find_class(spec: str) -> type[Task]:
    """The class that 'module:Class' or 'file.py:Class' names."""
    where, colon, name = spec.rpartition(":")
    if not (colon and where and name):
        raise ConfigError(f"task {spec!r:.80} must be package.module:Class or file.py:Class")
    module = _import_file(Path(where), spec) if where.endswith(".py") else _import_module(where, spec)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Task)):
        known = [each for each, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, Task)]
        listed = ", ".join(each for each in known if each != "Task")
        fault = "has no such class" if found is None else f"has another kind of {name}"
        raise ConfigError(f"task {spec!r:.80}: {where} {fault}: give one of its Tasks ({listed or 'it has none'})")
    return found


def _import_module(name: str, spec: str) -> Any:
    """A module by name, also of the current folder."""
    try:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            sys.path.append(os.getcwd())
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(f"task {spec!r:.80}: there is no module {error.name!r:.60}: give its file's path") from None
    except (ValueError, TypeError) as error:
        raise ConfigError(f"task {spec!r:.80}: {name!r:.60} is no name of a module ({error})") from None


def _import_file(path: Path, spec: str) -> Any:
    """A module by its file; the same file is the same module."""
    full = path.resolve()
    name = f"gbxcule_task_{full.stem}_{abs(hash(str(full)))}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, full)
    if not full.is_file() or found is None or found.loader is None:
        raise ConfigError(f"task {spec!r:.80}: there is no file {path}")
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
