"""The environments by name: the only file that knows all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.layout import SUITE, is_suite

if TYPE_CHECKING:
    from gbxcule_puffer.games import Game

EnvMaker = Callable[..., Any]  # an env's class, or a function that makes one


def _gbxcule() -> EnvMaker:
    from gbxcule_puffer.env import GBxCuLEEnv

    return GBxCuLEEnv


def _pyboy_puffer_single() -> EnvMaker:
    from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle

    return PyBoyPufferSingle


def _pyboy_puffer_vec() -> EnvMaker:
    from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec

    return PyBoyPufferVec


def _toy() -> EnvMaker:
    from gbxcule_puffer.toy import ToyEnv

    return ToyEnv


# One loader per name, so that one environment never imports the dependencies of another.
ENVIRONMENTS: dict[str, Callable[[], EnvMaker]] = {
    "gbxcule": _gbxcule,
    "pyboy_puffer_single": _pyboy_puffer_single,
    "pyboy_puffer_vec": _pyboy_puffer_vec,
    "toy": _toy,
}


def env_creator(
    name: str = "gbxcule", game: StrPath | None = None, *, variant: str | None = None, levels: str | int | None = None
) -> EnvMaker:
    """The class of an environment, or its factory, for `pufferlib.vector.make(env_creator(name), ...)`.

    game: a game's folder, or the name of a game that comes with the package; the environment gets its options
    (docs/games.md). variant, levels: those of the game.

    Raises: ConfigError for an unknown name; the message lists the known ones. With a game, the errors of `load_game`.
    """
    if is_suite(name):
        if game is not None:
            raise ConfigError(f"environment {name!r:.60} is a game itself: give gbxcule, or leave game out")
        full, _, own_levels = name.partition("-")
        return _game_maker(full.removeprefix("gbxcule_"), own_levels or levels, variant)
    if name not in ENVIRONMENTS:
        rom = "; a ROM is the option rom" if str(name).lower().endswith((".gb", ".gbc")) else ""
        raise ConfigError(f"environment {name!r} is unknown: give one of {', '.join((*ENVIRONMENTS, *SUITE))}{rom}")
    if game is None:
        if variant is not None or levels is not None:
            raise ConfigError("variant and levels need a game: give game, too")
        return ENVIRONMENTS[name]()
    if name == "toy":
        raise ConfigError("environment 'toy' plays no Game Boy: leave game out")
    return functools.partial(_game_maker(game, levels, variant), on=name)


def create(name: str = "gbxcule", **options: Any) -> Any:
    """An environment by its name; game, variant and levels among its keywords are those of `env_creator`.

    Raises: the errors of `env_creator` and of the environment.
    """
    of_game = {key: options.pop(key) for key in ("game", "variant", "levels") if key in options}
    return env_creator(name, **of_game)(**options)


def _game_maker(path: StrPath, levels: str | int | None, variant: str | None) -> EnvMaker:
    """A factory of envs that play the game, by default on our own Game Boys; its `on` is an environment's name."""
    from gbxcule_puffer.games import load_game

    game = load_game(path)
    game.chosen(variant)
    game.check_levels(levels)
    return functools.partial(_play, game, variant=variant, levels=levels)


def _play(game: Game, *arguments: Any, on: str = "gbxcule", **options: Any) -> Any:
    from gbxcule_puffer.games import make_game_env

    return make_game_env(game, env_creator(on), *arguments, **options)
