"""The flags of `puffer record`."""

from __future__ import annotations

from typing import Any

from gbxcule_puffer.apps.flags import GAME, DeviceFlags, GameFlags
from gbxcule_puffer.commandline import command, flag
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.env.options import TASK

PICTURE = "The picture"


@command
class RecordFlags(GameFlags, DeviceFlags):
    """The flags of `puffer record`."""

    levels: str | None = flag(None, "levels of --game: how many, or test (default: the training's, or all)", GAME)
    out: str = flag(help="film to write, .gif or .mp4, or .wav for the sound alone", metavar="FILE")
    policy: str = flag(
        "random", "random, or a run's folder, a checkpoint, or a game that comes with an agent", metavar="RUN"
    )
    steps: int = flag(120, "steps to film", least=1)
    num_envs: int = flag(1, "Game Boys, side by side", least=1)
    greedy: bool = flag(False, "take the likeliest action instead of sampling")
    max_steps: int | None = flag(None, "steps per episode (default: as in the training, or no limit)", TASK, least=1)
    goal_dir: str | None = option_flag("goal_dir")
    task: str | None = option_flag("task")
    symbols: str | None = option_flag("symbols", default=Later("the training's"))
    scale: int = flag(2, "width of a screen pixel in the film, in pixels", PICTURE, least=1)
    fps: float | None = flag(None, "steps per second (default: 8; the console makes 2.5)", PICTURE, least=0.01, most=50)
    sound: bool = flag(False, "film every frame of one Game Boy at the console's speed, with its sound", PICTURE)
    columns: int | None = flag(None, "Game Boys per row (default: nearly a square)", PICTURE, least=1)
    model: str | None = option_flag("model", GAME, Later("the training's, or dmg"))
    header: str | None = option_flag("header", GAME, Later("the training's, or strict"))

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game, but for its files, which the env finds."""
        if self.policy != "random":  # all of it is the training's
            return {}
        found = super().defaults() if self.game is None else self.of_folder(self.rom or None, writes=True)
        return {name: value for name, value in found.items() if name not in ("rom", "start_state", "symbols")}
