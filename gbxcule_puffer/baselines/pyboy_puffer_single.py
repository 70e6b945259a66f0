"""PyBoy behind the environment's API: the same spaces, rewards, resets and infos, because it is the same code."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, DeviceError


class PyBoyPufferSingle(GBxCuLEEnv):
    """`num_envs` PyBoys in one process as one PufferEnv: the oracle, with everything visible.

    Args: those of GBxCuLEEnv. device must be 'cpu'; num_threads has no effect.
    Raises: what GBxCuLEEnv raises.
    """

    def __init__(self, rom: Rom, num_envs: int = 1, device: str = "cpu", **options: Any) -> None:
        if str(device) != "cpu":
            raise DeviceError(f"device {device!r}: PyBoy runs on the CPU only; use 'cpu'")
        super().__init__(rom, num_envs, device, **options)

    @property
    def emulator(self) -> PyBoyEmulator:
        """The PyBoys.

        Raises: ConfigError before a reset.
        """
        emulator = super().emulator
        assert isinstance(emulator, PyBoyEmulator)
        return emulator

    def registers(self, env: int = 0) -> dict[str, int]:
        """All scalar state fields of one env by name (gbxcule_puffer/emulator/state.py)."""
        return self.emulator.registers(env)

    def read_memory(self, env: int, address: int, length: int) -> np.ndarray:
        """`length` bytes from `address` as the CPU's bus shows them, uint8."""
        return self.emulator.read_memory(env, address, length)

    def cartridge_state(self, env: int = 0) -> dict[str, int | bytes]:
        """Selected banks, mapper registers, clock chip and RAM of one env's cartridge."""
        return self.emulator.cartridge_state(env)

    def task_totals(self) -> list[dict[str, float]]:
        """Sums of the statistics of each Task since the last read (TaskRunner.read_totals)."""
        return self._episodes.tasks.read_totals()

    def may_succeed(self) -> bool:
        """GBxCuLEEnv.has_success, as a method."""
        return self.has_success

    def _make_emulator(self) -> PyBoyEmulator:
        if budget := self.options.instruction_budget:
            raise ConfigError(f"instruction_budget {budget}: PyBoy counts no instructions; leave it out")
        return PyBoyEmulator(
            self.cartridge,
            self.num_agents,
            screen=self.layout.kind.screen,
            frames_per_step=self.schedule.frames_per_step,
            release_after_frames=self.schedule.release_after_frames,
        )
