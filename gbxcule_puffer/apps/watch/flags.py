"""The flags of `puffer watch`."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import DeviceFlags
from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.env.options import TASK
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS


@command
class WatchFlags(DeviceFlags):
    """The flags of `puffer watch`."""

    run_dir: str = word("a run's folder, a checkpoint, or a game that comes with an agent, such as homeward", "RUN")
    num_envs: int = flag(12, "Game Boys", least=1)
    greedy: bool = flag(False, "take the likeliest action instead of sampling")
    address: str = flag(DEFAULT_ADDRESS, "address of the page", metavar="HOST:PORT")
    game: str | None = flag(None, "a game's folder (default: the training's)", TASK, metavar="FOLDER")
    variant: str | None = flag(None, "variant of the game, or several with commas (default: the training's)", TASK)
    levels: str | None = flag(None, "levels of the game: how many, or test (default: the training's)", TASK)
    task: str | None = option_flag("task")
    symbols: str | None = option_flag("symbols", default=Later("the training's"))
    position: str | None = option_flag("position")
