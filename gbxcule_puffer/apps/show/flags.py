"""The flags of `puffer show`."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import GAME
from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.env.option_flags import option_flag


@command
class ShowFlags:
    """The flags of `puffer show`."""

    states: tuple[str, ...] = word("state files, or folders of them", "STATE")
    out: str | None = flag(None, "PNG file (default: STATE.png, or states.png for several)", metavar="FILE")
    rom: str | None = flag(
        None, "Game Boy image, or homeward: for save RAM and for states of PyBoy", GAME, metavar="ROM"
    )
    model: str = option_flag("model", GAME)
    header: str = option_flag("header", GAME)
    scale: int = flag(2, "width of a screen pixel in the PNG, in pixels", least=1, most=16)
    columns: int | None = flag(None, "pictures in a row (default: nearly a square)", least=1)
