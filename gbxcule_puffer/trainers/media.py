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
LOOK = 16  # steps between two looks at whether all episodes are over: a GPU's host waits for each


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


class BothEnds:
    """Looks on while episodes are played: pictures of one that succeeds and of one that does not, among the first
    episodes of up to SHEET envs. They stay on the device until they are asked for."""

    def __init__(self, layout: ObservationLayout) -> None:
        self.layout, self.over = layout, False

    def begin(self, obs: torch.Tensor) -> None:
        """Takes the observations that the episodes begin with."""
        self._pictures = [self.layout.shades(obs[:SHEET]).clone()]
        self._running = torch.ones(len(self._pictures[0]), dtype=torch.bool, device=obs.device)
        self._ends: list[torch.Tensor] = []

    def step(self, obs: torch.Tensor, ended: torch.Tensor, won: torch.Tensor) -> None:
        """Takes the observations that a step led to, before any new episode."""
        if self.over:
            return
        self._pictures.append(self.layout.shades(obs[:SHEET]).clone())
        ended, won = ended[:SHEET] & self._running, won[:SHEET]
        self._ends.append(torch.stack([ended & won, ended & ~won]))
        self._running = self._running & ~ended
        self.over = len(self._ends) % LOOK == 0 and not bool(self._running.any())

    def found(self) -> dict[str, list[np.ndarray]]:
        """The pictures of the episodes as 'success' and 'failure'; one that did not occur is left out."""
        ends, found = torch.stack(self._ends).cpu(), dict[str, list[np.ndarray]]()
        for kind, ended in zip(("success", "failure"), ends.unbind(1), strict=True):
            if ended.any():
                step, number = ended.nonzero()[0].tolist()
                film = torch.stack([picture[number] for picture in self._pictures[: step + 2]])
                found[kind] = list(film.cpu().numpy())
        return found


@torch.no_grad()
def both_ends(policy: Policy, env: Any, seed: int) -> BothEnds:
    """Looks on while `policy` plays an episode of each env."""
    obs, _ = env.reset(seed=seed)
    starts = torch.ones(len(obs), dtype=torch.bool, device=env.device)
    looks = BothEnds(env.layout)
    looks.begin(obs)
    while not looks.over:
        obs, _, terminals, truncations, _ = env.step(policy(obs, starts))
        starts = terminals | truncations
        looks.step(env.final_observation, starts, terminals & ~env.failures)
    return looks


def record_media(log: RunLog, step: int, layout: ObservationLayout, obs: torch.Tensor, films: BothEnds) -> None:
    """Writes the sheet of the training envs' `obs`, and GIFs of the episodes in `films` that succeed and that do not,
    into the run's media folder and onto its boards.

    Raises: StorageError when the disk is full.
    """
    file = io.BytesIO()
    Image.fromarray(sheet(layout, obs)).save(file, "PNG")
    log.picture("envs", step, "png", file.getvalue())
    for kind, pictures in films.found().items():
        log.picture(kind, step, "gif", gif(pictures))
