"""A pixel-goal environment in plain torch with the API of GBxCuLEEnv(io="torch"): tests train on it in seconds.

A walker (shade 3) begins each episode at a random cell of a small board and has to reach the goal (shade 1) in its
middle with UP, DOWN, LEFT and RIGHT; other buttons do nothing. Distance, reward, episodes, autoreset, final
observations, infos and saved states are as in GBxCuLEEnv. A step is, too: on the device, without allocation, and
without host synchronisation except for the infos.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.closing import close_for_good
from gbxcule_puffer.env.options import STEP_COST, EnvOptions, options_of, signature, whole_number
from gbxcule_puffer.env.randomness import START, CounterRandom
from gbxcule_puffer.env.statistics import EpisodeStats
from gbxcule_puffer.errors import ActionError, ConfigError, StateError
from gbxcule_puffer.pictures import LEVELS
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout, ShowsPictures, shades_layout
from gbxcule_puffer.tasks.observe.pictures import OTHER_GREY, area_averaged, picture_kind

CELL = 4  # pixels
MAX_STEPS = 16
OPTIONS = (
    *("obs", "stack_k", "action_codec", "max_steps", "step_cost", "alpha", "goal_bonus", "log_interval", "info_mode"),
    "seed",
)
MOVES = {"UP": (-1, 0), "DOWN": (1, 0), "LEFT": (0, -1), "RIGHT": (0, 1)}  # rows, columns


def board_layout(obs: str = "shades", stack_k: int = 1, side: int = 5) -> ObservationLayout:
    """The layout of boards of `side` x `side` cells: shades of CELL * side pixels, or grey as of picture_kind.

    Raises: ConfigError for another obs.
    """
    kind = picture_kind(obs)
    if kind.form == "grey":
        return ObservationLayout(kind, stack_k)
    if obs != "shades":
        raise ConfigError(f"obs {obs!r} is not for the toy env: give shades, grey or {OTHER_GREY}")
    return shades_layout(stack_k, CELL * side, CELL * side)


class ToyEnv(ShowsPictures):
    """`num_envs` boards of `side` x `side` cells; observations (num_envs, *board_layout(...).shape) uint8."""

    io = "torch"
    stages = ()
    has_goal = has_success = True
    emulator = launches = cartridge = position = symbols = milestones = coverage = None  # there are no Game Boys

    def __init__(
        self,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        side: int = 5,
        **options: object,
    ) -> None:
        """reward = step_cost + alpha * (previous distance - distance) + goal_bonus * done; distance is in [0, 1].
        options: those of EnvOptions that OPTIONS names; max_steps: MAX_STEPS by default.

        Raises: ConfigError.
        """
        self.options = options_of(options, EnvOptions, OPTIONS)
        self.num_agents = self.num_envs = whole_number("num_envs", num_envs)
        self.codec, self.stack_k = get_codec(self.options.action_codec), self.options.stack_k
        self.device, self.side = torch.device(device), whole_number("side", side, 2)
        self.max_steps, self.seed = self.options.max_steps or MAX_STEPS, self.options.seed or 0
        self.step_cost = STEP_COST if self.options.step_cost is None else self.options.step_cost
        self.goal = side // 2 * side + side // 2  # cell
        self.obs, self.layout = self.options.obs, board_layout(self.options.obs, self.stack_k, side)
        self.single_observation_space = self.layout.box
        self.single_action_space = self.codec.space
        self.infos: list[dict[str, float]] = []
        self._steps: int | None = None
        self._allocate(self.num_envs, self.layout.picture_shape)

    @property
    def config(self) -> dict[str, Any]:
        """The settings that observations and checkpoints depend on."""
        return {"action_codec": self.codec.name, "stack_k": self.stack_k, "obs": self.obs, "side": self.side}

    @property
    def taken_actions(self) -> torch.Tensor:
        """As of GBxCuLEEnv."""
        return self._index

    @property
    def episode_returns(self) -> torch.Tensor:
        """As of GBxCuLEEnv."""
        return self._stats.returns

    def reset(self, seed: int | None = None) -> tuple[torch.Tensor, list[dict[str, float]]]:
        """Starts an episode in every env; the same seed gives the same episodes."""
        if seed is not None:
            self.seed = seed
        for tensor in (*self._state_tensors().values(), self.rewards, self.terminals, self.truncations):
            tensor.zero_()
        self._steps = 0
        self.final_mask.fill_(True)
        self._begin_episodes()
        self.final_mask.zero_()
        self.final_observation.copy_(self.observations)
        self.infos = []
        return self.observations, self.infos

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, list[dict[str, float]]]:
        """One action in every env; an episode that ends is replaced by a new one in the same step.

        Raises: ActionError.
        """
        if self._steps is None:
            raise ConfigError("step before reset: call reset first")
        if actions.shape != (self.num_envs,) or actions.is_floating_point() or actions.dtype == torch.bool:
            raise ActionError(f"actions are {actions.dtype} of shape {tuple(actions.shape)}: give ({self.num_envs},)")
        if actions.device.type != self.device.type:
            raise ActionError(f"actions are on {actions.device}, the env on {self.device}: move them there")
        self._advance(actions)
        self._steps += 1
        due = self.options.info_mode != "none" and self._steps % self.options.log_interval == 0
        self.infos = [self.read_infos()] if due else []
        return self.observations, self.rewards, self.terminals, self.truncations, self.infos

    def close(self) -> None:
        """Makes every other call an error."""
        close_for_good(self)

    def state_dict(self, machines: bool = True) -> dict[str, Any]:
        """Everything that the next steps depend on; there are no `machines` to leave out."""
        tensors = {name: tensor.clone() for name, tensor in self._state_tensors().items()}
        return {"tensors": tensors, "steps": self._steps, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues exactly from the state of `state_dict`.

        Raises: StateError if it is from an env with other options, or is damaged.
        """
        for name, tensor in self._state_tensors().items():
            saved = state["tensors"].get(name)
            if not isinstance(saved, torch.Tensor) or (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
                raise StateError(f"saved env state does not fit in {name}: use the options it was saved with")
        walker = state["tensors"]["walker"]
        numbers = all(type(state[name]) is int and abs(state[name]) < 2**62 for name in ("steps", "seed"))
        if not numbers or not 0 <= int(walker.min()) <= int(walker.max()) < self.side**2:
            raise StateError("saved env state is damaged (steps, seed or walker): give what state_dict returned")
        self.reset()
        for name, tensor in self._state_tensors().items():
            tensor.copy_(state["tensors"][name])
        self._steps, self.seed = state["steps"], state["seed"]

    # -- one step on the device --------------------------------------------------------------------------------------

    def _advance(self, actions: torch.Tensor) -> None:
        self._index.copy_(actions)
        torch.lt(self._index, 0, out=self._flag)
        self._bad_actions.logical_or_(self._flag)
        torch.ge(self._index, self.codec.num_actions, out=self._flag)
        self._bad_actions.logical_or_(self._flag)
        self._index.clamp_(0, self.codec.num_actions - 1)
        self._walker.mul_(self.codec.num_actions).add_(self._index)
        torch.index_select(self._next_cell, 0, self._walker, out=self._cell)
        self._walker.copy_(self._cell)
        self._age.add_(1)
        self._look()
        planes = self.observations.unbind(1)
        for older, newer in pairwise(planes):
            older.copy_(newer)
        planes[-1].copy_(self._screen)
        torch.eq(self._distance, 0, out=self.terminals)
        torch.sub(self._previous, self._distance, out=self.rewards)
        options = self.options
        self.rewards.mul_(options.alpha).add_(self.step_cost).add_(self.terminals, alpha=options.goal_bonus)
        self._previous.copy_(self._distance)
        torch.ge(self._age, self.max_steps, out=self.truncations)
        torch.gt(self.truncations, self.terminals, out=self.truncations)  # and not terminal
        torch.logical_or(self.terminals, self.truncations, out=self.final_mask)
        ends = (self.terminals, self.failures, self.truncations)
        self._stats.count(self._index, self.rewards, self._age, *ends, self._locked)
        self.final_observation.copy_(self.observations)
        self._begin_episodes()

    def _begin_episodes(self) -> None:
        """Puts the walker on a cell other than the goal's in every env of final_mask, and draws the episode's first
        picture."""
        cells = self.side * self.side
        start = self._random.sample(self.seed, START, self._episode).remainder_(cells - 1).add_(1 + self.goal)
        torch.where(self.final_mask, start.remainder_(cells), self._walker, out=self._walker)
        self._look()
        mask, picture = self.final_mask[:, None, None, None], self._screen[:, None]
        torch.where(mask, picture, self.observations, out=self.observations)
        torch.where(self.final_mask, self._distance, self._previous, out=self._previous)
        self._episode.add_(self.final_mask)
        torch.logical_not(self.final_mask, out=self._flag)
        self._age.mul_(self._flag)

    def _look(self) -> None:
        """Picture and distance of the walkers' positions."""
        torch.index_select(self._pictures, 0, self._walker, out=self._screen)
        torch.index_select(self._distances, 0, self._walker, out=self._distance)

    # -- the host's side ---------------------------------------------------------------------------------------------

    def read_infos(self) -> dict[str, float]:
        info, shares, out_of_range = self._stats.read(self._distance, self._tau, self._bad_actions.any())
        if out_of_range:
            raise ActionError(f"an action is out of range: {self.codec.name} takes 0..{self.codec.num_actions - 1}")
        if self.options.info_mode == "full":
            info |= {f"action_hist/{name}": share for name, share in zip(self.codec.actions, shares, strict=True)}
        return info

    def statistics(self) -> dict[str, torch.Tensor]:
        """There are no Tasks."""
        return {}

    def reward_ranges(self) -> dict[str, tuple[float, float]]:
        """There are no Tasks."""
        return {}

    def _allocate(self, n: int, shape: tuple[int, int, int]) -> None:
        device = self.device

        def zeros(*sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(sizes, dtype=dtype, device=device)

        # Tables by the walker's cell: where each action leads, the picture, the steps to the goal over the most steps.
        last = self.side - 1
        cells = [(row, column) for row in range(self.side) for column in range(self.side)]
        goal = cells[self.goal]
        moves = [MOVES.get(name, (0, 0)) for name in self.codec.actions]
        targets = [(row + down, column + right) for row, column in cells for down, right in moves]
        inside = [(min(max(row, 0), last), min(max(column, 0), last)) for row, column in targets]
        self._next_cell = torch.tensor([row * self.side + column for row, column in inside], device=device)
        steps = [abs(row - goal[0]) + abs(column - goal[1]) for row, column in cells]
        self._distances = torch.tensor(steps, dtype=torch.float32, device=device) / max(steps)
        board = 3 * torch.eye(len(cells), dtype=torch.uint8, device=device)
        board[:, self.goal].clamp_(min=1)
        picture = board.unflatten(1, (self.side, self.side)).repeat_interleave(CELL, 1).repeat_interleave(CELL, 2)
        if self.layout.kind.form == "grey":
            greys = [area_averaged(LEVELS[cell], *shape[1:]) for cell in picture.cpu().numpy()]
            picture = torch.from_numpy(np.stack(greys)).to(device)
        self._pictures, self._screen = picture, picture.new_zeros((n, *shape[1:]))
        self.observations = zeros(n, *shape, dtype=torch.uint8)
        self.final_observation = torch.zeros_like(self.observations)
        self.rewards = zeros(n, dtype=torch.float32)
        self.terminals, self.truncations = zeros(n, dtype=torch.bool), zeros(n, dtype=torch.bool)
        self.failures = zeros(n, dtype=torch.bool)  # always False: nobody can lose
        self.stage = zeros(n)
        self.final_mask, self.masks = zeros(n, dtype=torch.bool), zeros(n, dtype=torch.bool).fill_(True)
        self._walker, self._cell, self._index, self._episode, self._age = (zeros(n) for _ in range(5))
        self._distance, self._previous = zeros(n, dtype=torch.float32), zeros(n, dtype=torch.float32)
        self._flag, self._bad_actions, self._locked = (zeros(n, dtype=torch.bool) for _ in range(3))
        self._random = CounterRandom(n, device)
        self._tau = torch.full((n,), 1e-6, device=device)  # the goal is distance 0
        self._stats = EpisodeStats(n, self.codec.num_actions, device)

    def _state_tensors(self) -> dict[str, torch.Tensor]:
        names = ("walker", "episode", "age", "distance", "previous", "bad_actions")
        tensors = {name: getattr(self, f"_{name}") for name in names}
        return {**tensors, **self._stats.tensors(), "observations": self.observations}


ToyEnv.__signature__ = signature(ToyEnv.__init__, OPTIONS)  # pyright: ignore[reportAttributeAccessIssue]
