"""Our Gymnasium VectorEnv as a VecEnv of stable-baselines3, so that its algorithms train on many envs at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]

from gbxcule_puffer.closing import close_for_good
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.gym import AutoresetMode, GameBoyVectorEnv
from gbxcule_puffer.integrations.images import Images


class StableVecEnv(VecEnv):
    """A VecEnv over `envs` with io="numpy" and SAME_STEP; its infos hold what Monitor would add ("episode").

    Pictures are images as stable-baselines3 knows them (images.Images).

    Raises: ConfigError for another io or autoreset mode, and for pictures that are not images.
    """

    def __init__(self, envs: GameBoyVectorEnv) -> None:
        if envs.env.io != "numpy" or envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ConfigError("stable-baselines3 needs make_vec with io='numpy' and autoreset_mode SAME_STEP")
        self._images = Images(envs.env.layout, envs.env.obs)
        self.envs = envs
        self._returns, self._lengths = np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
        self._begin = time.time()
        self._actions: np.ndarray | None = None
        super().__init__(envs.num_envs, self._images.space, envs.single_action_space)

    def reset(self) -> np.ndarray | dict[str, np.ndarray]:
        """Starts an episode in all envs."""
        seed = self._seeds[0]
        self._reset_seeds()
        self._returns[:], self._lengths[:] = 0, 0
        return self._images.of(self.envs.reset(seed=seed)[0])

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions, (num_envs,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One step with the actions kept; ended envs have begun their next episode."""
        assert self._actions is not None  # step_async was called
        observations, rewards, terminations, truncations, info = self.envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        ended = np.logical_or(terminations, truncations)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for index in np.flatnonzero(ended):
            episode = {"r": float(self._returns[index]), "l": int(self._lengths[index])}
            infos[index] = {
                "terminal_observation": self._images.of(info["final_obs"][index]),
                "TimeLimit.truncated": bool(truncations[index]),
                "is_success": bool(terminations[index] & ~self.envs.env.failures[index]),
                "episode": {**episode, "t": round(time.time() - self._begin, 6)},
            }
        self._returns[ended], self._lengths[ended] = 0, 0
        return self._images.of(observations), rewards, ended, infos

    def close(self) -> None:
        """End the env; every other call is an error from then on."""
        self.envs.close()
        close_for_good(self)

    def get_attr(self, attr_name: str, indices: object = None) -> list[Any]:
        """An attribute of the env, once for each index."""
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        """Refuse: all envs share one object."""
        raise NotImplementedError("all envs are one: set the attribute on .envs")

    def env_method(
        self, method_name: str, *method_args: object, indices: object = None, **method_kwargs: object
    ) -> list[Any]:
        """Refuse: all envs share one object."""
        raise NotImplementedError("all envs are one: call the method of .envs")

    def env_is_wrapped(self, wrapper_class: object, indices: object = None) -> list[bool]:
        """False for each index: a single env has no wrappers of its own."""
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """The pictures of all envs."""
        return self.envs.render() or [None] * self.num_envs
