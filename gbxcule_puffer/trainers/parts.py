"""The parts of a run that its checkpoints contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from gbxcule_puffer.env.options import first_difference
from gbxcule_puffer.env.protocol import EnvLike
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.trainers.blocks.replay import Replay
from gbxcule_puffer.trainers.checkpoints import Resumed, check_like, load_weights, rng_state, set_rng_state, to_host
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.envs import env_state


class Stateful(Protocol):
    """A part with a state of its own, as torch's modules have it."""

    def state_dict(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        ...

    def load_state_dict(self, state: dict[str, Any], /) -> object:
        """Continues from a state."""
        ...


class Parts:
    """Networks and optimizer, equal in all processes, and each process's own parts: the envs, the random numbers and
    the parts in `own`. A part that is None is not saved."""

    def __init__(
        self,
        envs: Sequence[EnvLike],
        shared: Mapping[str, nn.Module | torch.optim.Optimizer],
        own: Mapping[str, Tensor | Stateful | None],
    ) -> None:
        self.shared, self._envs, self._own = shared, envs, own
        self._device: torch.device = envs[0].device

    @property
    def networks(self) -> list[nn.Module]:
        """The networks whose weights must be finite."""
        return [part for part in self.shared.values() if isinstance(part, nn.Module)]

    def optimizer_steps(self) -> float:
        """Steps of all optimizers since the run's beginning. They count themselves, also in a CUDA graph."""
        states = [part.state for part in self.shared.values() if isinstance(part, torch.optim.Optimizer)]
        return sum(float(next(iter(state.values()))["step"]) for state in states if state)

    def of_process(self) -> dict[str, Any]:
        """This process's own part, on the CPU."""
        own = {name: _state_of(part) for name, part in self._own.items()}
        return to_host({"envs": [env_state(env) for env in self._envs], "rng": rng_state(self._device), **own})

    def load(self, resumed: Resumed, world: World) -> None:
        """Restores everything from the checkpoint.

        Checkpoints of a GPU have no Game Boys: after them new episodes begin, with a memory of zeros.

        Raises: StateError if the checkpoint is of another task, network or number of processes.
        """
        state, path = resumed.state, resumed.path
        assert state is not None
        if (others := len(state["processes"])) != world.size:
            raise StateError(f"checkpoint {path} is of {others} processes, not {world.size}: start as many")
        if found := first_difference(state["env_config"], self._envs[0].config):
            name, was, now = found
            raise StateError(f"checkpoint {path} has another {name} ({was!s:.80}, not {now!s:.80}): give the same")
        saved = state["processes"][world.rank]
        try:
            for name, part in self.shared.items():
                load_weights(part, state[name])
            self._load_own(saved)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"checkpoint {path} is not of this run ({error!r:.80}): give another") from None
        if any(part.get("machines", True) is None for part in saved["envs"]):
            for part in self._own.values():
                if isinstance(part, Tensor):
                    part.zero_()
                elif isinstance(part, Replay):
                    part.cut_episodes()

    def _load_own(self, saved: Mapping[str, Any]) -> None:
        for name, part in self._own.items():
            if part is None or saved[name] is None:
                continue
            if isinstance(part, Tensor):
                check_like(saved[name], part, name)
                part.copy_(saved[name])
            else:
                part.load_state_dict(saved[name])
        for env, of_env in zip(self._envs, saved["envs"], strict=True):
            env.load_state_dict(of_env)
        set_rng_state(saved["rng"], self._device)


def _state_of(part: Tensor | Stateful | None) -> Tensor | dict[str, Any] | None:
    """The form of a part in a checkpoint."""
    return part if part is None or isinstance(part, Tensor) else part.state_dict()
