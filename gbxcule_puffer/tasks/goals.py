"""Pixel goals: a folder with the pictures to reach, what they were made for, and the distance to them on the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gbxcule_puffer.emulator.launch import Launcher, words
from gbxcule_puffer.errors import GoalError
from gbxcule_puffer.files import Kind, new_folder, read_array, read_object, write_json
from gbxcule_puffer.tasks.actions import STEPS, are_names, is_steps
from gbxcule_puffer.tasks.distance import kernel_color_distance, kernel_distance
from gbxcule_puffer.tasks.observation_kinds import picture_kind

if TYPE_CHECKING:
    from gbxcule_puffer.emulator import EmulatorLike
    from gbxcule_puffer.emulator.snapshot import Snapshot

FORMAT = 1
FRAMES_FILE = "goal_template.npy"
META_FILE = "goal_template.meta.json"
GOAL_FILE = Kind("goal", GoalError, "make it with `puffer stage` or `puffer goal make`")
MAX_SIZE = 64 * 2**20  # bytes of a goal's pictures, thousands of them
# What has to be equal in the goal and in the environment, else distances mean something else. Only the newest picture
# is compared: a goal fits any stack_k, and its file just records one.
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
SETTLE_STEPS = 8
K_CONSECUTIVE = 4  # of a goal that does not say otherwise
# A goal's tau is at most this: a character who turns on the spot (about 0.01) still counts, a step aside does not.
LARGEST_TAU = 0.05


@dataclass(frozen=True)
class GoalTemplate:
    """Pictures that count as the goal: `frames` [frame, row, column] uint8 shades 0..3 or, where the environment
    observes a Game Boy Color in colour, uint16 of Emulator.colors, and `meta` as in META_FILE: REQUIRED_FIELDS, `model`
    where that is 'cgb', and where the task has one `max_steps`, the steps after which an attempt has failed."""

    frames: np.ndarray
    meta: dict[str, Any]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the goal's folder, which may replace another goal's; a reader sees the whole goal or none of it.

        Raises: ConfigError where the folder holds anything else, StorageError.
        """
        with new_folder(folder, replaces=(FRAMES_FILE, META_FILE)) as part:
            np.save(part / FRAMES_FILE, self.frames)
            write_json(part / META_FILE, self.meta)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> GoalTemplate:
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

    def check(self, config: Mapping[str, Any], shape: tuple[int, int]) -> None:
        """Compares what the goal was made for with the environment's `config` and picture `shape`.

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


def in_color(meta: Mapping[str, Any]) -> bool:
    """True where a goal with this `meta` has colours: the environment observes a Game Boy Color in colour."""
    return meta.get("model") == "cgb" and picture_kind(str(meta["obs"])).in_color


def drawn(emulator: EmulatorLike, colors: bool) -> torch.Tensor:
    """An emulator's pictures as a goal has them: colours, or shades."""
    return emulator.colors if colors else emulator.screen


class GoalDistance:
    """Mean absolute difference of shades / 3, or of red, green and blue / 31, in [0, 1], the minimum over a goal's
    frames; allocates only here.

    `frames` are the pictures of one goal or a list of those of several, each [frame, row, column]; every env has a goal
    of its own. `frames` and `first` (goals + 1,) int32, where each begins, are tensors; `scale` is 1 of the distance;
    in_color: the frames are colours, uint16.
    """

    def __init__(self, frames: np.ndarray | Sequence[np.ndarray], num_envs: int, device: str | torch.device) -> None:
        goals = [frames] if isinstance(frames, np.ndarray) else list(frames)
        self._launch = Launcher(torch.device(device))
        self.frames = torch.from_numpy(np.concatenate(goals)).to(device)
        self.first = torch.from_numpy(np.cumsum([0, *map(len, goals)], dtype=np.int32)).to(device)
        self.in_color = goals[0].dtype == np.uint16
        self.scale = 1.0 / ((3 * 31 if self.in_color else 3) * goals[0][0].size)
        self._goal_0 = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def measure(self, screen: torch.Tensor, out: torch.Tensor, goal: torch.Tensor | None = None) -> None:
        """Distance of each env's picture in `screen` (num_envs, rows, columns), shades or colours as the frames, into
        `out` (num_envs,) float32.

        goal (num_envs,) int64: which goal each env has, the first if None. The sums are integers, the same in any
        order: the CPU and the GPU give the same bits.
        """
        goal, lanes = self._goal_0 if goal is None else goal, self._launch.lanes
        inputs = words(screen), words(self.frames), self.first, goal, lanes, self.scale, out
        kernel = kernel_color_distance if self.in_color else kernel_distance
        self._launch(kernel, (len(out), lanes), *inputs)


def record_goal(
    emulator: EmulatorLike,
    start_buttons: Sequence[int],
    solve_buttons: Sequence[int],
    meta: Mapping[str, Any],
    *,
    more_ways: Sequence[Sequence[int]] = (),
    pictures: Sequence[np.ndarray] | None = None,
    k_consecutive: int = K_CONSECUTIVE,
) -> tuple[Snapshot, GoalTemplate]:
    """Plays `start_buttons`, takes the start snapshot, plays `solve_buttons` and takes the goal's pictures; then the
    same from the start by each of `more_ways`, whose ends count as the goal too.

    The pictures are the distinct ones at the end and of the next SETTLE_STEPS steps without a button, so that an idle
    animation counts as the goal in all of its phases. `tau` is half of the least distance met on a way, at most
    LARGEST_TAU. With `pictures` these are the goal, and nothing is played after the start.

    `emulator` has one env and stands at the state to play from; `meta` holds CHECKED_FIELDS.

    Raises: GoalError when a way to the goal passes one of the goal's own pictures, or starts at it.
    """

    def play(button: int) -> np.ndarray:
        emulator.step(torch.full((1,), button, dtype=torch.uint8, device=emulator.device))
        return picture()

    def picture() -> np.ndarray:
        return drawn(emulator, in_color(meta))[0].cpu().numpy().copy()

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
    """The pictures without repetitions, in the order they first come, stacked."""
    return np.stack([p for i, p in enumerate(pictures) if not any((p == other).all() for other in pictures[:i])])


def distances_to(frames: np.ndarray, pictures: np.ndarray, device: str) -> np.ndarray:
    """Distance of each of `pictures` [picture, row, column] to a goal's `frames`, float32."""
    out = torch.empty(len(pictures), device=device)
    GoalDistance(frames, len(pictures), device).measure(torch.from_numpy(pictures).to(device), out)
    return out.cpu().numpy()
