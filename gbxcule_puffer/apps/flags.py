"""The flags that several commands share, made from the environment's options, so that each is declared once."""

from __future__ import annotations

import contextlib
import os
import warnings
from dataclasses import fields
from typing import Any

from gbxcule_puffer.commandline import command, flag, word
from gbxcule_puffer.env.option_flags import option_flag
from gbxcule_puffer.env.options import LARGEST_SEED, RUNNING
from gbxcule_puffer.errors import ConfigError, RomError
from gbxcule_puffer.layout import find_game_folder
from gbxcule_puffer.tasks.actions import ActionCodec, get_codec

GAME, STEP = "The game", "A step"
ARCHITECTURES = "80,86,89,90,100,120"  # compute capabilities of NVIDIA's GPUs from the A100 on


@command
class StartFlags:
    """The Game Boy, and its start state."""

    start_state: str | None = flag(
        None, "snapshot or PyBoy .state file to start from (default: power-on)", GAME, metavar="FILE"
    )
    model: str = option_flag("model", GAME)


@command
class FolderFlags:
    """A game's folder, whose options are the defaults of the command's own flags."""

    game: str | None = flag(
        None,
        "a game's folder, or a name of `puffer game list`: replaces ROM, and the defaults here (docs/games.md)",
        GAME,
        metavar="FOLDER",
    )
    variant: str | None = flag(None, "variant of --game", GAME, metavar="NAME")

    def of_folder(self, rom: str | None = None, writes: bool = False) -> dict[str, Any]:
        """Values for the command's flags from the game's folder: options, the ROM's file and a start state.

        rom: the ROM's file, if it is given; writes: the command plays as the folder says, variants' pokes included.

        Raises: ConfigError for --variant without --game, and the errors of the folder.
        """
        if self.game is None:
            if self.variant is not None:
                raise ConfigError("--variant needs a game: give --game, too")
            return {}
        folder = find_game_folder(self.game)  # before the next import, which takes seconds
        from gbxcule_puffer.games import load_game

        game = load_game(folder)
        if not writes and any(each.pokes for each in game.chosen(self.variant)):
            raise ConfigError(f"--variant {self.variant} writes RAM, which only an environment does: leave it out here")
        files = game.files(self.variant, rom)
        names = {each.name for each in fields(self)}
        return {name: value for name, value in {**game.flags(), **files}.items() if name in names}


@command
class GameFlags(StartFlags, FolderFlags):
    """A game, and where it starts."""

    rom: str = word("Game Boy image, or homeward (default: the one of --game)", "ROM", "")
    header: str = option_flag("header", GAME)

    def defaults(self) -> dict[str, Any]:
        """The values in the folder of --game."""
        if not self.rom and self.game is None:
            raise ConfigError("ROM is missing: give a Game Boy image, or a game's folder with --game")
        return self.of_folder(self.rom or None)


@command
class StepFlags:
    """The length of a step, and how long a button is pressed in it."""

    frames_per_step: int = option_flag("frames_per_step", STEP)
    release_after_frames: int = option_flag("release_after_frames", STEP)


@command
class DeviceFlags:
    """The device that a command runs on, and the seed of its random numbers."""

    device: str = flag("cpu", "cpu, cuda or cuda:N", RUNNING)
    seed: int = flag(0, "seed of everything that is sampled", RUNNING, least=-LARGEST_SEED, most=LARGEST_SEED)


def check_rom(rom: str, header: str = "strict", model: str | None = None) -> None:
    """Raises: RomError for a damaged ROM, and for a game where a ROM is wanted, before anything that goes with it is
    looked at."""
    from gbxcule_puffer.emulator.cartridge import load_cartridge

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the command itself tells them
            load_cartridge(rom, header, model)
    except RomError:
        if os.path.isfile(rom):
            raise
        with contextlib.suppress(ConfigError):
            find_game_folder(rom)
            raise RomError(f"{rom} is a game, not a ROM: give --game {rom}, or the path of a .gb file") from None
        raise


def plain_codec(text: str) -> ActionCodec:
    """The codec of a command that plays steps of one length and one choice each.

    Raises: ConfigError for an unknown codec, and for one whose actions have their own numbers of frames or several
    choices.
    """
    codec = get_codec(text)
    if codec.frames or codec.factors:
        has = "actions with frames of their own" if codec.frames else "several choices in a step"
        raise ConfigError(f"action_codec {text!r:.80} has {has}: give a list such as NOOP,A,B,SELECT,UP+B")
    return codec
