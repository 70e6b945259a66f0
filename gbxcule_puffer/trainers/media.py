"""Pictures of what the agents do: a sheet of many envs and a GIF of one episode, as files and in TensorBoard."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.pictures import LEVELS, mosaic
from gbxcule_puffer.tasks.observations import ObservationLayout
from gbxcule_puffer.trainers.evaluation import Policy
from gbxcule_puffer.trainers.runlog import RunLog

SHEET = 64  # pictures, 8 x 8
WIDTH = 320  # least pixels of a GIF's rows: large enough to see
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
    scale = -(-WIDTH // pictures[0].shape[1])
    frames = [Image.fromarray(LEVELS[p].repeat(scale, 0).repeat(scale, 1)) for p in pictures]
    duration = [MILLISECONDS] * (len(frames) - 1) + [1000]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    return file.getvalue()


@torch.no_grad()
def both_ends(policy: Policy, env: Any, seed: int) -> dict[str, list[np.ndarray]]:
    """Pictures of one episode that succeeds, as 'success', and of one that does not, as 'failure', among the first
    episodes of all envs; one that does not occur is left out."""
    obs, _ = env.reset(seed=seed)
    starts = torch.ones(len(obs), dtype=torch.bool, device=env.device)
    first = torch.ones_like(starts)  # its first episode still runs
    pictures, found = [env.layout.shades(obs).cpu().numpy().copy()], dict[str, list[np.ndarray]]()
    while len(found) < 2 and first.any():
        obs, _, terminals, truncations, _ = env.step(policy(obs, starts))
        starts = terminals | truncations
        pictures.append(env.layout.shades(env.final_observation).cpu().numpy().copy())
        won = terminals & ~env.failures
        for kind, ended in (("success", first & won), ("failure", first & starts & ~won)):
            if kind not in found and ended.any():
                number = int(ended.nonzero()[0])
                found[kind] = [picture[number] for picture in pictures]
        first &= ~starts
    return found


def record_media(log: RunLog, step: int, obs: torch.Tensor, policy: Policy, env: Any, seed: int) -> None:
    """Writes the sheet of the training envs' `obs`, and GIFs of episodes of `policy` in `env` that succeed and that do
    not, into the run's media folder and onto its boards.

    Raises: StorageError when the disk is full.
    """
    file = io.BytesIO()
    Image.fromarray(sheet(env.layout, obs)).save(file, "PNG")
    log.picture("envs", step, "png", file.getvalue())
    for kind, pictures in both_ends(policy, env, seed).items():
        log.picture(kind, step, "gif", gif(pictures))
