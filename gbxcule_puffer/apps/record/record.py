"""`puffer record`: plays a ROM with random buttons or a trained policy and films it, one Game Boy or a mosaic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.apps.record.film import FRAMES_A_SECOND, Camera, SoundCamera, check_path, in_time, write_film
from gbxcule_puffer.apps.record.flags import RecordFlags
from gbxcule_puffer.commandline import check
from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Policy
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.layout import is_suite
from gbxcule_puffer.pictures import mosaic, mosaic_shape
from gbxcule_puffer.registry import env_creator
from gbxcule_puffer.trainers.evaluation import random_policy
from gbxcule_puffer.trainers.trained import Trained

SCREEN = (hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH)
FPS = 8.0  # steps per second of a film without sound
LONGEST_SIDE = 8192  # pixels of a film's picture


@dataclass
class Recording:
    """A film that was made: the file, its size in pixels, and how the episodes in it ended; solved: None where the task
    cannot succeed."""

    path: Path
    width: int
    height: int
    steps: int
    episodes: int
    solved: int | None


def record(flags: RecordFlags) -> Recording:
    """Films Game Boys into `flags.out`, a .gif or .mp4 with one picture per step, or with sound.

    Raises: ConfigError, RomError, StateError, GoalError or DeviceError, before anything is written.
    """
    check(flags)
    _check_size(flags)
    path = check_path(flags.out, flags.sound)
    if flags.sound and flags.num_envs > 1:
        raise ConfigError(f"--sound is of one Game Boy, not of --num-envs {flags.num_envs:,}: leave one of them out")
    if flags.sound and flags.fps is not None:
        raise ConfigError("a film with --sound has the console's speed: leave --fps out")
    options = {name: getattr(flags, name) for name in ("start_state", "goal_dir", "task", "symbols")}
    options |= {name: value for name in ("model", "header") if (value := getattr(flags, name)) is not None}
    if flags.policy == "random":
        options["max_steps"] = flags.max_steps or flags.steps
        creator = env_creator("gbxcule", flags.game, variant=flags.variant, levels=flags.levels)
        shared: dict[str, Any] = {"rom": flags.rom or None, "io": "torch", "info_mode": "none", "seed": flags.seed}
        env = creator(num_envs=flags.num_envs, device=flags.device, **shared, **options)
        play = random_policy(env, flags.seed)
    else:
        trained = Trained(flags.policy)
        if trained.args.env == "toy":
            text = f"checkpoint {flags.policy} is not of a Game Boy: give one that was trained with --env gbxcule"
            raise StateError(text)
        rom = flags.rom or None
        if is_suite(trained.args.env):  # which has its ROM itself
            if rom is not None:
                trained.check_rom(rom)
        else:
            options |= {"env": "gbxcule", "rom": rom}
        options |= {name: getattr(flags, name) for name in ("game", "variant", "levels")}
        env = trained.open_env(flags.num_envs, flags.device, flags.seed, max_steps=flags.max_steps, **options)
        play = trained.policy(env, flags.seed, flags.greedy)
    assert isinstance(env, GBxCuLEEnv)
    height, width = mosaic_shape(flags.num_envs, *SCREEN, flags.columns)
    depth = 1 if env.emulator.model == "dmg" else 2
    # Pillow keeps a GIF's pictures, as large as they are shown
    frames = env.schedule.frames_per_step if flags.sound else 1
    needed = flags.steps * height * width * (frames * depth + flags.scale**2)
    with room_for(needed, "cpu", f"--steps {flags.steps:,}", "use fewer, a lower --scale, or fewer --num-envs"):
        if flags.sound:
            rolling, takes = SoundCamera(env), list[tuple[np.ndarray, np.ndarray]]()
            episodes, solved = film(
                env, play, flags, lambda actions, starts: takes.extend(rolling.roll(actions, starts))
            )
            pictures, sound = in_time(takes)
            write_film(path, pictures, flags.scale, FRAMES_A_SECOND, sound)
        else:
            camera, pictures = Camera(env), list[np.ndarray]()
            episodes, solved = film(
                env, play, flags, lambda actions, _: pictures.append(mosaic(camera.shoot(actions), flags.columns))
            )
            write_film(path, pictures, flags.scale, FPS if flags.fps is None else flags.fps)
    height, width = pictures[0].shape[:2]
    return Recording(path, flags.scale * width, flags.scale * height, flags.steps, episodes, solved)


def _check_size(flags: RecordFlags) -> None:
    """Raises: ConfigError for pictures that are too large to store and show."""
    shape = mosaic_shape(flags.num_envs, *SCREEN, flags.columns)
    height, width = (flags.scale * length for length in shape)
    if max(height, width) > LONGEST_SIDE:
        raise ConfigError(
            f"--scale {flags.scale} and --num-envs {flags.num_envs:,} make pictures of {width:,} x {height:,} pixels, "
            f"at most {LONGEST_SIDE:,} a side are filmed: lower them"
        )


@torch.no_grad()
def film(
    env: GBxCuLEEnv, policy: Policy, flags: RecordFlags, shoot: Callable[[torch.Tensor, torch.Tensor], object]
) -> tuple[int, int | None]:
    """(episodes that ended, those that ended as a success); shoot(actions, starts) is called before each step, `starts`
    where an episode begins."""
    observations, _ = env.reset(seed=flags.seed)
    starts = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    episodes = solved = 0
    for _ in range(flags.steps):
        actions = policy(observations, starts)
        shoot(actions, starts)
        observations, _, terminals, truncations, _ = env.step(actions)
        starts = terminals | truncations
        episodes, solved = episodes + int(starts.sum()), solved + int((terminals & ~env.failures).sum())
    return episodes, solved if env.has_success else None
