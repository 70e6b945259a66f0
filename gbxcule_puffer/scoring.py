"""What a step is worth and whether it ends the episode, from the picture alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gbxcule_puffer.goals import GoalDistance
from gbxcule_puffer.task import Stage


class GoalScore:
    """Distances, rewards and ends for `num_envs` envs, each at a stage of its own; allocates only here.

    reward = step_cost + alpha * (previous distance - distance) + goal_bonus * reached, where reached = distance < tau
    for k_consecutive steps of the env's stage. Reaching the goal ends the episode; with `chain` an earlier stage's goal
    leads to the next stage in the same episode, whose time limit is the sum of those left at its start.

    stage (num_envs,) int64: the stage each env is at; stage_before: that of the last step, and reached (num_envs,) bool
    whether that step reached its goal; distance (num_envs,) float32: of the picture the last step led to.
    """

    def __init__(
        self,
        task: Sequence[Stage],
        num_envs: int,
        device: torch.device,
        *,
        step_cost: float,
        alpha: float,
        goal_bonus: float,
        chain: bool,
    ) -> None:
        self.step_cost, self.alpha, self.goal_bonus = step_cost, alpha, goal_bonus
        self.last_stage, self.chain = len(task) - 1, chain and len(task) > 1
        frames = [stage.goal.frames for stage in task if stage.goal is not None]
        self.distances = GoalDistance(frames, num_envs, device) if frames else None
        limits = [stage.max_steps for stage in task]
        if chain:
            limits = [sum(limits[i:]) for i in range(len(limits))]
        self._limits = torch.tensor(limits, dtype=torch.int32, device=device)
        self._taus = torch.tensor([stage.tau for stage in task], dtype=torch.float32, device=device)
        self._ks = torch.tensor([stage.k_consecutive for stage in task], dtype=torch.int32, device=device)

        def zeros(dtype: torch.dtype) -> torch.Tensor:
            return torch.zeros(num_envs, dtype=dtype, device=device)

        self.stage, self.stage_before, self.age = zeros(torch.int64), zeros(torch.int64), zeros(torch.int32)
        self.distance, self.previous = zeros(torch.float32), zeros(torch.float32)
        self.hold, self.limit = zeros(torch.int32), zeros(torch.int32)
        self.reached = zeros(torch.bool)
        self._flag, self._tau, self._k = zeros(torch.bool), zeros(torch.float32), zeros(torch.int32)
        self._stage, self._start, self._limit = zeros(torch.int64), zeros(torch.float32), zeros(torch.int32)

    def score(
        self,
        screen: torch.Tensor,
        locked: torch.Tensor,
        rewards: torch.Tensor,
        terminals: torch.Tensor,
        truncations: torch.Tensor,
    ) -> None:
        """Fills rewards, terminals and truncations from the pictures just drawn; `locked` envs are truncated."""
        self.age.add_(1)
        self.stage_before.copy_(self.stage)
        if self.distances is not None:
            torch.index_select(self._taus, 0, self.stage, out=self._tau)
            torch.index_select(self._ks, 0, self.stage, out=self._k)
            self.measure(screen)
            torch.lt(self.distance, self._tau, out=self._flag)
            self.hold.add_(1).mul_(self._flag)
            torch.ge(self.hold, self._k, out=self.reached)
        # Products and sums apart: a fused multiply-add would round differently on the GPU.
        torch.sub(self.previous, self.distance, out=rewards)
        rewards.mul_(self.alpha).add_(self.step_cost).add_(self.reached, alpha=self.goal_bonus)
        self.previous.copy_(self.distance)
        terminals.copy_(self.reached)
        if self.chain:
            self._advance(screen, terminals)
        torch.ge(self.age, self.limit, out=truncations)
        truncations.logical_or_(locked)
        torch.gt(truncations, terminals, out=truncations)  # and not terminal

    def measure(self, screen: torch.Tensor) -> None:
        """Fills `distance` from the pictures; it stays 0 without a goal."""
        if self.distances is not None:
            self.distances.measure(screen, self.distance, self.stage)

    def begin(self, mask: torch.Tensor, stages: torch.Tensor, distances: torch.Tensor, slots: torch.Tensor) -> None:
        """Starts episodes of the envs in `mask` at pool slot slots[env]; `stages` and `distances` are of the slots."""
        torch.index_select(stages, 0, slots, out=self._stage)
        torch.index_select(distances, 0, slots, out=self._start)
        torch.index_select(self._limits, 0, self._stage, out=self._limit)
        torch.where(mask, self._stage, self.stage, out=self.stage)
        torch.where(mask, self._start, self.previous, out=self.previous)
        torch.where(mask, self._limit, self.limit, out=self.limit)
        torch.logical_not(mask, out=self._flag)
        self.age.mul_(self._flag)
        self.hold.mul_(self._flag)

    def tensors(self) -> dict[str, torch.Tensor]:
        """What a saved state has to hold."""
        names = ("stage", "age", "hold", "limit", "distance", "previous")
        return {name: getattr(self, name) for name in names}

    def _advance(self, screen: torch.Tensor, terminals: torch.Tensor) -> None:
        """Takes the envs that reached a goal other than the last to the next stage, in the same episode."""
        assert self.distances is not None
        torch.lt(self.stage, self.last_stage, out=self._flag)
        self._flag.logical_and_(self.reached)
        torch.gt(terminals, self._flag, out=terminals)
        self.stage.add_(self._flag)
        self.distances.measure(screen, self.previous, self.stage, self._flag)
        torch.logical_not(self._flag, out=self._flag)
        self.hold.mul_(self._flag)
