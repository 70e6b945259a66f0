"""The condition on RAM that ends a step early, and the frames that steps take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.address_space import row_offset
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.schedule import MOST_COLOR_FRAMES, MOST_FRAMES
from gbxcule_puffer.errors import ActionError, ConfigError


@dataclass(frozen=True)
class ByteTest:
    """A test of a byte of RAM. It passes if the bits of `mask` are from `low` to `high`, or, if it is `turned`, if they
    are not. bank: of cartridge RAM, else None."""

    bank: int | None
    address: int
    low: int
    high: int
    mask: int = 0xFF
    turned: bool = False


class Until:
    """The tests that together end a step early, at first none. frames: of the last step, (num_envs,) int32; rows:
    `tests` as the kernels read them, (tests, 5) int32."""

    def __init__(self, cartridge: Cartridge, num_envs: int, device: str, frames_per_step: int) -> None:
        self.most = MOST_FRAMES if cartridge.model == "dmg" else MOST_COLOR_FRAMES
        self.cartridge, self.frames_per_step = cartridge, frames_per_step
        self.tests: tuple[ByteTest, ...] = ()
        self.rows = torch.zeros((0, 5), dtype=torch.int32, device=device)
        self.frames = torch.full((num_envs,), frames_per_step, dtype=torch.int32, device=device)
        self.are_own = False  # `frames`, of each env, since the last step

    def set(self, tests: Sequence[ByteTest]) -> None:
        """Ends steps early when all `tests` pass; without tests they take all of their frames.

        Raises: ConfigError for a byte that is not plain RAM.
        """
        rows = []
        for test in tests:
            if hw.CART_RAM <= test.address < hw.WRAM and not self.cartridge.mapper.has_plain_ram:
                raise ConfigError(f"address {test.address:04X} has half bytes, which end no step: give WRAM or HRAM")
            offset = row_offset(self.cartridge, test.address, 1, test.bank)
            rows.append((offset, test.mask, test.low, test.high, int(test.turned)))
        self.tests = tuple(tests)
        self.rows = torch.tensor(rows, dtype=torch.int32, device=self.rows.device).view(-1, 5)
        self.frames.fill_(self.frames_per_step)

    def begin_step(self, frames: int | torch.Tensor) -> None:
        """Sets the frames of a step that does not end early, for all envs or for each, (num_envs,) int32."""
        if isinstance(frames, torch.Tensor):
            self.frames.copy_(frames).clamp_(1, self.most)
        elif len(self.rows) or self.are_own:
            self.frames.fill_(frames)
        self.are_own = isinstance(frames, torch.Tensor)

    def holds(self, row: np.ndarray) -> bool:
        """True if a memory row, uint8, passes all tests."""
        return all(
            (low <= (int(row[offset]) & mask) <= high) != turned
            for offset, mask, low, high, turned in self.rows.tolist()
        )


def check_frames(frames: torch.Tensor, num_envs: int) -> None:
    """Raises: ActionError unless `frames` has the frames of each env's step, (num_envs,) int32."""
    if frames.shape != (num_envs,) or frames.dtype != torch.int32:
        found = f"{frames.dtype} of shape {tuple(frames.shape)}"
        raise ActionError(f"frames are {found}: give torch.int32 of shape ({num_envs},)")
