"""A workload: a game, its start, the parts of a step that are timed, the actions; the same for every contender."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gbxcule_puffer.apps.flags import plain_codec
from gbxcule_puffer.device import room_for
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, Schedule, get_codec
from gbxcule_puffer.tasks.goals.template import FORMAT, GoalTemplate, in_color
from gbxcule_puffer.tasks.observe.pictures import picture_kind

LEAD_IN_STEPS = 1  # before each repeat, not timed: wakes sleeping workers and an idle device
NEVER = 2**30  # max_steps of a run without resets


@dataclass(frozen=True)
class Workload:
    """One game, one stage; steps: timed in each of `repeat` repeats; reset_every: steps per episode, 0 for no end."""

    rom: Path
    start_state: Path | None = None
    goal_dir: Path | None = None
    game: str | None = None
    variant: str | None = None
    stage: str = "full_step"
    model: str = "dmg"
    sound: bool = False
    native: bool = False
    obs: str = "shades"
    stack_k: int = 1
    action_codec: str = DEFAULT_CODEC
    frames_per_step: int = Schedule.frames_per_step
    release_after_frames: int = Schedule.release_after_frames
    info_mode: str = "stats"
    actions: str = "random"
    reset_every: int = 0
    warmup: int = 100
    steps: int = 200
    repeat: int = 3
    seed: int = 0

    def check(self) -> None:
        """Raises: ConfigError if options exclude each other; RomError, ActionError, ConfigError for bad values."""
        load_cartridge(self.rom, model=self.model)
        codec = plain_codec(self.action_codec)
        if self.actions == "noop" and "NOOP" not in codec.actions:
            raise ConfigError(f"--actions noop: {codec.name} has no NOOP; give --action-codec pokemonred_puffer_v1")
        if self.reset_every and self.stage != "full_step":
            raise ConfigError(
                f"--reset-every {self.reset_every}: only --stage full_step has episodes to end: leave it out"
            )
        if self.goal_dir is not None and not self.needs_goal:
            raise ConfigError(f"--goal-dir: --stage {self.stage} has no goal; leave it out or give --stage full_step")

    @property
    def needs_goal(self) -> bool:
        return self.stage in ("reward_only", "full_step")

    @property
    def total_steps(self) -> int:
        return self.warmup + self.repeat * (LEAD_IN_STEPS + self.steps)

    def action_rows(self, num_envs: int) -> np.ndarray:
        """Actions (total_steps, num_envs) uint8; those of env i do not depend on num_envs.

        Raises: DeviceError if they do not fit into memory.
        """
        codec = get_codec(self.action_codec)
        shape = (num_envs, self.total_steps)
        with room_for(
            2 * num_envs * self.total_steps, "cpu", f"--steps {self.steps:,}", "use fewer, or a lower --repeat"
        ):
            if self.actions == "random":
                rows = np.random.Generator(np.random.PCG64(self.seed)).integers(0, codec.num_actions, shape, np.uint8)
            elif self.actions == "striped":
                rows = np.broadcast_to((np.arange(num_envs) % codec.num_actions).astype(np.uint8)[:, None], shape)
            else:
                rows = np.full(shape, codec.actions.index("NOOP"), np.uint8)
            return np.ascontiguousarray(rows.T)

    def env_options(self) -> dict[str, Any]:
        """Keyword arguments of the environments; those of a game with a Task of their own."""
        own = {}
        if self.game is not None:
            from gbxcule_puffer.games import load_game

            own = load_game(self.game).options(self.variant)
            del own["rom"]
        return {
            **own,
            "model": self.model,
            "sound": self.sound,
            "start_state": self.start_state,
            "goal_dir": self.goal_dir,
            "obs": self.obs,
            "stack_k": self.stack_k,
            "action_codec": self.action_codec,
            "frames_per_step": self.frames_per_step,
            "release_after_frames": self.release_after_frames,
            "max_steps": self.reset_every or NEVER,
            "info_mode": self.info_mode if self.stage == "full_step" else "none",
            "seed": self.seed,
        }

    def with_goal(self, folder: Path) -> Workload:
        """This workload with a goal: its own, or a checkerboard in `folder`. No game shows the checkerboard, so no
        episode ends, and its distance costs as much as any."""
        if not self.needs_goal or self.goal_dir is not None:
            return self
        cartridge = load_cartridge(self.rom, model=self.model)
        rows, columns = picture_kind(self.obs).screen_shape
        board = np.indices((1, rows, columns)).sum(axis=0) % 2
        meta = {
            "format": FORMAT,
            "rom_sha256": cartridge.sha256,
            "model": cartridge.model,
            "action_codec": get_codec(self.action_codec).name,
            "frames_per_step": self.frames_per_step,
            "release_after_frames": self.release_after_frames,
            "stack_k": self.stack_k,
            "obs": self.obs,
            "tau": 0.0,
            "k_consecutive": 1,
        }
        path = folder / f"{self.rom.stem}-{cartridge.model}-{self.obs}-{self.stack_k}-{cartridge.sha256[:12]}"
        if not path.exists():
            frames = 0x7FFF * board.astype(np.uint16) if in_color(meta) else 3 * board.astype(np.uint8)
            GoalTemplate(frames, meta).save(path)
        return replace(self, goal_dir=path)
