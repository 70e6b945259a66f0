"""Environments that play a game of a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from gbxcule_puffer.files import StrPath
from gbxcule_puffer.games.game import Game
from gbxcule_puffer.games.levels import Levels
from gbxcule_puffer.tasks.task import TaskSpec

Env = TypeVar("Env")


def make_game_env(
    game: Game,
    kind: Callable[..., Env],
    num_envs: int = 1,
    device: str = "cpu",
    *,
    variant: str | None = None,
    levels: str | int | Levels | None = None,
    rom: StrPath | None = None,
    task: TaskSpec | None = None,
    **options: Any,
) -> Env:
    """The game on `num_envs` Game Boys.

    kind: the class of the env; variant, levels, rom, task: as in Game.options; options: as in GBxCuLEEnv, in place of
    the game's where they are not None.

    Raises: the errors of Game.options and of the env.
    """
    given = {name: value for name, value in options.items() if value is not None}
    machine = {name: given[name] for name in ("model", "header") if name in given}
    game = replace(game, rom=replace(game.rom, **machine))  # starts are made on it
    own = game.options(variant, rom, levels, task, given.get("max_steps"), given.get("symbols"))
    image = own.pop("rom")
    return kind(image, num_envs, device, **(own | given))
