"""A Task: reward, ends and statistics of an episode from the memory and the picture of all envs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram.view import Ram

PREFIX = "task/"  # how the statistics of Tasks begin in the infos


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


class Sampler(Protocol):
    """The source of the numbers that `Task.sample` gives."""

    def sample(self, below: int, counter: torch.Tensor) -> torch.Tensor: ...


class Task:
    """Base class of what is rewarded. An env makes one and calls it in every step, after the frames and before an
    episode that has ended is replaced by the next.

    Attributes that are tensors are the Task's memory: they are saved with the env's state, and they keep their address:
    one that `step` assigns anew is copied into the old one, one that `reset` assigns only in the rows of `which`; what
    `reset` writes in place (`self.x += 1`) reaches all rows. So a Task can be recorded in a CUDA graph as it is
    written, as long as it does not ask for values on the host.
    """

    observations: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Shapes by name of what `observe` gives: part of each env's observation, after the pictures."""

    prefix: ClassVar[str] = "task"  # of its statistics in the infos
    pays: ClassVar[bool] = True  # rewards, and does not only observe
    checks_numbers: ClassVar[bool] = True  # look for NaN in its rewards and in what it observes
    of_some: bool = False  # its statistics may be NaN: such an episode does not count in their mean
    # Bytes for `Ram` that tell where the player is, (map,) row, column, or text as of the option: for those who watch.
    position: tuple[Any, ...] | str | None = None
    blocks: Sequence[str] = ()  # names of actions that `blocked` may take away; an env without them ignores them
    milestones: Sequence[str] = ()  # names of the game's events in their order, of which `holds` says what has come
    _sampler: Sampler | None = None  # of the env that it plays in

    def __getstate__(self) -> dict[str, Any]:
        """The attributes for a copy, which plays in no env yet."""
        return {name: value for name, value in vars(self).items() if name != "_sampler"}

    def setup(self, ram: Ram) -> None:
        """Called once, before the first episode. `ram` has num_envs and device."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        """Episodes begin in the envs of `which` (num_envs,) bool; `ram` shows their starts. On a GPU, for which
        nobody waits, it is called after every step, and `which` may have none."""

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult | torch.Tensor:
        """The result of a step, or its reward alone. picture: (num_envs, 72, 80), or 144 x 160, shades 0-3, uint8."""
        raise ConfigError("has no step: write one that gives the reward")

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Numbers for the policy, (num_envs, *shape) by the names in `observations`, of the state as it is now: called
        after `step`, and again after `reset`, whose episodes show their starts then."""
        return {}

    def blocked(self, ram: Ram) -> torch.Tensor:
        """Masks of `blocks`: where each presses nothing in the next step, (blocks, num_envs) bool; called after `step`,
        and again after `reset`."""
        raise ConfigError("has blocks and no blocked: write one that says where each action is blocked")

    def holds(self, ram: Ram) -> torch.Tensor:
        """Masks of the `milestones` that hold now, (milestones, num_envs) bool: called after `step`, and again after
        `reset`; asked for where an option of the env needs it."""
        raise ConfigError("has milestones and no holds: write one that says which of them hold")

    def sample(self, below: int, counter: torch.Tensor) -> torch.Tensor:
        """Random whole numbers from 0 to below - 1, (num_envs,) int64, with `below` at most 2 ** 24: the same for the
        same seed of the env, number of the Game Boy and `counter` (num_envs,) int64. For `reset` and `step`."""
        if self._sampler is None:
            raise ConfigError(f"task {type(self).__name__} plays in no env yet: call sample in reset and step")
        return self._sampler.sample(below, counter)

    def read(self) -> dict[str, float]:
        """More infos, asked for once every log_interval steps; may wait for the device."""
        return {}


TaskSpec = str | type[Task] | Task


def checked_task(value: object) -> TaskSpec:
    """The value of the option `task`: a Task, a class of Tasks, or where one is.

    Raises: TypeError for anything else.
    """
    if isinstance(value, str | Task) or (isinstance(value, type) and issubclass(value, Task)):
        return value
    raise TypeError
