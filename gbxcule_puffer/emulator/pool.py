"""Snapshots on the device: envs are restored from them and saved into them by mask, in one launch, without the host."""

# Kernels: a struct of Warp's is not a class for pyright.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator.launch import fill, words
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.snapshot import Snapshot, profile_of
from gbxcule_puffer.emulator.state import Machine
from gbxcule_puffer.errors import StateError

LANES = 64  # threads that copy one env's memory on a CUDA device


@wp.struct
class Arrays:
    """The state, memory and pictures of machines or snapshots, in words."""

    state: wp.array2d(dtype=wp.int32)  # a column for each machine
    memory: wp.array2d(dtype=wp.int32)  # a row for each machine, as in the next
    screen: wp.array2d(dtype=wp.int32)


@wp.func
def copy_machine(source: Arrays, origin: int, target: Arrays, index: int, lane: int, lanes: int):
    """Copy machine `origin` of `source` to machine `index` of `target`; the lanes share the work."""
    for field in range(lane, source.state.shape[0], lanes):
        target.state[field, index] = source.state[field, origin]
    for word in range(lane, source.memory.shape[1], lanes):
        target.memory[index, word] = source.memory[origin, word]
    for word in range(lane, source.screen.shape[1], lanes):
        target.screen[index, word] = source.screen[origin, word]


@wp.func
def restore_slot(machines: Arrays, pool: Arrays, slot: int, env: int, lane: int, lanes: int):
    """Copy a pool's slot into an env. If the slot does not exist, the env stays as it is."""
    if slot >= 0 and slot < pool.state.shape[1]:
        copy_machine(pool, slot, machines, env, lane, lanes)


@wp.kernel(enable_backward=False)
def kernel_restore(
    machines: Arrays, pool: Arrays, mask: wp.array(dtype=wp.bool), slots: wp.array(dtype=wp.int32), lanes: int
):
    """Copy snapshot slots[env] into each env whose mask is set."""
    env, lane = wp.tid()  # pyright: ignore
    if mask[env]:
        restore_slot(machines, pool, slots[env], env, lane, lanes)


@wp.kernel(enable_backward=False)
def kernel_save(
    machines: Arrays, pool: Arrays, mask: wp.array(dtype=wp.bool), slots: wp.array(dtype=wp.int32), lanes: int
):
    """Copy each env whose mask is set into snapshot slots[env]."""
    env, lane = wp.tid()  # pyright: ignore
    if mask[env] and slots[env] >= 0 and slots[env] < pool.state.shape[1]:
        copy_machine(machines, env, pool, slots[env], lane, lanes)


def arrays(state: torch.Tensor, memory: torch.Tensor, screen: torch.Tensor) -> Arrays:
    """The tensors as Arrays, without a copy."""
    return fill(Arrays(), state=state, memory=words(memory), screen=words(screen))


class WarpEmulator(EmulatorLike, Protocol):
    """An emulator whose envs are arrays of a Warp device."""

    @property
    def machine(self) -> Machine:
        """The arrays (state.Machine)."""
        ...

    @property
    def memory(self) -> torch.Tensor: ...

    def stream(self) -> wp.Stream | None:
        """Torch's current CUDA stream; None on a CPU."""
        ...


class SnapshotPool:
    """Snapshots of single envs of an emulator, on its device, followed by `spare` slots for live envs. `members`: its
    tensors and the emulator's, for env/step_end/parts.py.

    Raises: StateError if a snapshot is of another ROM, or has several envs or another resolution.
    """

    def __init__(self, emulator: WarpEmulator, snapshots: Sequence[Snapshot], spare: int = 0) -> None:
        if not snapshots:
            raise StateError("a snapshot pool needs at least one snapshot: give what Emulator.save(env) returns")
        for snapshot in snapshots:
            emulator.check(snapshot)
            snapshot.check_single()
        self.emulator, self.given, self.size = emulator, len(snapshots), len(snapshots) + spare
        shape = tuple(emulator.screen.shape[1:])

        def upload(arrays: list[np.ndarray], axis: int = 0) -> torch.Tensor:
            filled = np.concatenate(arrays, axis)
            sizes = list(filled.shape)
            sizes[axis] = self.size
            whole = torch.zeros(sizes, dtype=torch.from_numpy(filled).dtype, device=emulator.device)
            whole.narrow(axis, 0, self.given).copy_(torch.from_numpy(filled))
            return whole

        self._state = upload([s.state for s in snapshots], axis=1)
        self._memory = upload([s.memory_for(shape) for s in snapshots])
        self._screen = upload([s.screen_for(shape) for s in snapshots])
        self._machines = arrays(wp.to_torch(emulator.machine.state), emulator.memory, emulator.screen)
        self._pool = arrays(self._state, self._memory, self._screen)
        self.members: dict[str, object] = {"machines": self._machines, "pool": self._pool}
        self._lanes = 1 if emulator.device == "cpu" else LANES

    def reset(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Restore slot slots[i] into each env i with mask[i], with its picture.

        mask (num_envs,) bool, slots (num_envs,) int32, both on the device. Slots must be from 0 to size-1; with any
        other an env stays as it is. No host synchronisation; on CUDA, on torch's current stream.

        Raises: StateError for another shape or type; on a CPU also for a slot that does not exist.
        """
        self._launch(kernel_restore, mask, slots)

    def save(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Save each env i with mask[i] into slot slots[i], with its picture; arguments as in `reset`.

        The slots of the envs in the mask must differ from each other. Raises: as `reset`.
        """
        self._launch(kernel_save, mask, slots)

    def spare_tensors(self) -> dict[str, torch.Tensor]:
        """The content of the spare slots, for a saved state: views, which `save` changes in place."""
        spare = {"state": self._state[:, self.given :], "memory": self._memory[self.given :]}
        spare["screen"] = self._screen[self.given :]
        return {f"pool_{name}": part for name, part in spare.items()} if self.size > self.given else {}

    def check_spare(self, tensors: Mapping[str, torch.Tensor], filled: torch.Tensor) -> None:
        """Raises: StateError unless `tensors` (as returned by spare_tensors) are envs in the slots that are `filled`,
        (spare,) bool."""
        state, memory, screen = (tensors[f"pool_{name}"].cpu() for name in ("state", "memory", "screen"))
        used = filled.cpu()
        if used.any():
            cartridge = self.emulator.cartridge
            parts = (state[:, used].numpy(), memory[used].numpy(), screen[used].numpy())
            profile = profile_of(cartridge)
            Snapshot(cartridge.sha256, *parts, profile=profile, source="the archive").check(cartridge)

    def _launch(self, kernel: object, mask: torch.Tensor, slots: torch.Tensor) -> None:
        shape = (self.emulator.num_envs,)
        if mask.shape != shape or slots.shape != shape or mask.dtype != torch.bool or slots.dtype != torch.int32:
            found = f"{mask.dtype} of {tuple(mask.shape)} and {slots.dtype} of {tuple(slots.shape)}"
            raise StateError(f"mask and slots are {found}: give torch.bool and torch.int32 of {shape}")
        if self.emulator.device == "cpu" and ((slots < 0) | (slots >= self.size)).logical_and_(mask).any():
            raise StateError(f"slots are {slots[mask].tolist()[:8]}: give 0 to {self.size - 1}")
        inputs = [self._machines, self._pool, wp.from_torch(mask), wp.from_torch(slots), self._lanes]
        dim = (self.emulator.num_envs, self._lanes)
        wp.launch(kernel, dim=dim, inputs=inputs, device=self.emulator.device, stream=self.emulator.stream())
