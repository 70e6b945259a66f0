"""Counter-based random numbers on the device: a function of (seed, stream, env, counter), with no state to save."""

from __future__ import annotations

import torch

SHIFT = 24
RANGE = 1 << SHIFT
# One stream for each thing that is sampled.
START, STICKY, ARCHIVE_COIN, ARCHIVE_SLOT, TASK, STAGGER = range(6)


class CounterRandom:
    """Samples one integer 0..RANGE-1 an env; the same for every device and every num_envs, without allocation.

    Env i samples as env first_env + i of a larger batch does.
    """

    def __init__(self, num_envs: int, device: torch.device, first_env: int = 0) -> None:
        self.lane = torch.arange(first_env, first_env + num_envs, dtype=torch.int64, device=device)
        self.value = torch.zeros_like(self.lane)
        self._shifted = torch.zeros_like(self.lane)

    def sample(self, seed: int, stream: int, counter: torch.Tensor) -> torch.Tensor:
        """The value of each env for its `counter` (num_envs,) int64; valid until the next sample."""
        torch.mul(self.lane, 1 << 32, out=self.value)
        self.value.add_(counter).bitwise_xor_((seed * 0x9E3779B97F4A7C15 + stream * 0x632BE59BD9B4E019) & (1 << 62) - 1)
        for _ in range(3):  # the finaliser of MurmurHash3, once more than usual: our counters are small
            torch.bitwise_right_shift(self.value, 33, out=self._shifted)
            self.value.bitwise_xor_(self._shifted).mul_(0x4F51AFD7ED558CCD)
        torch.bitwise_right_shift(self.value, 33, out=self._shifted)
        return self._shifted.bitwise_and_(RANGE - 1)
