"""Snapshots of single PyBoys, to which others are restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.snapshot import Snapshot


class PyBoyPool:
    """Snapshots to which PyBoys are restored by mask: a PoolLike. `members` is empty, because no kernel can restore a
    PyBoy.

    Raises: StateError if a snapshot cannot be loaded or has several envs.
    """

    def __init__(self, emulator: EmulatorLike, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            emulator.check(snapshot)
            snapshot.check_single()
        self.emulator, self.snapshots = emulator, list(snapshots)
        self.members: dict[str, object] = {}

    def reset(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Restore snapshot slots[i] into each env i with mask[i], picture included."""
        for env in mask.nonzero()[:, 0].tolist():
            self.emulator.load(self.snapshots[int(slots[env])], env)

    def save(self, mask: torch.Tensor, slots: torch.Tensor) -> None:
        """Save each env i with mask[i] into slot slots[i], picture included."""
        for env in mask.nonzero()[:, 0].tolist():
            self.snapshots[int(slots[env])] = self.emulator.save(env)

    def spare_tensors(self) -> dict[str, torch.Tensor]:
        """Nothing: there are no spare slots."""
        return {}

    def check_spare(self, tensors: Mapping[str, torch.Tensor], filled: torch.Tensor) -> None:
        """Nothing to check."""
