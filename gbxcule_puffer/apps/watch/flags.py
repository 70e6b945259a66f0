"""The flags of `puffer watch`."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import DeviceFlags
from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS


@command
class WatchFlags(DeviceFlags):
    """The flags of `puffer watch`."""

    run_dir: str = word("a run's folder, or a checkpoint.pt", "RUN")
    num_envs: int = flag(12, "Game Boys", least=1)
    greedy: bool = flag(False, "take the likeliest action instead of sampling")
    address: str = flag(DEFAULT_ADDRESS, "address of the page", metavar="HOST:PORT")
    task: str | None = option_flag("task")
    symbols: str | None = option_flag("symbols", default=Later("the training's"))
    position: str | None = option_flag("position")
