"""The interface of an emulator for tasks, env and trainers; it does not say who steps the Game Boys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.emulator.probes.until import ByteTest
from gbxcule_puffer.emulator.snapshot import Snapshot


class PoolLike(Protocol):
    """Snapshots of single envs in numbered slots, from which envs are restored by mask. Emulator makes a
    pool.SnapshotPool, PyBoyEmulator a PyBoyPool."""

    @property
    def members(self) -> Mapping[str, object]:
        """Arrays with which a kernel can restore an env itself (env/step_end/parts.py); empty if no kernel can."""
        ...

    def reset(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Restore slot slots[i] into each env i with mask[i]; mask (num_envs,) bool, slots (num_envs,) int32."""
        ...

    def save(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Save each env i with mask[i] into slot slots[i]; arguments as in `reset`."""
        ...

    def spare_tensors(self) -> dict[str, torch.Tensor]:
        """The content of the spare slots, for a saved state; empty if there are none."""
        ...

    def check_spare(self, tensors: Mapping[str, torch.Tensor], filled: torch.Tensor) -> None:
        """Raises: StateError unless `tensors` (as returned by spare_tensors) are envs in the `filled` slots."""
        ...


class MirrorLike(Protocol):
    """A copy of the machines' memory, in which only the watched bytes are up to date after a step."""

    def watch(self, first: int, end: int) -> None:
        """Keep the bytes at these offsets of the memory rows up to date from now on."""
        ...

    def write_back(self, first: int, end: int) -> None:
        """Write the bytes at these offsets of the memory rows to the machines."""
        ...


class Launches(Protocol):
    """The launcher of an emulator's steps on a GPU: gpu.schedule.steps.GpuSteps."""

    @property
    def unsettled(self) -> bool:
        """True while the launch shape may still change from step to step; a CUDA graph keeps the shape that it
        recorded."""
        ...

    @property
    def begun(self) -> torch.cuda.Event:
        """Event before the Game Boys of the last step. Work that waits for it leaves the whole GPU to them."""
        ...


class EmulatorLike(Protocol):
    """`num_envs` Game Boys with the same ROM: Emulator, or baselines.pyboy_emulator.PyBoyEmulator."""

    @property
    def cartridge(self) -> Cartridge:
        """The ROM and its header."""
        ...

    @property
    def rom_sha256(self) -> str:
        """SHA-256 of the ROM image, hex."""
        ...

    @property
    def model(self) -> str:
        """'dmg' or 'cgb'."""
        ...

    @property
    def num_envs(self) -> int:
        """Number of Game Boys."""
        ...

    @property
    def device(self) -> str:
        """The device of all tensors: 'cpu' or 'cuda:N'."""
        ...

    @property
    def frames_per_step(self) -> int:
        """Frames per step."""
        ...

    @property
    def release_after_frames(self) -> int:
        """Frames after which a step releases its buttons."""
        ...

    @property
    def pixel_step(self) -> int:
        """1 if `screen` has all pixels, 2 if it has every second pixel of every second line."""
        ...

    @property
    def screen(self) -> torch.Tensor:
        """Pictures after the last step, shape (num_envs, 144 / pixel_step, 160 / pixel_step), uint8 shades 0-3, 0 the
        lightest; changed in place by `step`."""
        ...

    @property
    def colors(self) -> torch.Tensor:
        """Pictures of Game Boy Colors after the last step, shape as of `screen`, uint16 colors of 15 bits; changed in
        place by `step`."""
        ...

    @property
    def locked(self) -> torch.Tensor:
        """1 if an illegal opcode has locked an env, shape (num_envs,), int32; changed in place by `step`."""
        ...

    @property
    def memory(self) -> torch.Tensor:
        """Memory rows on the device (hardware.py), shape (num_envs, row), uint8. If there is a `mirror`, only the bytes
        that it watches are up to date."""
        ...

    @property
    def frames(self) -> torch.Tensor:
        """Frames of the last step, shape (num_envs,), int32; changed in place by `step`."""
        ...

    def lcd_registers(self) -> Mapping[str, torch.Tensor]:
        """LCDC, SCY, SCX, WY and WX as they are now, by their names in the state, shape (num_envs,), int32 each. Every
        call returns the same tensors."""
        ...

    @property
    def mirror(self) -> MirrorLike | None:
        """The updater of `memory` if that is a copy; None if it is the machines' own memory."""
        ...

    @property
    def launches(self) -> Launches | None:
        """The launcher on a GPU; None if the Game Boys run on the CPU."""
        ...

    def step(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        """Press `buttons` (num_envs,) uint8, run release_after_frames frames, release them, run to frames_per_step, or
        to the `frames` (num_envs,) int32 of each env. Where both are the same number, a step holds its buttons to its
        end, and the next one releases those that it does not hold."""
        ...

    def hook(self, bank: int | None, address: int) -> None:
        """Count from the next step on how often the instruction at `address` of a bank of ROM begins."""
        ...

    def executions(self, bank: int | None, address: int) -> torch.Tensor:
        """Counts of a hooked instruction in the last step, shape (num_envs,), int32."""
        ...

    def end_steps_when(self, tests: Sequence[ByteTest]) -> None:
        """End each env's steps early from now on, one frame after the first frame at whose end all tests pass."""
        ...

    def reset(self) -> None:
        """Return all envs to the end of the frame in which the cartridge starts."""
        ...

    def save(self, env: int | None = None) -> Snapshot:
        """The state of all envs, or of one."""
        ...

    def load(self, snapshot: Snapshot, env: int | None = None) -> None:
        """Restore a snapshot of all envs, or a snapshot of one env into env `env` (into all if None)."""
        ...

    def check(self, snapshot: Snapshot) -> None:
        """Raises: StateError if a snapshot cannot be loaded."""
        ...

    def pool(self, snapshots: Sequence[Snapshot], spare: int = 0) -> PoolLike:
        """A pool of snapshots of single envs, followed by `spare` slots for live envs."""
        ...

    def registers(self, env: int = 0) -> dict[str, int]:
        """All scalar state fields of one env by name (state.py)."""
        ...

    def read_memory(self, env: int, address: int, length: int, bank: int | None = None) -> np.ndarray:
        """`length` bytes from `address` as the CPU's bus shows them, or from a bank of ROM or cartridge RAM; uint8, no
        side effects, IO registers read 0."""
        ...

    def state_hash(self) -> np.ndarray:
        """A hash of registers, memory and picture of each env, shape (num_envs,), uint64."""
        ...

    def facts(self) -> dict[str, Any]:
        """Hooks and the like, which no snapshot has, for copies of an env."""
        ...

    def take_facts(self, facts: dict[str, Any]) -> None:
        """Takes what `facts` returned."""
        ...

    def close(self) -> None:
        """Release threads and memory; the emulator cannot be used afterwards."""
        ...
