"""Counter-based random numbers on the device: a function of (seed, stream, env, counter), with no state to save."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gbxcule_puffer.env.options import LARGEST_SEED, whole_number
from gbxcule_puffer.errors import ConfigError

Seed = int | tuple[int, ...]  # of all envs together, or of each
SHIFT = 24
RANGE = 1 << SHIFT
OF_SEED, OF_STREAM = 0x9E3779B97F4A7C15, 0x632BE59BD9B4E019
# One stream per sampled quantity.
START, STICKY, ARCHIVE_COIN, ARCHIVE_SLOT, TASK, STAGGER, MILESTONE_COIN, MILESTONE_SLOT, SWARM = range(9)


class CounterRandom:
    """Samples one integer 0..RANGE-1 an env; the same for every device and every num_envs, without allocation.

    Env i samples as env first_env + i of a larger batch does. With a seed of its own it samples as the first env of a
    batch with that seed, which one env alone is.
    """

    def __init__(self, num_envs: int, device: torch.device, first_env: int = 0) -> None:
        self.lane = torch.arange(first_env, first_env + num_envs, dtype=torch.int64, device=device)
        self.value = torch.zeros_like(self.lane)
        self._shifted = torch.zeros_like(self.lane)
        self._seeds: Seed = 0
        self._keys = self.lane  # of _seeds

    def sample(self, seed: Seed, stream: int, counter: torch.Tensor) -> torch.Tensor:
        """The value of each env for its `counter` (num_envs,) int64; valid until the next sample."""
        if isinstance(seed, int):
            torch.mul(self.lane, 1 << 32, out=self.value)
            self.value.add_(counter).bitwise_xor_((seed * OF_SEED + stream * OF_STREAM) & (1 << 62) - 1)
        else:
            if seed != self._seeds:  # not while a CUDA graph is recorded
                keys = [seed_of_one * OF_SEED & (1 << 62) - 1 for seed_of_one in seed]
                self._seeds, self._keys = seed, torch.tensor(keys, dtype=torch.int64, device=self.lane.device)
            torch.add(self._keys, stream * OF_STREAM & (1 << 62) - 1, out=self._shifted)
            torch.bitwise_xor(self._shifted.bitwise_and_((1 << 62) - 1), counter, out=self.value)
        for _ in range(3):  # the finaliser of MurmurHash3, once more than usual: our counters are small
            torch.bitwise_right_shift(self.value, 33, out=self._shifted)
            self.value.bitwise_xor_(self._shifted).mul_(0x4F51AFD7ED558CCD)
        torch.bitwise_right_shift(self.value, 33, out=self._shifted)
        return self._shifted.bitwise_and_(RANGE - 1)


def checked_seed(seed: object, num_envs: int) -> Seed:
    """The seed of a reset: a whole number, or one for each env.

    Raises: ConfigError for another one.
    """
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str) and np.ndim(seed) == 1:
        if len(seed) != num_envs:
            raise ConfigError(f"seed has {len(seed)} numbers for {num_envs} envs: give one for each, or one alone")
        return tuple(whole_number("seed", each, -LARGEST_SEED) for each in seed)
    return whole_number("seed", seed, -LARGEST_SEED)
