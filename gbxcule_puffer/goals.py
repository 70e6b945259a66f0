"""Pixel goals: a folder with the pictures to reach, what they were made for, and the distance to them on the device."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gbxcule_puffer.errors import GoalError

if TYPE_CHECKING:
    from gbxcule_puffer.emulator import Emulator
    from gbxcule_puffer.snapshot import Snapshot

FORMAT = 1
FRAMES_FILE = "goal_template.npy"
META_FILE = "goal_template.meta.json"
# What has to be equal in the goal and in the environment, else distances mean something else.
CHECKED_FIELDS = ("rom_sha256", "action_codec", "frames_per_step", "release_after_frames", "stack_k", "obs")
REQUIRED_FIELDS = ("format", *CHECKED_FIELDS, "tau", "k_consecutive")
SETTLE_STEPS = 8
# A goal's tau is at most this: a character who turns on the spot (about 0.01) still counts, a step aside does not.
LARGEST_TAU = 0.05


@dataclass(frozen=True)
class GoalTemplate:
    """Pictures that count as the goal: `frames` [frame, row, column] uint8 shades 0..3, and `meta` as in META_FILE."""

    frames: np.ndarray
    meta: dict[str, Any]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the goal's folder; a reader sees the whole goal or none of it."""
        folder = Path(folder)
        part = folder.with_name(f"{folder.name}.part{os.getpid()}")
        part.mkdir(parents=True)
        np.save(part / FRAMES_FILE, self.frames)
        (part / META_FILE).write_text(json.dumps(self.meta, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> GoalTemplate:
        """Reads a goal's folder.

        Raises: GoalError for a missing or damaged file; make the goal again with `puffer goal make` or `puffer stage`.
        """
        folder = Path(folder)
        remedy = "make it with `puffer stage` or `puffer goal make`"
        for name in (FRAMES_FILE, META_FILE):
            if not (folder / name).is_file():
                raise GoalError(f"goal {folder} has no {name}: {remedy}")
        try:
            meta = json.loads((folder / META_FILE).read_text())
            frames = np.load(folder / FRAMES_FILE, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise GoalError(f"goal {folder} is damaged ({reason}): {remedy}") from None
        missing = [name for name in REQUIRED_FIELDS if name not in meta] if isinstance(meta, dict) else ["everything"]
        if missing:
            raise GoalError(f"goal {folder} lacks {', '.join(missing)} in {META_FILE}: {remedy}")
        if meta["format"] != FORMAT:
            raise GoalError(f"goal {folder} has format {meta['format']}, not {FORMAT}: {remedy}")
        if frames.dtype != np.uint8 or frames.ndim != 3 or not len(frames) or frames.max() > 3:
            raise GoalError(f"goal {folder}: {FRAMES_FILE} is not uint8 shades 0..3 [frame, row, column]: {remedy}")
        return cls(frames, meta)

    def check(self, config: Mapping[str, Any], shape: tuple[int, int]) -> None:
        """Compares what the goal was made for with the environment's `config` and picture `shape`.

        Raises: GoalError that names the field that differs and both values.
        """
        for name in CHECKED_FIELDS:
            if self.meta[name] != config[name]:
                raise GoalError(
                    f"goal was made for {name} {self.meta[name]!r}, the environment has {config[name]!r}: "
                    "change the environment or make the goal again"
                )
        if self.frames.shape[1:] != shape:
            raise GoalError(
                f"goal pictures are {self.frames.shape[1:]}, the environment's {shape}: make the goal again"
            )


class GoalDistance:
    """Mean absolute difference of shades / 3 in [0, 1], the minimum over a goal's frames; allocates only here."""

    def __init__(self, frames: np.ndarray, num_envs: int, device: str | torch.device) -> None:
        pixels = frames[0].size
        self.frames = torch.from_numpy(frames.reshape(len(frames), pixels)).to(device, torch.float32)
        self.difference = torch.empty((num_envs, pixels), dtype=torch.float32, device=device)
        self.candidate = torch.empty(num_envs, dtype=torch.float32, device=device)
        self.scale = 1.0 / (3 * pixels)

    def measure(self, screen: torch.Tensor, out: torch.Tensor) -> None:
        """Distance of each env's picture in `screen` (num_envs, rows, columns) into `out` (num_envs,) float32.

        The sums are integers below 2**24, exact in float32 in any order: the CPU and the GPU give the same bits.
        """
        screen = screen.flatten(1)
        for i, frame in enumerate(self.frames):
            torch.sub(screen, frame, out=self.difference)
            torch.linalg.vector_norm(self.difference, ord=1, dim=1, out=out if i == 0 else self.candidate)
            if i:
                torch.minimum(out, self.candidate, out=out)
        out.mul_(self.scale)


def record_goal(
    emulator: Emulator,
    start_buttons: Sequence[int],
    solve_buttons: Sequence[int],
    meta: Mapping[str, Any],
    *,
    k_consecutive: int = 4,
) -> tuple[Snapshot, GoalTemplate]:
    """Plays `start_buttons`, takes the start snapshot, plays `solve_buttons` and takes the goal's pictures.

    The pictures are the distinct ones of the next SETTLE_STEPS steps without a button, so that an idle animation
    counts as the goal in all of its phases. `tau` is half of the least distance met on the way, at most LARGEST_TAU.
    `emulator` has one env and stands at the state to play from; `meta` holds CHECKED_FIELDS.

    Raises: GoalError when the way to the goal passes the goal's own picture, or starts at it.
    """

    def play(button: int) -> np.ndarray:
        emulator.step(torch.full((1,), button, dtype=torch.uint8, device=emulator.device))
        return emulator.screen[0].cpu().numpy().copy()

    for button in start_buttons:
        play(button)
    snapshot = emulator.save(0)
    way = [emulator.screen[0].cpu().numpy().copy(), *(play(button) for button in solve_buttons)]
    settled = [way[-1]] + [play(0) for _ in range(SETTLE_STEPS)]
    frames = np.stack(
        [settled[i] for i in range(len(settled)) if not any((settled[i] == f).all() for f in settled[:i])]
    )

    distance = GoalDistance(frames, len(way), "cpu")
    distances = torch.empty(len(way))
    distance.measure(torch.from_numpy(np.stack(way)), distances)
    before = distances.tolist()
    while before and before[-1] == 0:
        before.pop()
    if not before or min(before) == 0:
        raise GoalError(
            "the goal's picture is met before the actions end: let them end where it shows for the first time"
        )
    calibration = {"distances": distances.tolist(), "start_distance": before[0], "nearest": min(before)}
    tau = {"tau": min(LARGEST_TAU, min(before) / 2), "k_consecutive": k_consecutive, "calibration": calibration}
    return snapshot, GoalTemplate(frames, {"format": FORMAT, **meta, **tau})
