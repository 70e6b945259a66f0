"""The tensors of a step, declared once. The kernels' struct, allocation, zeroing and the saved state follow from this
list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import warp as wp

from gbxcule_puffer.emulator.pool import Arrays
from gbxcule_puffer.env.options import WEIGHTS

MOST_DISTANCE = 1.001  # 1, rounded as float32 may be


@dataclass(frozen=True)
class Field:
    """A tensor (num_envs,). `saved`: the next steps depend on it, so a saved state has it; `in_kernel`: a member of
    Episode; `initial`: the value before the first episode; `low`, `high`: the values that a saved state may have (a
    text is a number of the env's, and the value stays below it)."""

    name: str
    dtype: torch.dtype
    meaning: str
    saved: bool = False
    in_kernel: bool = True
    initial: int = 0
    low: float = 0
    high: float | str = 2**31 - 1


FIELDS = (
    # The results of a step.
    Field("rewards", torch.float32, "the step's reward"),
    Field("terminals", torch.bool, "the episode ended, not by a limit: at its goal, or by a Task"),
    Field("truncations", torch.bool, "a limit, or a lock, ended the episode"),
    Field("ended", torch.bool, "the episode ended, and another one began"),
    Field("failures", torch.bool, "a Task ended the episode for good, as no success"),
    # The action.
    Field("action", torch.int64, "the action taken, sticky ones included", in_kernel=False),
    Field("last_action", torch.int64, "the action of the step before", saved=True, in_kernel=False, high="actions"),
    Field("buttons", torch.uint8, "the buttons of the action", in_kernel=False),
    Field("bad_action", torch.bool, "an action was out of range since the last read", saved=True, in_kernel=False),
    Field("clock", torch.int64, "steps since the reset", saved=True, in_kernel=False, high=2**62),
    # The episode.
    Field("episode", torch.int64, "its number", saved=True, high=2**62),
    Field("age", torch.int32, "its steps so far", saved=True),
    Field("limit", torch.int32, "the steps after which it is truncated", saved=True),
    Field("length", torch.int32, "age at the end of the last step, before another episode began"),
    Field("was_locked", torch.bool, "the Game Boy was locked at the end of the last step"),
    # The goal.
    Field("stage", torch.int64, "the stage that it is at", saved=True, high="stages"),
    Field("stage_before", torch.int64, "the stage that the last step was made at"),
    Field("distance", torch.float32, "distance of the last step's picture to the goal", saved=True, high=MOST_DISTANCE),
    Field(
        "previous", torch.float32, "the distance that the next step's is compared with", saved=True, high=MOST_DISTANCE
    ),
    Field("hold", torch.int32, "steps in a row that the distance has been below tau", saved=True),
    Field("reached", torch.bool, "the last step reached the goal of stage_before"),
    # Where it began.
    Field("slots", torch.int32, "the pool's slot that the episode began at", saved=True, high="slots"),
    Field("replaced", torch.bool, "the archive has put another state into that slot since", saved=True, high=1),
    Field("sampled_slot", torch.int32, "the slot that the next episode begins at"),
    Field("from_start", torch.bool, "the last step's episode began at a given start, not in the archive", initial=1),
)

# Members of Episode that all envs share, or that have more than one entry for an env; pictures as words of four bytes.
PICTURES = {
    "screen": wp.array2d(dtype=wp.int32),
    "observations": wp.array2d(dtype=wp.int32),
    "final_observation": wp.array2d(dtype=wp.int32),
    "stack_k": int,
    "form": int,  # index in FORMS
    "rows": int,  # of a picture in an observation, as the next
    "columns": int,
    "in_place": int,
    "colors": wp.array2d(dtype=wp.int32),  # of a Game Boy Color, two pixels a word; only where they are observed
    "has_colors": int,
}
GOALS = {
    "goal_frames": wp.array2d(dtype=wp.int32),  # a row for each picture of all goals
    "goal_first": wp.array(dtype=wp.int32),  # of each stage's goal, and the end
    "taus": wp.array(dtype=wp.float32),  # of each stage, as the next two
    "ks": wp.array(dtype=wp.int32),
    "limits": wp.array(dtype=wp.int32),
    "has_goal": int,
    "goal_in_color": int,
    "last_stage": int,
    "chain": int,
    "scale": float,
    **dict.fromkeys(WEIGHTS, float),
}
SLOTS = {
    "given": int,
    "archive_steps": int,  # after which an episode from the archive is truncated
    "slot_stage": wp.array(dtype=wp.int64),  # of each slot, as the next two
    "slot_distance": wp.array(dtype=wp.float32),
    "slot_counts": wp.array2d(dtype=wp.int64),
}
MACHINES = {
    "locked": wp.array(dtype=wp.int32),
    "machines": Arrays,
    "pool": Arrays,
}
_MEMBERS = {field.name: wp.array(dtype=wp.dtype_from_torch(field.dtype)) for field in FIELDS if field.in_kernel}
_MEMBERS |= PICTURES | GOALS | SLOTS | MACHINES

Episode = wp.struct(type("Episode", (), {"__annotations__": _MEMBERS, "__module__": __name__}))
"""What the kernels of a step's end work with (env/step_end/parts.py): FIELDS that are in_kernel, PICTURES
(tasks/observe/stack.py), GOALS (score.GoalScore), SLOTS (curriculum.starts.Starts), MACHINES (emulator.pool)."""


class EnvTensors:
    """FIELDS as attributes: `given` tensors, or allocated here."""

    def __init__(self, num_envs: int, device: torch.device, **given: torch.Tensor) -> None:
        for field in FIELDS:
            own = torch.full((num_envs,), field.initial, dtype=field.dtype, device=device)
            setattr(self, field.name, given.get(field.name, own))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> torch.Tensor: ...

    def clear(self) -> None:
        """Sets all tensors to their initial values."""
        for field in FIELDS:
            getattr(self, field.name).fill_(field.initial)

    def saved(self) -> dict[str, torch.Tensor]:
        """Those that a saved state holds."""
        return {field.name: getattr(self, field.name) for field in FIELDS if field.saved}

    def members(self) -> dict[str, torch.Tensor]:
        """Those that are members of Episode."""
        return {field.name: getattr(self, field.name) for field in FIELDS if field.in_kernel}
