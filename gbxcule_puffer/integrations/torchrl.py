"""The environments for TorchRL: a batch-locked EnvBase whose tensors stay on the env's device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch

from gbxcule_puffer.env.options import signature
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.registry import create
from gbxcule_puffer.tasks.observe.pictures import PICTURE
from gbxcule_puffer.tasks.observe.pixels import signed

try:
    from tensordict import TensorDict, TensorDictBase  # pyright: ignore[reportMissingImports]
    from torchrl.data import (  # pyright: ignore[reportMissingImports]
        Bounded,
        Categorical,
        Composite,
        MultiCategorical,
        Unbounded,
    )
    from torchrl.envs import EnvBase  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ConfigError(f"TorchRL is not installed ({error}): pip install torchrl") from None

if TYPE_CHECKING:
    from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
    from gbxcule_puffer.env import GBxCuLEEnv

PIXELS = "pixels"  # the pictures' key, as TorchRL's own envs have it


class GameBoyTorchRL(EnvBase):
    """`num_envs` Game Boys as one EnvBase with batch_size (num_envs,); `options` are GBxCuLEEnv's arguments: rom, and
    EnvOptions; or game, variant and levels of a folder (docs/games.md).

    The pictures have the key `pixels`; other parts of an observation have their own keys. `step` returns the last
    observation of an episode that ends, and `reset` with a mask the first of the next, as TorchRL requires.

    Raises: ConfigError and the errors of the env.
    """

    def __init__(self, env: str = "gbxcule", num_envs: int = 1, device: str = "cpu", **options: Any) -> None:
        """env: a name of `env_creator`."""
        own = {"info_mode": "none", **options, "io": "torch"}
        self._env: GBxCuLEEnv | PyBoyPufferVec = create(env, num_envs=num_envs, device=device, **own)
        super().__init__(device=self._env.device, batch_size=[num_envs])
        self._generator = torch.Generator().manual_seed(self._env.options.seed or 0)
        self._began = torch.zeros(num_envs, dtype=torch.bool, device=self.device)  # by themselves, in the last step
        space, batch = self._env.layout.space, (num_envs,)
        parts = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {PICTURE: space}
        specs = {_key(name): _observed(part, num_envs, self.device) for name, part in parts.items()}
        self.observation_spec = Composite(specs, shape=batch, device=self.device)
        codec = self._env.codec
        if codec.factors:
            shape = torch.Size([num_envs, len(codec.factors)])
            self.action_spec = MultiCategorical(codec.factors, shape=shape, device=self.device, dtype=torch.int64)
        else:
            self.action_spec = Categorical(codec.num_actions, shape=batch, device=self.device, dtype=torch.int64)
        self.reward_spec = Unbounded(shape=(num_envs, 1), device=self.device, dtype=torch.float32)
        flag = {"n": 2, "shape": (num_envs, 1), "dtype": torch.bool, "device": self.device}
        ends = {name: Categorical(**flag) for name in ("done", "terminated", "truncated")}
        self.done_spec = Composite(ends, shape=batch, device=self.device)

    @property
    def env(self) -> GBxCuLEEnv | PyBoyPufferVec:
        """The env itself: its stages, RAM and statistics."""
        return self._env

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        if mask is None:
            self._env.reset(seed=int(torch.randint(2**31 - 1, (), generator=self._generator)))
        else:
            # Envs whose episode ended are at the start of the next one already.
            self._env.reset_envs(mask.flatten() & ~self._began)
        self._began = torch.zeros_like(self._began)
        false = torch.zeros((*self.batch_size, 1), dtype=torch.bool, device=self.device)
        ends = {"done": false, "terminated": false.clone(), "truncated": false.clone()}
        return self._told(self._env.observations, **ends)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        _, rewards, terminals, truncations, _ = self._env.step(tensordict["action"])
        self._began = terminals | truncations
        parts = {"reward": rewards, "terminated": terminals, "truncated": truncations, "done": self._began}
        ends = {name: part[:, None].clone() for name, part in parts.items()}
        return self._told(self._env.final_observation, **ends)

    def _told(self, observations: torch.Tensor, **others: torch.Tensor) -> TensorDictBase:
        """A tensordict of copies: the env overwrites its own tensors."""
        copies = {_key(name): signed(part).clone() for name, part in self._env.layout.split(observations).items()}
        return TensorDict({**copies, **others}, batch_size=self.batch_size, device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._generator.manual_seed(0 if seed is None else seed)

    def close(self, **options: object) -> None:
        """Ends the env and frees its memory."""
        if not self.is_closed:
            self._env.close()
        super().close(**options)


def _key(name: str) -> str:
    return PIXELS if name == PICTURE else name


def _observed(space: gymnasium.Space, num_envs: int, device: torch.device) -> Bounded:
    """The spec of one part of an observation, for all envs."""
    assert isinstance(space, gymnasium.spaces.Box)
    dtype = torch.int16 if space.dtype == np.uint16 else getattr(torch, str(space.dtype))  # torch compares no uint16
    bounds = (torch.as_tensor(bound, device=device).to(dtype) for bound in (space.low, space.high))
    low, high = (bound.expand(num_envs, *space.shape) for bound in bounds)
    return Bounded(low.clone(), high.clone(), shape=(num_envs, *space.shape), dtype=dtype, device=device)


GameBoyTorchRL.__signature__ = signature(GameBoyTorchRL.__init__)
