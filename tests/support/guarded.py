"""An Emulator whose arrays lie between guard pages: whatever reads or writes beside them ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator

PAGE = mmap.PAGESIZE
NO_ACCESS = 0
CANARY = 0xA5
_libc = ctypes.CDLL(None, use_errno=True)


def guarded_rows(rows: np.ndarray, behind: int = 0) -> torch.Tensor:
    """A copy of `rows` (n, size), each between pages without access; `behind` each are that many bytes of CANARY. A
    row ends, with those, where the page behind it begins; a whole number of pages begins behind the page before."""
    count, size = rows.shape[0], rows.nbytes // rows.shape[0]
    used = -(-(size + behind) // PAGE) * PAGE
    step, lead = used + PAGE, used - size - behind
    whole = mmap.mmap(-1, count * step + PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    flat = torch.frombuffer(whole, dtype=torch.uint8).fill_(CANARY)
    for guard in range(count + 1):
        if _libc.mprotect(ctypes.c_void_p(start + guard * step), ctypes.c_size_t(PAGE), NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    typed = flat[PAGE + lead : (count - 1) * step + PAGE + lead + size].view(torch.from_numpy(rows[:0]).dtype)
    itemsize = rows.dtype.itemsize
    result = typed.as_strided((count, size // itemsize), (step // itemsize, 1))
    result.copy_(torch.from_numpy(rows))
    return result


def guarded(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a contiguous tensor that ends where a page without access begins, and one lies before it."""
    return guarded_rows(tensor.contiguous().view(1, -1).numpy()).view(tensor.shape)


class GuardedEmulator(Emulator):
    """Emulator on a CPU with guard pages around everything that its kernels are given, the memory row of each env
    included."""

    def _allocate(self) -> None:
        super()._allocate()
        machine: Any = self.machine
        for name in ("rom", "waits", "code", "op_length", "state", "screen", "skipped"):
            array = guarded(wp.to_torch(getattr(machine, name)))
            if hasattr(self, f"_{name}"):  # the emulator's own view of it
                setattr(self, f"_{name}", array)
            setattr(machine, name, wp.from_torch(array))
        # The data path reads a word at FFFF before it sees that it must not: a byte of the padding, which is the env's.
        self._memory = guarded_rows(self._memory.numpy(), PAGE)
        machine.memory = wp.from_torch(self._memory)
        if self._lanes is not None:
            table = guarded(wp.to_torch(machine.descriptors))
            self._table = table
            machine.descriptors = wp.from_torch(table, dtype=wp.vec4i)
            machine.order = wp.from_torch(guarded(self._lanes.order))
            machine.took = wp.from_torch(guarded(self._lanes.took))
            machine.path = wp.from_torch(guarded(self._lanes.path))

    def check_padding(self) -> None:
        """Raises: AssertionError where something was written behind a memory row."""
        num_envs, row = self._memory.shape
        behind = self._memory.as_strided((num_envs, PAGE), self._memory.stride(), self._memory.storage_offset() + row)
        assert (behind == CANARY).all(), "a byte behind a memory row has changed"
