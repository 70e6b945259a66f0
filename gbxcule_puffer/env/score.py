"""The score of a step, only from the picture: the tensors that env/step_end/parts.py uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gbxcule_puffer.emulator.launch import words
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.env.fields import EnvTensors
from gbxcule_puffer.env.options import STEP_COST, WEIGHTS, EnvOptions
from gbxcule_puffer.tasks.actions import MOST_STEPS
from gbxcule_puffer.tasks.goals.distance import GoalDistance
from gbxcule_puffer.tasks.goals.template import pictures_of
from gbxcule_puffer.tasks.stages.open import Stage


class GoalScore:
    """Distances, rewards and ends for `num_envs` envs, each at its own stage; allocates only here.

    reward = step_cost + alpha * (previous distance - distance) + goal_bonus * reached, where reached = distance < tau
    for k_consecutive steps of the env's stage. Reaching the goal ends the episode. With `chain`, an earlier stage's
    goal leads to the next stage in the same episode; its time limit is the sum of the limits left at its start. A
    locked Game Boy is truncated.

    `envs`: the env's tensors (env/fields.py), of which it uses stage and distance.
    """

    def __init__(self, task: Sequence[Stage], options: EnvOptions, envs: EnvTensors) -> None:
        num_envs, device = len(envs.stage), envs.stage.device
        self.envs = envs
        frames = [stage.goal.frames for stage in task if stage.goal is not None]
        self.distances = GoalDistance(frames, num_envs, device) if frames else None
        limits = [stage.max_steps for stage in task]
        if options.chain:
            limits = [min(sum(limits[i:]), MOST_STEPS) for i in range(len(limits))]
        self.members: dict[str, Any] = {
            "taus": torch.tensor([stage.tau for stage in task], dtype=torch.float32, device=device),
            "ks": torch.tensor([stage.k_consecutive for stage in task], dtype=torch.int32, device=device),
            "limits": torch.tensor(limits, dtype=torch.int32, device=device),
            "has_goal": int(self.distances is not None),
            "goal_in_color": int(self.distances is not None and self.distances.in_color),
            "last_stage": len(task) - 1,
            "chain": int(options.chain),
            **{name: getattr(options, name) for name in WEIGHTS},
        }
        if options.step_cost is None:
            self.members["step_cost"] = STEP_COST
        if self.distances is not None:
            goal = self.distances
            self.members |= {"goal_frames": words(goal.frames), "goal_first": goal.first, "scale": goal.scale}

    def measure(self, emulator: EmulatorLike) -> None:
        """Fills `distance` from the emulator's pictures; it stays 0 without a goal."""
        if self.distances is not None:
            picture = pictures_of(emulator, self.distances.in_color)
            self.distances.measure(picture, self.envs.distance, self.envs.stage)
