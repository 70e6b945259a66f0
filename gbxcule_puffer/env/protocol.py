"""Types that the rooms above the environment share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.protocol import EmulatorLike, Launches
from gbxcule_puffer.env.coverage import Coverage
from gbxcule_puffer.env.curriculum.milestones import Milestones
from gbxcule_puffer.tasks.actions import ActionCodec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.ram.position import Position
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.stages.open import Stage

Infos = list[dict[str, float]]
Step = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Infos]


class Policy(Protocol):
    """(observations (n, ...), starts (n,) bool: True if an episode begins with this observation) -> actions (n,) int64.

    A policy is made for one env; without `starts` it reads the env's final_mask.
    """

    def __call__(self, obs: torch.Tensor, starts: torch.Tensor | None = None, /) -> torch.Tensor: ...


class PlayedEnv(Protocol):
    """The part of an env that a policy needs."""

    @property
    def num_envs(self) -> int:
        """Number of Game Boys."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        ...

    @property
    def codec(self) -> ActionCodec:
        """The actions."""
        ...

    @property
    def layout(self) -> ObservationLayout:
        """The parts of an observation."""
        ...

    @property
    def final_mask(self) -> torch.Tensor:
        """Envs whose last step ended an episode, so that their observation is from a new one, (num_envs,) bool."""
        ...


class EnvLike(PlayedEnv, Protocol):
    """An environment with tensors, as GBxCuLEEnv with io="torch": `step` changes them in place.

    GBxCuLEEnv, baselines.pyboy_puffer_vec.PyBoyPufferVec, toy.ToyEnv.
    """

    @property
    def config(self) -> Mapping[str, Any]:
        """The options that observations, goals and checkpoints depend on; JSON."""
        ...

    @property
    def observations(self) -> torch.Tensor:
        """The current observations, (num_envs, *layout.shape)."""
        ...

    @property
    def rewards(self) -> torch.Tensor:
        """Rewards of the last step, (num_envs,) float32."""
        ...

    @property
    def terminals(self) -> torch.Tensor:
        """Episodes that ended in the last step (not by a time limit), (num_envs,) bool."""
        ...

    @property
    def truncations(self) -> torch.Tensor:
        """Episodes that the last step cut off, (num_envs,) bool."""
        ...

    @property
    def failures(self) -> torch.Tensor:
        """Those of `terminals` that are not a success, (num_envs,) bool."""
        ...

    @property
    def final_observation(self) -> torch.Tensor:
        """The observations that the last actions led to, before any new episode, shape as of `observations`."""
        ...

    @property
    def milestones(self) -> Milestones | None:
        """The milestones that are followed; None if none are."""
        ...

    @property
    def coverage(self) -> Coverage | None:
        """The visits of each position; None if they are not counted."""
        ...

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages of the env's task; empty if it has none."""
        ...

    @property
    def stage(self) -> torch.Tensor:
        """The index in `stages` of each env's stage, (num_envs,) int64."""
        ...

    @property
    def has_goal(self) -> bool:
        """True if episodes end at a goal's pictures; False if there is only a Task or a time limit."""
        ...

    @property
    def taken_actions(self) -> torch.Tensor:
        """The actions of the last step, after sticky ones took effect, (num_envs,) int64."""
        ...

    @property
    def episode_returns(self) -> torch.Tensor:
        """Sums of the rewards of the episodes that are running, (num_envs,) float32."""
        ...

    @property
    def cartridge(self) -> Cartridge | None:
        """The ROM and its header; None where there is none."""
        ...

    @property
    def symbols(self) -> Symbols | None:
        """Names of addresses; None where no symbol file was given."""
        ...

    @property
    def has_success(self) -> bool:
        """True where an episode may end as a success: at a goal, or because a Task gives `terminal`, which is known
        after its first step."""
        ...

    @property
    def position(self) -> Position | None:
        """The bytes of RAM with the player's position; None if unknown."""
        ...

    @property
    def emulator(self) -> EmulatorLike | None:
        """The Game Boys; None if they are in other processes, or there are none."""
        ...

    @property
    def launches(self) -> Launches | None:
        """The launches of the Game Boys' steps; None unless they run on a GPU."""
        ...

    def reset(self, seed: int | None = None) -> tuple[torch.Tensor, Infos]:
        """Starts an episode in every env; returns the observations."""
        ...

    def step(self, actions: torch.Tensor) -> Step:
        """One action (num_envs,) int64 in every env; (observations, rewards, terminals, truncations, infos)."""
        ...

    def read_infos(self) -> dict[str, float]:
        """Statistics since the last read."""
        ...

    def statistics(self) -> Mapping[str, torch.Tensor]:
        """The Tasks' statistics of the episodes that the last step ended, (num_envs,) float64 by their names in the
        infos; the other rows mean nothing."""
        ...

    def reward_ranges(self) -> Mapping[str, tuple[float, float]]:
        """The least and the greatest reward since the reset of each Task that pays, by its name; waits for the
        device."""
        ...

    def pictures(self, rows: torch.Tensor | slice = ...) -> torch.Tensor:
        """The current pictures of the envs of `rows`, (n, rows, columns): uint8 shades, or uint16 colours."""
        ...

    def final_pictures(self, rows: torch.Tensor | slice = ...) -> torch.Tensor:
        """The pictures that the last actions led to, as `pictures`."""
        ...

    def keep_pictures(self) -> None:
        """From the next step on, final_pictures are there whatever is observed, those of Game Boy Colors in colour."""
        ...

    def state_dict(self, machines: bool = True) -> dict[str, Any]:
        """Everything that the next steps depend on; without `machines` only the statistics of stages and visits."""
        ...

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continues from the state of `state_dict`. Raises: StateError."""
        ...

    def close(self) -> None:
        """Releases threads, processes and memory."""
        ...
