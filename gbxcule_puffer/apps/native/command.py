"""`puffer native`: an environment for programs in C and CUDA."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any

from gbxcule_puffer.apps.flags import ARCHITECTURES, GAME, GameFlags, StepFlags
from gbxcule_puffer.commandline import command, flag
from gbxcule_puffer.env.option_flags import option_flag
from gbxcule_puffer.errors import ConfigError

OWN = {"rom", "game", "variant", "levels", "to", "num_envs", "arch", "blocked_actions"}


@command
class Native(GameFlags, StepFlags):
    """Write an environment that programs in C and CUDA run without Python.

    The folder has the kernels for each architecture, the game's data, a small library in C, and the env of PufferLib
    5's trainer. It needs no GPU; the first folder of a version takes minutes, because all kernels are compiled.
    """

    to: str = flag(help="folder to write", metavar="FOLDER")
    arch: str = flag(ARCHITECTURES, "compute capabilities of the GPUs, 90 for an H100", metavar="LIST")
    num_envs: int = flag(16_384, "Game Boys for which the launches are shaped; any number runs", least=1)
    levels: str | None = flag(None, "levels of --game: how many, or test (default: the training's)", GAME)
    symbols: str | None = option_flag("symbols", GAME)
    obs: str = option_flag("obs")
    stack_k: int = option_flag("stack_k")
    action_codec: str = option_flag("action_codec")
    blocked_actions: str = flag("", "names of actions that press nothing, with commas")
    until: str | None = option_flag("until")
    goal_dir: str | None = option_flag("goal_dir")
    stages: str | None = option_flag("stages")
    chain: bool = option_flag("chain")
    max_steps: int | None = option_flag("max_steps")
    tau: float | None = option_flag("tau")
    k_consecutive: int | None = option_flag("k_consecutive")
    step_cost: float | None = option_flag("step_cost")
    alpha: float = option_flag("alpha")
    goal_bonus: float = option_flag("goal_bonus")
    start_waits: int = option_flag("start_waits")
    sticky_actions: float = option_flag("sticky_actions")

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game, but for its files, which the env finds."""
        found = super().defaults() if self.game is None else self.of_folder(self.rom or None, writes=True)
        return {name: value for name, value in found.items() if name not in ("rom", "start_state", "symbols")}

    def run(self) -> None:
        from gbxcule_puffer.files import check_output_folder
        from gbxcule_puffer.integrations import pufferlib5
        from gbxcule_puffer.layout import find_rom
        from gbxcule_puffer.native.export import SOURCES, export
        from gbxcule_puffer.native.record import RecordedEnv, record, shape_for

        folder = check_output_folder(self.to)
        architectures = checked_architectures(self.arch)
        options: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in OWN}
        options["blocked_actions"] = tuple(filter(None, self.blocked_actions.split(",")))
        make = functools.partial(RecordedEnv, find_rom(self.rom))
        if self.game is not None:
            from gbxcule_puffer.games import load_game, make_game_env

            names = {"variant": self.variant, "levels": self.levels, "rom": self.rom or None}
            make = functools.partial(make_game_env, load_game(self.game), RecordedEnv, **names)
        made = record(lambda number: make(number, **options), shape_for(self.num_envs))
        export(made, folder, architectures, [*SOURCES, *pufferlib5.SOURCES])
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(
            f"{folder}: {made.env.cartridge.title} for {self.arch}, {size / 1e6:.1f} MB; for its use see docs/native.md"
        )


def checked_architectures(text: str) -> list[int]:
    """The numbers of --arch.

    Raises: ConfigError for another text.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 70 <= int(part) < 1000 for part in parts):
        raise ConfigError(f"--arch {text!r:.60} must be compute capabilities with commas, such as 80,90")
    return [int(part) for part in dict.fromkeys(parts)]


COMMAND = Native
