"""A run's agent at play: whole pictures on the wall, at the viewers' speed, with every new checkpoint of the run."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer.apps.record.film import Camera
from gbxcule_puffer.apps.watch.flags import WatchFlags
from gbxcule_puffer.device import resolve_device
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.trainers.folder import METRICS
from gbxcule_puffer.trainers.trained import Trained
from gbxcule_puffer.trainers.wall.wall import Wall


def watch(flags: WatchFlags, ready: Callable[[Wall], bool] = lambda _: True) -> None:
    """Plays the newest checkpoint of a run until Ctrl-C and shows it on a web page. ready: called before each step;
    False ends it.

    Raises: GBxCuLEError of the kind that the input deserves.
    """
    given = {name: getattr(flags, name) for name in ("game", "variant", "levels", "task", "symbols", "position")}
    player = Player(flags.run_dir, flags.num_envs, resolve_device(flags.device), flags.seed, flags.greedy, **given)
    env = player.env
    given: Any = {"picture": player.picture, "controls": True, "facts": player.facts, "records": player.records}
    with Wall(env, player.name, player.status, flags.address, **given) as wall:
        print(f"watch   {wall.url}   (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while ready(wall):
                wall.look(player.step())
                wall.wait()
    env.close()


class Player:
    """The agent of a run's newest checkpoint, and its env."""

    def __init__(self, run: StrPath, num_envs: int, device: str, seed: int, greedy: bool, **given: Any) -> None:
        """given: as in `Trained.open_env`."""
        self.run, self.seed, self.greedy = run, seed, greedy
        self.name = Path(run).resolve().name
        trained = Trained(run)
        self.env = trained.open_env(num_envs, device, seed, **given)
        self.facts = {"algorithm": trained.script.EXP_NAME, "device": device}
        self.records = trained.path.with_name(METRICS)
        self._take(trained)
        self.observations, _ = self.env.reset(seed=seed)
        self.starts = torch.ones(num_envs, dtype=torch.bool, device=self.env.device)
        self.camera = Camera(self.env) if isinstance(self.env, GBxCuLEEnv) else None
        self.picture = (144, 160) if self.camera else None
        self.running = torch.zeros((2, num_envs), dtype=torch.float64, device=self.env.device)  # returns, lengths
        self.ended = torch.zeros_like(self.running[:, 0])  # their sums over the episodes that have ended
        self.statistics: dict[str, tuple[float, int]] = {}  # the same of the Tasks' statistics
        self.episodes = self.solved = 0

    def _take(self, trained: Trained) -> None:
        self.policy = trained.policy(self.env, self.seed, self.greedy)
        self.trained_steps = trained.checkpoint["counters"]["global_step"]
        self.file, self.changed = trained.path, _changed(trained.path)

    def status(self) -> dict[str, float]:
        """The figures beside the pictures."""
        figures: dict[str, float] = {"step": self.trained_steps}
        if self.episodes:
            if self.env.has_success:
                figures["charts/success_rate"] = self.solved / self.episodes
            figures |= {f"env/{name}": total / count for name, (total, count) in self.statistics.items() if count}
            means = (self.ended / self.episodes).tolist()
            figures |= dict(zip(("charts/episodic_return", "charts/episodic_length"), means, strict=True))
        return figures

    @torch.no_grad()
    def step(self) -> torch.Tensor | None:
        """One step of all envs with the newest checkpoint; returns the whole pictures at its end."""
        if _changed(self.file) != self.changed:
            try:
                self._take(Trained(self.run))
            except GBxCuLEError as error:  # for example while a file is replaced: the previous agent continues
                print(f"puffer: {error}", file=sys.stderr)
                self.changed = _changed(self.file)
        actions = self.policy(self.observations, self.starts)
        pictures = torch.from_numpy(self.camera.shoot(actions)).to(self.env.device) if self.camera else None
        self.observations, rewards, terminals, truncations, _ = self.env.step(actions)
        self.starts = terminals | truncations
        self.running[0] += rewards
        self.running[1] += 1
        self.ended += torch.where(self.starts, self.running, 0.0).sum(1)
        self.running.masked_fill_(self.starts, 0.0)
        for name, values in self.env.statistics().items():
            known = values[self.starts & ~values.isnan()]  # Task.of_some
            total, count = self.statistics.get(name, (0.0, 0))
            self.statistics[name] = (total + float(known.sum()), count + len(known))
        self.episodes += int(self.starts.sum())
        self.solved += int((terminals & ~self.env.failures).sum())
        return pictures


def _changed(path: os.PathLike[str]) -> int:
    """The time of a file's last change; 0 if it is gone."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
