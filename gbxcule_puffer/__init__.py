"""Thousands of Game Boys in lockstep on one Warp kernel, as a PufferLib environment. Importing this is cheap."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# OpenMP reads this when torch is imported, so it works where this package is imported first. By default torch's threads
# spin while they wait for each other; on cores that anything else uses, learning then takes five times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"


def _gbxcule() -> Callable[..., Any]:
    from gbxcule_puffer.env import GBxCuLEEnv

    return GBxCuLEEnv


def _pyboy_puffer_single() -> Callable[..., Any]:
    from baselines.pyboy_puffer_single import PyBoyPufferSingle

    return PyBoyPufferSingle


def _pyboy_puffer_vec() -> Callable[..., Any]:
    from baselines.pyboy_puffer_vec import PyBoyPufferVec

    return PyBoyPufferVec


def _toy() -> Callable[..., Any]:
    from gbxcule_puffer.toy import ToyEnv

    return ToyEnv


# One loader a name, so that asking for one environment never imports the dependencies of another.
ENVIRONMENTS: dict[str, Callable[[], Callable[..., Any]]] = {
    "gbxcule": _gbxcule,
    "pyboy_puffer_single": _pyboy_puffer_single,
    "pyboy_puffer_vec": _pyboy_puffer_vec,
    "toy": _toy,
}


def env_creator(name: str = "gbxcule") -> Callable[..., Any]:
    """The class behind an environment's name, or what makes it, for `pufferlib.vector.make(env_creator(name), ...)`.

    Raises: ConfigError for an unknown name; the message lists the known ones.
    """
    from gbxcule_puffer.errors import ConfigError
    from gbxcule_puffer.layout import SUITE, is_suite

    if is_suite(name):
        from gbxcule_puffer.integrations.suite import creator

        return creator(name)
    if name not in ENVIRONMENTS:
        rom = "; a ROM is the option rom" if str(name).lower().endswith((".gb", ".gbc")) else ""
        raise ConfigError(f"environment {name!r} is unknown: give one of {', '.join((*ENVIRONMENTS, *SUITE))}{rom}")
    return ENVIRONMENTS[name]()
