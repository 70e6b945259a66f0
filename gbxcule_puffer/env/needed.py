"""The kernels of an env's steps beside the emulator's, to be compiled at the same time."""

from __future__ import annotations

from collections.abc import Iterable

from gbxcule_puffer.env.env_task import EnvTask
from gbxcule_puffer.env.step_end import kernels as step_end
from gbxcule_puffer.kernel_objects import Needed, prepare
from gbxcule_puffer.tasks.goals.distance import kernel_distance

NAMES = {
    "full_step": "ends of steps",
    "end": "ends of steps with Tasks",
    "count": "counts of episodes",
    "start": "starts of episodes",
    "start_restored": "starts of episodes with objects",
}
AT_ONCE, WITH_TASKS, OF_OBJECTS = ("full_step", "start"), ("end", "count", "start"), ("end", "count", "start_restored")
DISTANCE = Needed("distances to goals", kernel_distance)


def kernels_of_ends(sequences: Iterable[str], in_color: bool = False) -> list[Needed]:
    """The kernels of sequences of a step's end."""
    return [Needed(NAMES[name], step_end.kernel(name, in_color)) for name in sequences]


def prepare_env(task: EnvTask, device: str) -> None:
    """Compiles the kernels that an env's first steps launch after the emulator's, where they are not compiled yet."""
    kind = task.layout.kind
    sequences = OF_OBJECTS if not kind.is_picture else WITH_TASKS if task.tasks else AT_ONCE
    has_goal = any(stage.goal is not None for stage in task.stages)
    prepare(kernels_of_ends(sequences, kind.in_color) + [DISTANCE] * has_goal, device)
