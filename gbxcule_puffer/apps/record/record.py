"""`puffer record`: plays a ROM with random buttons or a trained policy and films it, one Game Boy or a mosaic."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.apps.record.film import Camera, check_path, write_film
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.pictures import mosaic
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.evaluation import Policy, random_policy

TRAINERS = Path(__file__).resolve().parents[3] / "cleanrl_style"
# What of a checkpoint's env and flags the recorded env has to share.
CONFIG = ("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames")
FLAGS = ("max_steps", "k_consecutive", "tau")


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
) -> Recording:
    """Films `steps` steps of `num_envs` Game Boys into `out`, a .gif or .mp4 with a picture a step.

    policy: `random`, or a trainer's checkpoint.pt. The env is then as in its training; without start_state and goal_dir
    it plays the task that lies in the checkpoint's folder.
    max_steps: steps of an episode (default: the training's, or all of the film with random buttons).
    fps: steps shown in a second; the console itself makes 2.5 of 24 frames each.

    Raises: ConfigError, RomError, StateError, GoalError or DeviceError, before anything is written.
    """
    for name, value in (("num_envs", num_envs), ("steps", steps), ("scale", scale), ("columns", columns or 1)):
        if value < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {value} must be at least 1")
    if not 0 < fps <= 50:
        raise ConfigError(f"--fps {fps} must be above 0 and at most 50")
    path = check_path(out)
    options: dict[str, Any] = {"start_state": start_state, "goal_dir": goal_dir, "max_steps": max_steps or steps}
    checkpoint = None
    if policy != "random":
        checkpoint = read_checkpoint(policy)
        options |= trained_options(checkpoint, policy, rom, options, max_steps)
    env = GBxCuLEEnv(rom, num_envs, device, io="torch", info_mode="none", seed=seed, **options)
    play = random_policy(env, seed) if checkpoint is None else trained_policy(checkpoint, policy, env, greedy, seed)
    pictures, episodes, solved = film(env, play, steps, seed, columns)
    write_film(path, pictures, scale, fps)
    height, width = pictures[0].shape
    return Recording(path, scale * width, scale * height, steps, episodes, solved)


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
        episodes, solved = episodes + int(starts.sum()), solved + int(terminals.sum())
    return pictures, episodes, solved


def trained_options(
    checkpoint: dict[str, Any], path: str, rom: Any, given: dict[str, Any], max_steps: int | None
) -> dict[str, Any]:
    """The env options of a checkpoint's training, with the task that was given or the one in its folder.

    Raises: StateError for a checkpoint of another ROM or without an env.
    """
    config, flags = checkpoint.get("env_config", {}), checkpoint["args"]
    if "rom_sha256" not in config:
        raise StateError(f"checkpoint {path} is not of a Game Boy: give one that was trained with --env gbxcule")
    if config["rom_sha256"] != load_cartridge(rom).sha256:
        raise StateError(f"checkpoint {path} was trained on another ROM than {rom}: give the one of its training")
    options = {name: config[name] for name in CONFIG} | {name: flags[name] for name in FLAGS if name in flags}
    if max_steps is not None:
        options["max_steps"] = max_steps
    if given["start_state"] is None and given["goal_dir"] is None:
        stage = Path(path).resolve().parent / "stage"
        made = {"start_state": stage / "start.state", "goal_dir": stage / "goal"}
        for name, file in made.items():
            options[name] = str(file) if file.exists() else flags.get(name)
    return options


def trained_policy(checkpoint: dict[str, Any], path: str, env: Any, greedy: bool, seed: int) -> Policy:
    """The policy of a checkpoint, made by the trainer that wrote it.

    Raises: StateError where that trainer is not here or its model does not fit.
    """
    name = str(checkpoint.get("exp_name"))
    script = TRAINERS / f"{name}.py"
    if not name.isidentifier() or not script.is_file():
        raise StateError(f"checkpoint {path} is of trainer {name!r}, which {TRAINERS} does not have: give another")
    spec = importlib.util.spec_from_file_location(f"cleanrl_style.{name}", script)
    assert spec is not None and spec.loader is not None
    trainer = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where dataclasses look their names up
    spec.loader.exec_module(trainer)
    try:
        return trainer.load_policy(checkpoint, env, seed, greedy)
    except KeyError as error:
        raise StateError(f"checkpoint {path} has no flag {error} of {script.name}: give another") from None
