"""What a Task keeps between steps: tensors that it passes from one attribute to another, and what cannot be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import ROMS
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, StepResult, Task

ROM = str(ROMS / "homeward.gb")


class Exchange(Task):
    """Two attributes that change their places in each step."""

    def setup(self, ram: Ram) -> None:
        self.one, self.other = torch.zeros(2), torch.ones(2)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.one, self.other = self.other, self.one
        return self.one


class Late(Task):
    """Pays in a step what the step before has earned; `reset` begins with 10."""

    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.owed = torch.full((2,), 10.0)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
        due = self.owed
        self.owed = info.length.float()
        return StepResult(due, statistics={"due": due})


class Turned(Task):
    """A view of an attribute is assigned to itself."""

    def setup(self, ram: Ram) -> None:
        self.square = torch.arange(4.0).view(2, 2)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.square = self.square.T
        return self.square[0] + 10 * self.square[1]


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (Exchange, [[1, 1], [0, 0], [1, 1], [0, 0]]),
        (Late, [[10, 10], [1, 1], [10, 10], [1, 1]]),
        (Turned, [[10, 32], [20, 31], [10, 32], [20, 31]]),
    ],
)
def test_what_was_another_attribute_is_not_overwritten(task: type[Task], wanted: list[list[float]]) -> None:
    env = GBxCuLEEnv(ROM, num_envs=2, task=task, max_steps=2, log_interval=4)
    env.reset()
    places = {name: tensor.data_ptr() for name, tensor in env._episodes.tasks.tensors().items()}
    assert [env.step(np.zeros(2, int))[1].tolist() for _ in wanted] == wanted
    assert {name: tensor.data_ptr() for name, tensor in env._episodes.tasks.tensors().items()} == places
    if task is Late:
        assert env.infos[0]["task/due"] == 1


def test_what_reset_writes_in_place_reaches_all(tmp_path: Path) -> None:
    """As documented: `self.x += 1` is no assignment."""

    class Counts(Task):
        def setup(self, ram: Ram) -> None:
            self.assigned, self.in_place = torch.zeros(2), torch.zeros(2)

        def reset(self, ram: Ram, which: torch.Tensor) -> None:
            self.assigned = self.assigned + 1
            self.in_place += 1

        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> StepResult:
            return StepResult(self.assigned + 10 * self.in_place, truncation=torch.tensor([True, False]))

    env = GBxCuLEEnv(ROM, num_envs=2, task=Counts)
    env.reset()
    assert [env.step(np.zeros(2, int))[1].tolist() for _ in range(2)] == [[11, 11], [22, 21]]


class Steps(Task):
    """A Task whose step does something wrong."""

    observations: ClassVar = {"place": (2,)}

    def setup(self, ram: Ram) -> None:
        self.kept, self.net = torch.zeros(2), torch.nn.Linear(1, 2)

    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> Any:
        return torch.zeros(2)

    def observe(self, ram: Ram, picture: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"place": torch.zeros((2, 2))}


class Learns(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return self.net(torch.ones(1))


class KeepsGradients(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.kept = self.kept + self.net(torch.ones(1))
        return torch.zeros(2)


class KeepsAList(Steps):
    def reset(self, ram: Ram, which: torch.Tensor) -> None:
        self.several = [torch.zeros(2)]


class Forgets(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        self.kept = None
        return torch.zeros(2)


class TooLarge(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        return torch.tensor([0.0, 1e300], dtype=torch.float64)


class SeesNothing(Steps):
    def observe(self, ram: Ram, picture: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"place": torch.tensor([[0.0, 0.0], [0.0, float("nan")]])}


class Assigns(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        ram[0xC0A1] = 1
        return torch.zeros(2)


class PokesAFloat(Steps):
    def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
        ram.poke(0xC0A1, 1.5)  # pyright: ignore[reportArgumentType]
        return torch.zeros(2)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Learns, "reward carries gradients: give it with .detach()"),
        (KeepsGradients, "attribute 'kept' keeps the gradients of all steps so far: assign it with .detach()"),
        (KeepsAList, "attribute 'several' is a list of tensors, which is not kept: stack them into one"),
        (Forgets, "attribute 'kept' is not a tensor any more"),
        (TooLarge, "reward is inf in env 1"),
        (SeesNothing, "observation 'place' is nan in env 1"),
        (Assigns, "memory is written by ram.poke(where, value, mask)"),
        (PokesAFloat, "poke of C0A1 has 1.5: give bytes from 0 to 255"),
    ],
)
def test_what_cannot_be_kept_or_used_is_named(task: type[Task], told: str) -> None:
    env = GBxCuLEEnv(ROM, num_envs=2, task=task)
    with pytest.raises(ConfigError) as caught:
        env.reset()
        env.step(np.zeros(2, int))
    assert str(caught.value).startswith(f"task {task.__name__}: {told}")
