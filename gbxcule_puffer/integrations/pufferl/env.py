"""The environment for PuffeRL: tensors stay on the device, a stage is enough to start, and eval can show it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import Infos
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games import load_game, make_game_env
from gbxcule_puffer.integrations.pufferl.config import from_ini
from gbxcule_puffer.pictures import TERMINAL_COLORS, half_blocks, to_rgb
from gbxcule_puffer.tasks.goals.recipe import GoalSettings
from gbxcule_puffer.tasks.observe.layout import Array
from gbxcule_puffer.tasks.source import TaskSource

STAGE_OPTIONS = (
    *("obs", "stack_k", "action_codec", "frames_per_step", "release_after_frames", "k_consecutive", "model"),
    "device",
)
RENDER_MODES = ("ansi", "rgb_array", "frames")
FRAME_SCALE = 4


class PuffeRLEnv(GBxCuLEEnv):
    """GBxCuLEEnv for `pufferlib.pufferl`.

    PuffeRL always sends NumPy actions. With io="torch" they are moved to the device here, and observations, rewards and
    ends are tensors there. PuffeRL has one kind of end, `terminals`, after which it does not bootstrap. The observation
    after an episode that was cut at max_steps belongs to another episode, so here `terminals` has both kinds, and
    `truncations` has those that were cut. `success` in the infos counts only goals.
    """

    copied = ("render_mode", "successes")

    def __init__(self, *args: Any, render_mode: str = "ansi", **options: Any) -> None:
        """render_mode: what `render` gives: `ansi` text, an `rgb_array` (PufferLib's eval opens a window for it) or
        `frames`, which is the same array without a window.

        Raises: ConfigError, and what GBxCuLEEnv raises.
        """
        if render_mode not in RENDER_MODES:
            raise ConfigError(f"render mode {render_mode!r} is unknown: give one of {', '.join(RENDER_MODES)}")
        self.render_mode = render_mode
        self.successes: list[bool] = []
        super().__init__(*args, **options)
        self._host_masks = np.ones(self.num_agents, bool)

    @property
    def agents_per_batch(self) -> int:
        """Num_agents, as PufferLib's vector backends call it; PuffeRL sizes an LSTM's state by it."""
        return self.num_agents

    def step(self, actions: Array) -> tuple[Any, Any, Any, Any, Infos]:
        """As GBxCuLEEnv.step, with both kinds of end in `terminals`."""
        self.terminals[:] = False  # without a goal nothing else clears it
        result = super().step(actions)
        if self.num_agents == 1 and self.io == "numpy" and (self.terminals[0] or self.truncations[0]):
            self.successes.append(bool(self.terminals[0] & ~self.failures[0]))
        self.terminals |= self.truncations
        return result

    def send(self, actions: Array) -> None:
        if self.io == "torch" and not isinstance(actions, torch.Tensor):
            actions = torch.from_numpy(np.asarray(actions)).to(self.device)
        super().send(actions)

    def recv(self) -> tuple[Any, ...]:
        """PufferLib's seven parts; the masks are the host's, because PuffeRL counts them each step."""
        *parts, _ = super().recv()
        return (*parts, self._host_masks)

    def render(self) -> str | np.ndarray:
        """The picture of env 0: text for a terminal of 80 columns, or RGB (288, 320, 3) uint8."""
        shades = self.emulator.screen[0].cpu().numpy()
        if self.render_mode == "ansi":
            recent = self.successes[-100:]
            caption = f"episodes {len(self.successes)}, solved {sum(recent)} of the last {len(recent)}"
            return "\n".join([*half_blocks(TERMINAL_COLORS[shades]), f"{caption:80}"])
        return to_rgb(self.pictures(slice(1))[0].cpu().numpy(), FRAME_SCALE * 72 // len(shades))


def make_env(
    *,
    rom: str = "",
    stage: str = "",
    game: str = "",
    variant: str = "",
    levels: str = "",
    device: str = "",
    buf: Mapping[str, np.ndarray] | None = None,
    seed: int | None = None,
    **options: Any,
) -> PuffeRLEnv:
    """A PuffeRLEnv of an .ini file's [env] section, in which an empty string or "auto" means "not given".

    stage: file from which rom, start and goal are made if goal_dir is not given (default: HOMEWARD's first). game,
    variant, levels: of a game's folder (docs/games.md), which has all of these itself. device:
    cpu, cuda or cuda:N; by default the current GPU, which is this rank's, if there is one.

    Raises: ConfigError, and the errors of the env and the stage.
    """
    known = {option.name: option for option in fields(PuffeRLEnv.options_class)}
    given: dict[str, Any] = {
        name: from_ini(known[name], value) if name in known else value for name, value in options.items()
    }
    given |= {"device": device or ("cuda" if torch.cuda.is_available() else "cpu"), "buf": buf, "seed": seed}
    if game:
        # The folder's options are in place of the defaults, which are all that an .ini has where nobody gave a flag.
        given = {name: value for name, value in given.items() if name not in known or value != known[name].default}
        return make_game_env(
            load_game(game), PuffeRLEnv, rom=rom or None, variant=variant or None, levels=levels or None, **given
        )
    task = {name: given.pop(name, None) for name in ("start_state", "goal_dir", "stages")}
    config = {name: given[name] for name in STAGE_OPTIONS if name in given}
    with tempfile.TemporaryDirectory() as folder:  # the env reads the files as it is made
        files = TaskSource(rom=rom, stage=stage, prefix="--env.", **task).make(folder, GoalSettings(**config))
        return PuffeRLEnv(**{**given, **files})
