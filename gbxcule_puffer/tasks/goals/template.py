"""A goal as a folder: the pictures to reach, and the settings that they were made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gbxcule_puffer.errors import GoalError
from gbxcule_puffer.files import Kind, StrPath, new_folder, read_array, read_object, write_json
from gbxcule_puffer.tasks.actions import STEPS, are_names, is_steps
from gbxcule_puffer.tasks.observe.pictures import picture_kind

if TYPE_CHECKING:
    from gbxcule_puffer.emulator import EmulatorLike


FORMAT = 1
FRAMES_FILE = "goal_template.npy"
META_FILE = "goal_template.meta.json"
GOAL_FILE = Kind("goal", GoalError, "make it with `puffer stage` or `puffer goal make`")
MAX_SIZE = 64 * 2**20  # bytes of a goal's pictures, thousands of them
# Fields that must be equal in the goal and in the environment; otherwise distances mean something else. Only the newest
# picture is compared: a goal fits any stack_k, and its file only records one.
CHECKED_FIELDS = ("rom_sha256", "action_codec", "frames_per_step", "release_after_frames", "obs")
REQUIRED_FIELDS = ("format", *CHECKED_FIELDS, "tau", "k_consecutive")
VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("rom_sha256", "action_codec", "obs"), ("text", lambda value: isinstance(value, str))),
    **dict.fromkeys(
        ("frames_per_step", "release_after_frames", "stack_k", "k_consecutive", "max_steps"),
        (f"a whole number, {STEPS}", is_steps),
    ),
    "tau": ("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
    "solve_actions": ("a list of names", are_names),
    "more_ways": ("lists of names", lambda value: isinstance(value, list) and all(map(are_names, value))),
    "calibration": (
        "an object, its start_distance a number",
        lambda value: isinstance(value, dict) and _is_number(value.get("start_distance", 1.0)),
    ),
}
"""By field, what its value in META_FILE is."""
K_CONSECUTIVE = 4  # of a goal without its own
MAX_STEPS = 128  # of a task without its own


@dataclass(frozen=True)
class GoalTemplate:
    """Pictures that count as the goal: `frames` [frame, row, column], uint8 shades 0..3, or uint16 of Emulator.colors
    if the environment observes a Game Boy Color in colour. `meta` as in META_FILE: REQUIRED_FIELDS; `model` if it is
    'cgb'; and `max_steps`, the steps after which an attempt has failed, if the task has a limit."""

    frames: np.ndarray
    meta: dict[str, Any]

    def save(self, folder: StrPath) -> None:
        """Writes the goal's folder, which may replace another goal's; a reader sees the whole goal or none of it.

        Raises: ConfigError if the folder contains anything else, StorageError.
        """
        with new_folder(folder, replaces=(FRAMES_FILE, META_FILE)) as part:
            np.save(part / FRAMES_FILE, self.frames)
            write_json(part / META_FILE, self.meta)

    @classmethod
    def load(cls, folder: StrPath) -> GoalTemplate:
        """Reads a goal's folder.

        Raises: GoalError for a missing or damaged file; make the goal again with `puffer goal make` or `puffer stage`.
        """
        folder = Path(folder)
        for name in (FRAMES_FILE, META_FILE):
            if not (folder / name).exists():
                if (folder / "goal" / name).exists():  # what `puffer goal make --out` wrote
                    raise GoalError(f"goal {folder}: has no {name}: give {folder / 'goal'}")
                raise GOAL_FILE.bad(folder, f"has no {name}")
        meta = read_object(folder / META_FILE, GOAL_FILE)
        if missing := [name for name in REQUIRED_FIELDS if name not in meta]:
            raise GOAL_FILE.bad(folder, f"lacks {', '.join(missing)} in {META_FILE}")
        if meta["format"] != FORMAT:
            raise GOAL_FILE.bad(folder, f"has format {meta['format']!r}, not {FORMAT}")
        for name, (wanted, holds) in VALUES.items():
            if name in meta and not holds(meta[name]):
                raise GOAL_FILE.bad(folder, f"{name} {meta[name]!r:.40} in {META_FILE} must be {wanted}")
        dtype, most, what = (np.uint16, 2**15 - 1, "colours") if in_color(meta) else (np.uint8, 3, "shades")
        frames = read_array(folder / FRAMES_FILE, GOAL_FILE, dtype, 3, MAX_SIZE)
        if not frames.size or frames.max() > most:
            raise GOAL_FILE.bad(folder, f"{FRAMES_FILE} has no pictures, or others than of {what} 0..{most}")
        return cls(frames, meta)

    def check(self, config: Mapping[str, object], shape: tuple[int, int]) -> None:
        """Compares the goal's settings with the environment's `config` and picture `shape`.

        Raises: GoalError that names the field that differs and both values.
        """
        for name in (*CHECKED_FIELDS, "model"):
            own, wanted = (fields.get(name, "dmg") for fields in (self.meta, config))
            if own != wanted:
                raise GoalError(
                    f"goal was made for {name} {own!r}, the environment has {wanted!r}: "
                    "change the environment or make the goal again"
                )
        if self.frames.shape[1:] != shape:
            raise GoalError(
                f"goal pictures are {self.frames.shape[1:]}, the environment's {shape}: make the goal again"
            )


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def in_color(meta: Mapping[str, object]) -> bool:
    """True if a goal with this `meta` has colours: the environment observes a Game Boy Color in colour."""
    return meta.get("model") == "cgb" and picture_kind(str(meta["obs"])).in_color


def pictures_of(emulator: EmulatorLike, colors: bool) -> torch.Tensor:
    """An emulator's pictures in a goal's form: colours or shades."""
    return emulator.colors if colors else emulator.screen
