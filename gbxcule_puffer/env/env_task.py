"""The task of an env: everything in its options that defines the task, opened and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.env.curriculum.starts import check_curriculum
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import Schedule, allowed_actions, get_codec
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.observers import make_observers, vectors_of
from gbxcule_puffer.tasks.observe.pictures import observation_kind
from gbxcule_puffer.tasks.ram import Symbols
from gbxcule_puffer.tasks.ram.addresses import has_milestones, parse_visit_key
from gbxcule_puffer.tasks.ram.position import find_position
from gbxcule_puffer.tasks.ram.until import parse_until
from gbxcule_puffer.tasks.stages.open import open_stages
from gbxcule_puffer.tasks.task import Task
from gbxcule_puffer.tasks.task_code import make_task


class EnvTask:
    """Actions, observations, stages and Tasks of an env with `options` on a ROM.

    config: the options that observations, goals and checkpoints depend on; tasks: all Tasks in the order in which their
    rewards are added; task: the Task of the option `task`; position: the player's position in RAM, None if unknown.

    Raises: ConfigError, StateError or GoalError for a file that is damaged, or does not fit the ROM or the options.
    """

    def __init__(self, cartridge: Cartridge, options: EnvOptions) -> None:
        self.codec = get_codec(options.action_codec)
        self.allowed = allowed_actions(self.codec, options.blocked_actions)
        self.schedule = Schedule(options.frames_per_step, options.release_after_frames)
        self.symbols = Symbols.find_files(options.symbols, cartridge.path)
        self.until = parse_until(options.until, self.schedule, self.symbols)
        self.visit_key = parse_visit_key(options.visit_key, self.symbols) if counts_visits(options) else "picture"
        self.task = None if options.task is None else make_task(options.task)
        self.position = find_position(options.position, self.task, cartridge.sha256, self.symbols)
        observers = make_observers(options, self.symbols, self.position, self.codec.num_actions)
        given = [] if self.task is None else [self.task]
        vectors = vectors_of([*observers, *given])
        self.tasks: list[Task] = [*given, *observers]
        self.layout = ObservationLayout(observation_kind(options.obs), options.stack_k, vectors)
        if not self.layout.kind.is_picture and (options.goal_dir or options.stages):
            raise ConfigError(f"obs {options.obs!r} has no picture to compare with a goal's: give another, or no goal")
        self.config: Mapping[str, Any] = {
            "rom_sha256": cartridge.sha256,
            "action_codec": self.codec.name,
            "frames_per_step": self.schedule.frames_per_step,
            "release_after_frames": self.schedule.release_after_frames,
            "until": options.until,
            "stack_k": options.stack_k,
            "obs": options.obs,
            **({"vectors": vectors} if vectors else {}),
            **({"model": "cgb"} if cartridge.model == "cgb" else {}),
        }
        self.stages = open_stages(cartridge, self.config, self.layout.kind.screen_shape, options)
        check_curriculum(options.curriculum, len(self.stages), options.archive_slots)


def counts_visits(options: EnvOptions) -> bool:
    """True if a bonus or an archive needs the number of visits of each cell."""
    return bool(options.visit_bonus or options.archive_slots)


def follows_milestones(options: EnvOptions) -> bool:
    """True if an option needs the milestones that the envs have reached.

    Raises: ConfigError for a swarm, or for weights of states, without states.
    """
    if options.swarm_steps is not None and not options.milestone_slots:
        raise ConfigError("swarm_steps needs states to go on from: give milestone_slots, such as 16")
    if options.archive_behind < 1 and not options.archive_slots:
        raise ConfigError("archive_behind is about saved states: give archive_slots, such as 4096")
    by_key = counts_visits(options) and has_milestones(options.visit_key)
    return bool(options.milestone_slots or by_key) or options.milestone_steps is not None or options.archive_behind < 1
