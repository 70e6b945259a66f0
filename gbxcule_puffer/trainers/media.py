"""Pictures of the agents: a sheet of many envs and a GIF of one episode, as files and in TensorBoard."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from gbxcule_puffer.env.coverage import merged, picture
from gbxcule_puffer.env.protocol import EnvLike, Policy
from gbxcule_puffer.pictures import indexed, mosaic, to_rgb
from gbxcule_puffer.trainers.runlog import RunLog

SHEET = 64  # pictures, 8 x 8
WIDTH = 320  # least pixels of a GIF's rows: large enough to see
MILLISECONDS = 100  # a GIF's picture stays for this long
MOST = 256  # steps of a film: what comes later is not kept, nor waited for
LOOK = 16  # steps between two checks whether all episodes have ended: a GPU's host waits for each


def sheet(env: EnvLike) -> np.ndarray:
    """The pictures of the first SHEET envs side by side, RGB (rows, columns, 3) uint8."""
    return to_rgb(mosaic(env.pictures(slice(SHEET)).cpu().numpy(), columns=8))


@dataclass
class Episode:
    """One episode of one env: `pictures` has one entry more than the lists, which have one per step."""

    pictures: list[np.ndarray]
    actions: list[int]
    rewards: list[float]
    distances: list[float]  # distance at the end of each step; empty if the env measures none
    success: bool = False


@torch.no_grad()
def film(policy: Policy, env: EnvLike, seed: int) -> Episode:
    """Plays one episode and records what env 0 saw and did."""
    obs, _ = env.reset(seed=seed)
    env.keep_pictures()
    starts = torch.ones(len(obs), dtype=torch.bool, device=env.device)
    episode = Episode([env.pictures(slice(1))[0].cpu().numpy().copy()], [], [], [])
    while not episode.actions or not starts[0]:
        actions = policy(obs, starts)
        obs, rewards, terminals, truncations, _ = env.step(actions)
        starts = terminals | truncations
        episode.pictures.append(env.final_pictures(slice(1))[0].cpu().numpy().copy())
        episode.actions.append(int(actions[0]))
        episode.rewards.append(float(rewards[0]))
        if (distance := getattr(env, "distance", None)) is not None:
            episode.distances.append(float(distance[0]))
    episode.success = bool(terminals[0] & ~env.failures[0])
    return episode


def gif(pictures: Sequence[np.ndarray]) -> bytes:
    """Pictures (gbxcule_puffer.pictures) as an endless GIF; the last one stays for a second."""
    scale = -(-WIDTH // pictures[0].shape[1])
    frames = [indexed(picture, scale) for picture in pictures]
    duration = [MILLISECONDS] * (len(frames) - 1) + [1000]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    return file.getvalue()


class BothEnds:
    """Looks on while episodes are played: pictures of one that succeeds and of one that does not, or of any one where
    the task cannot succeed or none has ended within MOST steps, among the first episodes of up to SHEET envs. They stay
    on the device until they are asked for."""

    def __init__(self, env: EnvLike) -> None:
        self.env, self.over = env, False

    def begin(self, num_envs: int) -> None:
        """Records the first pictures of the episodes in the first `num_envs` envs."""
        self.env.keep_pictures()
        self._rows = slice(min(num_envs, SHEET))
        self._pictures = [self.env.pictures(self._rows).clone()]
        self._running = torch.ones(len(self._pictures[0]), dtype=torch.bool, device=self.env.device)
        self._ends: list[torch.Tensor] = []

    def step(self, ended: torch.Tensor, won: torch.Tensor) -> None:
        """Records the pictures at the end of a step, before any new episode."""
        if self.over:
            return
        self._pictures.append(self.env.final_pictures(self._rows).clone())
        ended, won = ended[self._rows] & self._running, won[self._rows]
        self._ends.append(torch.stack([ended & won, ended & ~won]))
        self._running = self._running & ~ended
        looks = len(self._ends) % LOOK == 0 and not bool(self._running.any())
        self.over = looks or len(self._ends) == MOST

    def found(self) -> dict[str, list[np.ndarray]]:
        """The pictures of the episodes as 'success' and 'failure', or as 'episode'; one that did not occur is left
        out."""
        ends, found = torch.stack(self._ends).cpu(), dict[str, list[np.ndarray]]()
        kinds = ("success", "failure" if self.env.has_success else "episode")
        for kind, ended in zip(kinds, ends.unbind(1), strict=True):
            if ended.any():
                step, number = ended.nonzero()[0].tolist()
                found[kind] = self._film(number, step)
        return found or {"episode": self._film(0, len(ends))}

    def _film(self, number: int, last: int) -> list[np.ndarray]:
        """Pictures of env `number` from the beginning to the end of step `last`."""
        return [picture[number].cpu().numpy() for picture in self._pictures[: last + 2]]


@torch.no_grad()
def both_ends(policy: Policy, env: EnvLike, seed: int) -> BothEnds:
    """Records while `policy` plays an episode of each env."""
    obs, _ = env.reset(seed=seed)
    starts = torch.ones(len(obs), dtype=torch.bool, device=env.device)
    looks = BothEnds(env)
    looks.begin(len(obs))
    while not looks.over:
        obs, _, terminals, truncations, _ = env.step(policy(obs, starts))
        starts = terminals | truncations
        looks.step(starts, terminals & ~env.failures)
    return looks


def record_media(log: RunLog, step: int, env: EnvLike, films: BothEnds) -> None:
    """Writes the sheet of the training's env, and GIFs of the episodes in `films`,
    into the run's media folder and onto its boards.

    Raises: StorageError when the disk is full.
    """
    file = io.BytesIO()
    Image.fromarray(sheet(env)).save(file, "PNG")
    log.picture("envs", step, "png", file.getvalue())
    for kind, pictures in films.found().items():
        log.picture(kind, step, "gif", gif(pictures))


def record_coverage(log: RunLog, step: int, parts: list[np.ndarray]) -> None:
    """Writes a picture of the positions that the envs of all processes have visited (Coverage.cells), if they count
    them."""
    if parts:
        file = io.BytesIO()
        Image.fromarray(picture(merged(parts))).save(file, "PNG")
        log.picture("coverage", step, "png", file.getvalue())
