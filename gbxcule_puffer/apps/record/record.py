"""`puffer record`: plays a ROM with random buttons or a trained policy and films it, one Game Boy or a mosaic."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.apps.record.film import Camera, check_path, write_film
from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.layout import is_suite
from gbxcule_puffer.pictures import mosaic, mosaic_shape
from gbxcule_puffer.trainers.evaluation import random_policy
from gbxcule_puffer.trainers.trained import Trained

SCREEN = (hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH)
LONGEST_SIDE = 8192  # pixels of a film's picture


@dataclass
class Recording:
    """A film that was made: the file, its size in pixels, and how the episodes in it ended."""

    path: Path
    width: int
    height: int
    steps: int
    episodes: int
    solved: int


def record(
    rom: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    policy: str = "random",
    start_state: str | None = None,
    goal_dir: str | None = None,
    num_envs: int = 1,
    steps: int = 120,
    max_steps: int | None = None,
    columns: int | None = None,
    scale: int = 2,
    fps: float = 8.0,
    greedy: bool = False,
    seed: int = 0,
    device: str = "cpu",
    header: str = "strict",
    model: str | None = None,
    task: str | None = None,
    symbols: str | None = None,
) -> Recording:
    """Films `steps` steps of `num_envs` Game Boys into `out`, a .gif or .mp4 with a picture a step.

    policy: `random`, or a trainer's checkpoint.pt. The env is then as in its training; without start_state and goal_dir
    it plays the task that lies in the checkpoint's folder.
    model: the Game Boy (default: the training's, or a DMG); a Game Boy Color's film is in colour.
    task: what ends episodes, if it is not a picture; a checkpoint that was trained with one needs it.
    max_steps: steps of an episode (default: the training's, or all of the film with random buttons).
    fps: steps shown in a second; the console itself makes 2.5 of 24 frames each.

    Raises: ConfigError, RomError, StateError, GoalError or DeviceError, before anything is written.
    """
    for name, value in (("num_envs", num_envs), ("steps", steps), ("scale", scale), ("columns", columns or 1)):
        if value < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {value} must be at least 1")
    if not 0 < fps <= 50:
        raise ConfigError(f"--fps {fps} must be above 0 and at most 50")
    _check_size(num_envs, columns, scale)
    path = check_path(out)
    options: dict[str, Any] = {"start_state": start_state, "goal_dir": goal_dir, "header": header}
    options |= {} if model is None else {"model": model}
    options |= {"task": task, "symbols": symbols}
    if policy == "random":
        options["max_steps"] = max_steps or steps
        env = GBxCuLEEnv(rom, num_envs, device, io="torch", info_mode="none", seed=seed, **options)
        play = random_policy(env, seed)
    else:
        trained = Trained(policy)
        if trained.args.env == "toy":
            raise StateError(f"checkpoint {policy} is not of a Game Boy: give one that was trained with --env gbxcule")
        if is_suite(trained.args.env):  # which has its ROM itself
            trained.check_rom(rom)
        else:
            options |= {"env": "gbxcule", "rom": str(rom)}
        env = trained.open_env(num_envs, device, seed, max_steps=max_steps, **options)
        play = trained.policy(env, seed, greedy)
    assert env.emulator is not None
    height, width = mosaic_shape(num_envs, *SCREEN, columns)
    depth = 1 if env.emulator.model == "dmg" else 2
    needed = steps * height * width * (depth + scale**2)  # Pillow keeps a GIF's pictures, as large as they are shown
    with room_for(needed, "cpu", f"--steps {steps:,}", "use fewer, a lower --scale, or fewer --num-envs"):
        pictures, episodes, solved = film(env, play, steps, seed, columns)
        write_film(path, pictures, scale, fps)
    height, width = pictures[0].shape[:2]
    return Recording(path, scale * width, scale * height, steps, episodes, solved)


def _check_size(num_envs: int, columns: int | None, scale: int) -> None:
    """Raises: ConfigError for pictures that are too large to be kept and shown."""
    height, width = (scale * length for length in mosaic_shape(num_envs, *SCREEN, columns))
    if max(height, width) > LONGEST_SIDE:
        raise ConfigError(
            f"--scale {scale} and --num-envs {num_envs:,} make pictures of {width:,} x {height:,} pixels, at most "
            f"{LONGEST_SIDE:,} a side are filmed: lower them"
        )


@torch.no_grad()
def film(env: Any, policy: Policy, steps: int, seed: int, columns: int | None) -> tuple[list[np.ndarray], int, int]:
    """(mosaic of all envs after each step, episodes that ended, episodes that ended at the goal)."""
    observations, _ = env.reset(seed=seed)
    camera, pictures = Camera(env), []
    starts = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    episodes = solved = 0
    for _ in range(steps):
        actions = policy(observations, starts)
        pictures.append(mosaic(camera.shoot(actions), columns))
        observations, _, terminals, truncations, _ = env.step(actions)
        starts = terminals | truncations
        episodes, solved = episodes + int(starts.sum()), solved + int((terminals & ~env.failures).sum())
    return pictures, episodes, solved
