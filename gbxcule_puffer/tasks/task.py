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
    """Facts of the step just made, each of shape (num_envs,). The next step changes them in place.

    actions int64: the action of each Game Boy; length int32: steps of the episode, this one included; frames int32:
    frames of this step; locked bool: an illegal opcode has locked the Game Boy; terminal, truncation bool: the picture
    goal, max_steps or a lock ends the episode.
    """

    actions: torch.Tensor
    length: torch.Tensor
    frames: torch.Tensor
    locked: torch.Tensor
    terminal: torch.Tensor
    truncation: torch.Tensor


@dataclass(frozen=True)
class StepResult:
    """The answer of `Task.step`, each of shape (num_envs,).

    reward: numbers, added to the environment's own reward; terminal bool: the episode ends as a success; failure bool:
    it ends as a failure, such as a lost game (`terminals` includes it, the success rate does not); truncation bool: it
    is cut off, and could have continued; statistics: numbers by name; the infos have their means over the episodes'
    last steps.
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
    """Base class of rewards in Python. An environment makes one Task and calls it in every step, after the frames and
    before episodes that ended are replaced by new ones.

    Attributes that are tensors are the Task's memory: they are saved with the environment's state. They keep their
    address, so that a CUDA graph can record the Task: an attribute that `step` assigns is copied into the old tensor,
    one that `reset` assigns only in the rows of `which`. A change in place (`self.x += 1`) in `reset` reaches all rows.
    """

    observations: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Shapes by name of what `observe` gives: part of each env's observation, after the pictures."""

    prefix: ClassVar[str] = "task"  # of its statistics in the infos
    pays: ClassVar[bool] = True  # rewards, and does not only observe
    checks_numbers: ClassVar[bool] = True  # look for NaN in its rewards and in what it observes
    of_some: bool = False  # its statistics may be NaN: such an episode does not count in their mean
    # Bytes for `Ram` with the player's position, (map,) row, column, or text as of the option: for those who watch.
    position: tuple[Any, ...] | str | None = None
    blocks: Sequence[str] = ()  # names of actions that `blocked` may take away; an env without them ignores them
    milestones: Sequence[str] = ()  # names of the game's events in their order; `holds` says which have come
    _sampler: Sampler | None = None  # of the env that it plays in

    def __getstate__(self) -> dict[str, Any]:
        """The attributes for a copy, which belongs to no environment yet."""
        return {name: value for name, value in vars(self).items() if name != "_sampler"}

    def setup(self, ram: Ram) -> None:
        """Called once, before the first episode. `ram` has num_envs and device."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        """Called when episodes begin, in the Game Boys of `which` (num_envs,) bool; `ram` shows their starts. On a
        GPU it is called after every step, so that the host need not wait, and `which` may be False everywhere."""

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult | torch.Tensor:
        """The result of a step, or only its reward. picture: (num_envs, 72, 80) or (num_envs, 144, 160), uint8 shades
        0 to 3."""
        raise ConfigError("has no step: write one that gives the reward")

    def observe(self, ram: Ram, picture: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Numbers for the policy: (num_envs, *shape) by the names in `observations`. Called after `step`, and again
        after `reset`, when new episodes show their starts."""
        return {}

    def blocked(self, ram: Ram) -> torch.Tensor:
        """Masks of `blocks`: True if the action presses nothing in the next step, (blocks, num_envs) bool. Called after
        `step`, and again after `reset`."""
        raise ConfigError("has blocks and no blocked: write one that says where each action is blocked")

    def holds(self, ram: Ram) -> torch.Tensor:
        """Masks of `milestones`: True if it holds now, (milestones, num_envs) bool. Called after `step` and
        `reset`, if an option of the environment needs it."""
        raise ConfigError("has milestones and no holds: write one that says which of them hold")

    def sample(self, below: int, counter: torch.Tensor) -> torch.Tensor:
        """Random whole numbers from 0 to below - 1, (num_envs,) int64; `below` is at most 2 ** 24. They depend only on
        the seed, the index of the Game Boy and `counter` (num_envs,) int64. For `reset` and `step`."""
        if self._sampler is None:
            raise ConfigError(f"task {type(self).__name__} plays in no env yet: call sample in reset and step")
        return self._sampler.sample(below, counter)

    def read(self) -> dict[str, float]:
        """More infos. Called once every log_interval steps, so it may wait for the device."""
        return {}


TaskSpec = str | type[Task] | Task


def checked_task(value: object) -> TaskSpec:
    """The value of the option `task`: a Task, a class of Tasks, or where one is.

    Raises: TypeError for anything else.
    """
    if isinstance(value, str | Task) or (isinstance(value, type) and issubclass(value, Task)):
        return value
    raise TypeError
