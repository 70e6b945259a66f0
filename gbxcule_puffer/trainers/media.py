"""Pictures of what the agents do: a sheet of many envs and a GIF of one episode, as files and in TensorBoard."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.files import write_bytes
from gbxcule_puffer.pictures import LEVELS, mosaic
from gbxcule_puffer.tasks.observations import ObservationLayout
from gbxcule_puffer.trainers.evaluation import Policy
from gbxcule_puffer.trainers.runlog import REMEDY, RunLog

SHEET = 64  # pictures, 8 x 8
SCALE = 2  # a GIF's pixels a pixel of the screen
MILLISECONDS = 100  # a GIF's picture stays for this long


def sheet(layout: ObservationLayout, obs: torch.Tensor) -> np.ndarray:
    """The newest pictures of the first SHEET of the observations side by side, grey (rows, columns) uint8."""
    return LEVELS[mosaic(layout.shades(obs[:SHEET]).cpu().numpy(), columns=8)]


@dataclass
class Episode:
    """One episode of one env: `pictures` has one more than the lists of what each step did."""

    pictures: list[np.ndarray]
    actions: list[int]
    rewards: list[float]
    distances: list[float]  # of the picture that the step led to; empty where the env measures none
    success: bool = False


@torch.no_grad()
def film(policy: Policy, env: Any, seed: int) -> Episode:
    """Plays one episode and keeps what env 0 saw and did."""
    obs, _ = env.reset(seed=seed)
    starts = torch.ones(len(obs), dtype=torch.bool, device=env.device)

    def picture(observations: torch.Tensor) -> np.ndarray:
        return env.layout.shades(observations[:1])[0].cpu().numpy().copy()

    episode = Episode([picture(obs)], [], [], [])
    for _ in range(env.max_steps + 1):
        actions = policy(obs, starts)
        obs, rewards, terminals, truncations, _ = env.step(actions)
        starts = terminals | truncations
        episode.pictures.append(picture(env.final_observation))
        episode.actions.append(int(actions[0]))
        episode.rewards.append(float(rewards[0]))
        if hasattr(env, "distance"):
            episode.distances.append(float(env.distance[0]))
        if starts[0]:
            episode.success = bool(terminals[0] & ~env.failures[0])
            break
    return episode


def gif(pictures: Sequence[np.ndarray]) -> bytes:
    """Shades [(rows, columns) uint8, ...] as an endless GIF; its last picture stays for a second."""
    frames = [Image.fromarray(LEVELS[p].repeat(SCALE, 0).repeat(SCALE, 1)) for p in pictures]
    duration = [MILLISECONDS] * (len(frames) - 1) + [1000]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    return file.getvalue()


def record_media(log: RunLog, step: int, obs: torch.Tensor, policy: Policy, env: Any, seed: int) -> None:
    """Writes the sheet of the training envs' `obs` and a GIF of an episode of `policy` in `env` into the run's media
    folder, named by the step, and both into TensorBoard.

    Raises: StorageError when the disk is full.
    """
    grid, episode = sheet(env.layout, obs), gif(film(policy, env, seed).pictures)
    file = io.BytesIO()
    Image.fromarray(grid).save(file, "PNG")
    for kind, suffix, data in (("envs", "png", file.getvalue()), ("episode", "gif", episode)):
        write_bytes(log.run_dir / f"media/{kind}_{step:012d}.{suffix}", data, REMEDY)
        log.encoded_image(f"media/{kind}", step, data)
