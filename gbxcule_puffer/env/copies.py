"""Copies of an env: copy.copy, copy.deepcopy and pickle give one with Game Boys of its own, which goes on equally."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import torch

from gbxcule_puffer.closing import check_open
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.env.buffers import StepBuffers
from gbxcule_puffer.env.episodes import Episodes
from gbxcule_puffer.env.fields import FIELDS
from gbxcule_puffer.env.options import EnvOptions
from gbxcule_puffer.env.protocol import Infos
from gbxcule_puffer.tasks.task import Task


class EnvCopies:
    """The part of GBxCuLEEnv that copies it. copied: more attributes of a subclass; those that its __init__ takes are
    among its arguments."""

    copied: tuple[str, ...] = ()

    cartridge: Cartridge
    device: torch.device
    infos: Infos
    num_agents: int
    options: EnvOptions
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[Mapping[str, Any]], None]
    _episodes: Episodes
    _out: StepBuffers
    _steps: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes the copy: the arguments, and of an env that runs its state and the facts of the last step.

        Raises: ConfigError after `close`.
        """
        check_open(self)
        options = {each.name: getattr(self.options, each.name) for each in fields(self.options)}
        if isinstance(options["task"], Task):
            options["task"] = copy.deepcopy(options["task"])  # which plays in one env only
        own = {name: getattr(self, name) for name in self.copied}
        runs = self._steps is not None
        state = (self.state_dict(), self._facts()) if runs else None
        return _copy, (type(self), self.cartridge, self.num_agents, str(self.device), options, own, state)

    def _facts(self) -> dict[str, Any]:
        """The parts of a running env that its saved state lacks: the last step's results, hooks, kept pictures."""
        episodes = self._episodes
        pictures = episodes.final_pictures
        return {
            "tensors": {field.name: getattr(episodes.envs, field.name).clone() for field in FIELDS},
            "final_observation": episodes.final_observation.clone(),
            "final_pictures": None if pictures is None else pictures.clone(),
            "infos": [dict(each) for each in self.infos],
            "emulator": episodes.emulator.facts(),
        }


def _copy(
    kind: Callable[..., EnvCopies],
    cartridge: Cartridge,
    num_envs: int,
    device: str,
    options: Mapping[str, Any],
    own: Mapping[str, Any],
    state: tuple[dict[str, Any], dict[str, Any]] | None,
) -> EnvCopies:
    """An env of the parts that EnvCopies.__reduce__ gives."""
    env = kind(cartridge, num_envs, device, **options)
    for name, value in own.items():
        setattr(env, name, value)
    if state is None:
        return env
    saved, facts = state
    env.load_state_dict(saved)
    episodes = env._episodes
    episodes.emulator.take_facts(facts["emulator"])
    for name, tensor in facts["tensors"].items():
        getattr(episodes.envs, name).copy_(tensor)
    episodes.final_observation.copy_(facts["final_observation"])
    if facts["final_pictures"] is not None:
        episodes.keep_pictures()
        assert episodes.final_pictures is not None
        episodes.final_pictures.copy_(facts["final_pictures"])
    env._out.publish()
    env.infos = facts["infos"]
    return env
