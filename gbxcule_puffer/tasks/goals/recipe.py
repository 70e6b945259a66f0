"""Goals made by playing named actions on a ROM: a start snapshot and the pictures at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gbxcule_puffer import __version__
from gbxcule_puffer.emulator.saves.pyboy_color import shades_of
from gbxcule_puffer.emulator.saves.state_files import load_state_file
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.errors import ConfigError, GoalError
from gbxcule_puffer.files import Kind, StrPath, make_folder, read_object
from gbxcule_puffer.layout import find_rom
from gbxcule_puffer.pictures import read_colors, read_shades
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, STEPS, Schedule, all_buttons_of, are_names, get_codec, is_steps
from gbxcule_puffer.tasks.goals.distance import distances_to
from gbxcule_puffer.tasks.goals.template import FORMAT, K_CONSECUTIVE, GoalTemplate, in_color, pictures_of
from gbxcule_puffer.tasks.goals.traces import Trace, picture_hash
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import observation_kind, picture_kind

if TYPE_CHECKING:
    from gbxcule_puffer.emulator import Emulator, EmulatorLike

SETTLE_STEPS = 8
# The largest tau of a goal: a character who turns on the spot (about 0.01) still counts, a step aside does not.
LARGEST_TAU = 0.05
STAGE_FILE = Kind("stage", ConfigError, "give a stage file")


@dataclass(frozen=True)
class TaskFiles:
    """The files that an environment needs for a goal."""

    rom: Path
    start_state: Path
    goal_dir: Path


@dataclass(frozen=True)
class GoalSettings:
    """The options of the env that a goal is for, as in EnvOptions, and the device that it is recorded on.

    k_consecutive, max_steps: required by the goal, and the limit of an attempt, unless the env's options give others;
    None means K_CONSECUTIVE and no own limit.

    Raises: ConfigError.
    """

    obs: str = "shades"
    stack_k: int = 1
    action_codec: str = DEFAULT_CODEC
    frames_per_step: int = Schedule.frames_per_step
    release_after_frames: int = Schedule.release_after_frames
    k_consecutive: int | None = None
    max_steps: int | None = None
    header: str = "strict"
    model: str = "dmg"
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name, value in (("k_consecutive", self.k_consecutive), ("max_steps", self.max_steps)):
            if value is not None and not is_steps(value):
                raise ConfigError(f"{name} {value!r:.40} must be a whole number, {STEPS}")
        get_codec(self.action_codec)
        ObservationLayout(observation_kind(self.obs), self.stack_k)
        Schedule(self.frames_per_step, self.release_after_frames)


@dataclass(frozen=True)
class GoalRecipe:
    """The instructions for making a goal: `start_actions` from `start_state` (or post-boot), then the solution.

    more_ways: other solutions from the same start, whose ends also count as the goal; traces: the recordings of the
    solutions, by their files, which must replay as recorded; png: screenshots that are the goal, instead of a solution.
    Actions are named; a name presses the same buttons in each codec.
    """

    rom: StrPath
    solve_actions: Sequence[str]
    start_actions: Sequence[str] = ()
    start_state: StrPath | Snapshot | None = None
    more_ways: Sequence[Sequence[str]] = ()
    traces: Mapping[StrPath, Trace] = field(default_factory=dict)
    png: Sequence[StrPath] = ()
    settings: GoalSettings = GoalSettings()

    @classmethod
    def load(cls, path: StrPath, settings: GoalSettings | None = None) -> GoalRecipe:
        """Reads a stage file: JSON with rom (a path beside or above the file), start_actions, solve_actions and
        optionally max_steps, which `settings` may replace.

        Raises: ConfigError for an unreadable or incomplete file.
        """
        spec, settings = read_object(path, STAGE_FILE), settings or GoalSettings()
        try:
            rom, start, solve = spec["rom"], spec["start_actions"], spec["solve_actions"]
        except KeyError as error:
            raise STAGE_FILE.bad(path, f"lacks {error}; it has to have rom, start_actions and solve_actions") from None
        if not isinstance(rom, str) or not (are_names(start) and are_names(solve)):
            raise STAGE_FILE.bad(
                path, "is damaged (rom has to be text, start_actions and solve_actions lists of names)"
            )
        beside, above = Path(path).parent / rom, Path(path).parent.parent / rom
        rom = beside if os.path.exists(beside) else above  # which also takes names that no file can have
        if settings.max_steps is None:
            settings = replace(settings, max_steps=spec.get("max_steps"))
        return cls(rom, solve, start, settings=settings)

    def make(self, out: StrPath) -> TaskFiles:
        """Plays the actions and writes out/start.state and out/goal.

        Raises: RomError, StateError, ActionError, ConfigError or GoalError, before anything is written.
        """
        settings = self.settings
        start, solve = all_buttons_of(self.start_actions), all_buttons_of(self.solve_actions)
        emulator = self._emulator()
        for source, trace in self.traces.items():
            _check_trace(emulator, source, trace, start)
        meta = self._meta(emulator, Path(out))
        shape = picture_kind(settings.obs).screen_shape
        snapshot, goal = record_goal(
            emulator,
            start,
            solve,
            meta,
            more_ways=[all_buttons_of(way) for way in self.more_ways],
            pictures=[_read_picture(path, shape, meta) for path in self.png] or None,
            k_consecutive=settings.k_consecutive or K_CONSECUTIVE,
        )
        out = make_folder(out)
        snapshot.to_file(out / "start.state")
        goal.save(out / "goal")
        return TaskFiles(Path(self.rom), out / "start.state", out / "goal")

    def _emulator(self) -> Emulator:
        """An emulator at the start state, or post-boot."""
        from gbxcule_puffer.emulator import Emulator

        settings = self.settings
        emulator = Emulator(
            self.rom,
            device=settings.device,
            screen=picture_kind(settings.obs).screen,
            frames_per_step=settings.frames_per_step,
            release_after_frames=settings.release_after_frames,
            header=settings.header,
            model=settings.model,
        )
        if isinstance(self.start_state, Snapshot):
            emulator.load(self.start_state)
        elif self.start_state is not None:
            emulator.load(load_state_file(self.start_state, emulator.cartridge))
        return emulator

    def _meta(self, emulator: Emulator, out: Path) -> dict[str, Any]:
        """The contents of the goal's META_FILE except the measured values."""
        settings = self.settings
        return {
            "rom_sha256": emulator.rom_sha256,
            "action_codec": get_codec(settings.action_codec).name,
            "frames_per_step": settings.frames_per_step,
            "release_after_frames": settings.release_after_frames,
            "stack_k": settings.stack_k,
            "obs": settings.obs,
            **({} if settings.header == "strict" else {"header": settings.header}),
            **({} if emulator.model == "dmg" else {"model": emulator.model}),
            **({} if settings.max_steps is None else {"max_steps": settings.max_steps}),
            "solve_actions": list(self.solve_actions),
            "more_ways": [list(way) for way in self.more_ways],
            "rom_file": os.path.relpath(find_rom(self.rom), out / "goal"),
            "versions": {"gbxcule_puffer": __version__, "torch": torch.__version__, "numpy": np.__version__},
        }


def record_goal(
    emulator: EmulatorLike,
    start_buttons: Sequence[int],
    solve_buttons: Sequence[int],
    meta: Mapping[str, object],
    *,
    more_ways: Sequence[Sequence[int]] = (),
    pictures: Sequence[np.ndarray] | None = None,
    k_consecutive: int = K_CONSECUTIVE,
) -> tuple[Snapshot, GoalTemplate]:
    """Plays `start_buttons`, takes the start snapshot, plays `solve_buttons` and takes the goal's pictures. Then does
    the same from the start for each of `more_ways`, whose ends also count as the goal.

    The pictures are the distinct pictures at the end and in the next SETTLE_STEPS steps without a button, so that an
    idle animation counts as the goal in all its phases. `tau` is half of the smallest distance on a path, at most
    LARGEST_TAU. If `pictures` are given, they are the goal, and nothing is played after the start.

    `emulator` has one env in the state to play from; `meta` has CHECKED_FIELDS.

    Raises: GoalError if a path to the goal passes one of the goal's own pictures, or starts at it.
    """

    def play(button: int) -> np.ndarray:
        emulator.step(torch.full((1,), button, dtype=torch.uint8, device=emulator.device))
        return picture()

    def picture() -> np.ndarray:
        return pictures_of(emulator, in_color(meta))[0].cpu().numpy().copy()

    for button in start_buttons:
        play(button)
    snapshot = emulator.save(0)
    ways, settled = [], []
    for buttons in (solve_buttons, *more_ways):
        emulator.load(snapshot)
        ways.append([picture(), *(play(button) for button in buttons)])
        if pictures is None:
            settled += [ways[-1][-1], *(play(0) for _ in range(SETTLE_STEPS))]
    frames = distinct(settled if pictures is None else pictures)

    measured = [distances_to(frames, np.stack(way), emulator.device).tolist() for way in ways]
    nearest = 1.0
    for distances in measured:
        end = len(distances)
        while end and distances[end - 1] == 0:
            end -= 1
        if not end or min(distances[:end]) == 0:
            first = distances.index(0)
            if not first:
                other = "goal" if pictures is None else "picture"
                raise GoalError(f"the goal's picture shows at the start: give another {other}, or another start")
            raise GoalError(
                f"the goal's picture is met after {first} of {len(distances) - 1} actions, then another: "
                "let them end there, or where the picture is new"
            )
        nearest = min(nearest, *distances[:end])
    calibration = {"distances": measured[0], "start_distance": measured[0][0], "nearest": nearest}
    tau = {"tau": min(LARGEST_TAU, nearest / 2), "k_consecutive": k_consecutive, "calibration": calibration}
    return snapshot, GoalTemplate(frames, {"format": FORMAT, **meta, **tau})


def distinct(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """The pictures without repetitions, in the order of their first occurrence, stacked."""
    return np.stack([p for i, p in enumerate(pictures) if not any((p == other).all() for other in pictures[:i])])


def _read_picture(path: StrPath, shape: tuple[int, int], meta: Mapping[str, object]) -> np.ndarray:
    """A screenshot as a goal with this `meta` has it.

    Raises: ConfigError.
    """
    if meta.get("model") != "cgb":
        return read_shades(path, shape)
    colors = read_colors(path, shape)
    return colors if in_color(meta) else shades_of(colors)


def _check_trace(emulator: Emulator, source: StrPath, trace: Trace, start_buttons: Sequence[int]) -> None:
    """Replays a trace from the emulator's state after `start_buttons`, and restores that state.

    Raises: ConfigError if the trace is of another ROM, schedule or start, or does not end at its picture.
    """
    trace.check(source, emulator.rom_sha256, emulator.frames_per_step, emulator.release_after_frames)
    before = emulator.save(0)

    def play(buttons: Sequence[int]) -> str:
        for button in buttons:
            emulator.step(torch.full((1,), button, dtype=torch.uint8, device=emulator.device))
        return picture_hash(emulator.screen[0].cpu().numpy())

    if play(start_buttons) != trace.start_picture:
        raise ConfigError(f"trace {source}: was recorded from another start: give the state it began at")
    if play(all_buttons_of(trace.actions)) != trace.end_picture:
        raise ConfigError(f"trace {source}: does not end at the picture it was recorded with: record it again")
    emulator.load(before)
