"""A trained agent that continues from any state of its game."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path

import torch

from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.options import PICTURE, EnvOptions, first_difference
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.trainers.flags import SET_BY_TRAINERS
from gbxcule_puffer.trainers.trained import Trained

ENDLESS = 2**31 - 1  # steps
SEEN = {each.name for each in fields(EnvOptions) if each.metadata["subject"] == PICTURE} | {
    "header",
    "model",
    "symbols",
    "position",
}


class Agent:
    """The agent of a run's newest checkpoint, on a ROM. It sees the observations of its training; there is no goal, and
    no end."""

    def __init__(self, run: StrPath, rom: StrPath, seed: int = 0, greedy: bool = False):
        """Raises: StateError unless it is a run, on this ROM."""
        self.trained, self.rom, self.seed, self.greedy = Trained(run), rom, seed, greedy
        if self.trained.args.env == "toy":
            raise StateError(f"checkpoint {self.trained.path} is not of a Game Boy: give another")
        self.trained.check_rom(rom)
        self.schedule = self.trained.args.frames_per_step, self.trained.args.release_after_frames
        self.env: GBxCuLEEnv | None = None

    def begin(self, snapshot: Snapshot) -> None:
        """Continues from this state of one Game Boy.

        Raises: StateError if the agent's network is another version's.
        """
        options = {name: getattr(self.trained.args, name) for name in SEEN.difference(SET_BY_TRAINERS)}
        options |= {"io": "torch", "info_mode": "none", "max_steps": ENDLESS, "seed": self.seed}
        options["sound"] = snapshot.has_sound
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder, "start.state")
            snapshot.to_file(state)
            self.close()
            self.env = GBxCuLEEnv(self.rom, 1, "cpu", start_state=state, **options)
        if found := first_difference(self.trained.checkpoint["env_config"], self.env.config):
            name, was, now = found
            text = f"it was trained with {name} {was!s:.80}, not {now!s:.80}"
            raise StateError(f"{text}, and needs more than the game's picture")
        self.policy = self.trained.policy(self.env, self.seed, self.greedy)
        self.observations, _ = self.env.reset(seed=self.seed)
        self.starts = torch.ones(1, dtype=torch.bool)

    @torch.no_grad()
    def choose(self) -> str:
        """The name of the agent's next action, which its own Game Boy plays at once. Call `begin` first."""
        assert self.env is not None
        action = self.policy(self.observations, self.starts)
        self.observations, *_ = self.env.step(action)
        self.starts = torch.zeros(1, dtype=torch.bool)
        return self.env.codec.actions[int(self.env.taken_actions[0])]

    def close(self) -> None:
        """Closes its Game Boy."""
        if self.env is not None:
            self.env.close()
            self.env = None
