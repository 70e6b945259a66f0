"""The stages of an environment, opened: each has start states, a goal and a time limit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.saves.state_files import load_state_file, start_files
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.tasks.goals.template import MAX_STEPS, GoalTemplate
from gbxcule_puffer.tasks.stages.list import load_stages


@dataclass
class Stage:
    """The start states of episodes (post-boot if empty), the goal that ends them, and the time limit in steps."""

    name: str
    starts: list[Snapshot]
    goal: GoalTemplate | None
    tau: float
    k_consecutive: int
    max_steps: int


class StageOptions(Protocol):
    """The options of the env that name its stages (EnvOptions)."""

    @property
    def start_state(self) -> StrPath | Sequence[StrPath] | None: ...

    @property
    def goal_dir(self) -> StrPath | None: ...

    @property
    def stages(self) -> StrPath | None: ...

    @property
    def max_steps(self) -> int | None: ...

    @property
    def tau(self) -> float | None: ...

    @property
    def k_consecutive(self) -> int | None: ...


def open_stages(
    cartridge: Cartridge,
    config: Mapping[str, object],
    shape: tuple[int, int],
    options: StageOptions,
) -> list[Stage]:
    """The stages of a stages file, or the one stage of `start_state` and `goal_dir`, checked against the environment's
    `config` and picture `shape`. `max_steps`, `tau` and `k_consecutive` replace the task's own values if given.

    Raises: ConfigError, StateError or GoalError.
    """
    start_state, tau, k_consecutive = options.start_state, options.tau, options.k_consecutive
    if options.stages is not None:
        if start_state is not None or options.goal_dir is not None:
            raise ConfigError("stages has start states and goals of its own: leave start_state and goal_dir out")
        parts = [
            (s.name, [s.start_state], s.goal_dir, s.max_steps) for s in load_stages(options.stages, cartridge.sha256)
        ]
    else:
        paths = [start_state] if isinstance(start_state, str | os.PathLike) else list(start_state or [])
        parts = [("task", paths, options.goal_dir, None)]
    task = []
    for name, paths, folder, limit in parts:
        snapshots = [load_state_file(file, cartridge) for path in paths for file in start_files(path)]
        goal = None if folder is None else GoalTemplate.load(folder)
        if goal is not None:
            goal.check(config, shape)
        meta = goal.meta if goal is not None else {"tau": 0.0, "k_consecutive": 1}
        own_tau = float(meta["tau"] if tau is None else tau)
        own_k = int(meta["k_consecutive"] if k_consecutive is None else k_consecutive)
        own_limit = options.max_steps or limit or meta.get("max_steps", MAX_STEPS)
        task.append(Stage(name, snapshots, goal, own_tau, own_k, own_limit))
    return task
