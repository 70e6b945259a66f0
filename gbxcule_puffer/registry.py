"""The environments by name: the only file that knows all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import SUITE, is_suite

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


def env_creator(name: str = "gbxcule") -> EnvMaker:
    """The class of an environment, or its factory, for `pufferlib.vector.make(env_creator(name), ...)`.

    Raises: ConfigError for an unknown name; the message lists the known ones.
    """
    if is_suite(name):
        from gbxcule_puffer.suite import find_game, make_env

        return functools.partial(make_env, *find_game(name), env_creator)
    if name not in ENVIRONMENTS:
        rom = "; a ROM is the option rom" if str(name).lower().endswith((".gb", ".gbc")) else ""
        raise ConfigError(f"environment {name!r} is unknown: give one of {', '.join((*ENVIRONMENTS, *SUITE))}{rom}")
    return ENVIRONMENTS[name]()
