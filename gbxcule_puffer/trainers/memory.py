"""The memory that a run will allocate, in words, and a refusal before it does where that cannot fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from gbxcule_puffer.errors import DeviceError


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on `device`."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    # Free pages alone would leave out the page cache, which Linux gives up when asked.
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) * 1024


def describe_memory(parts: Mapping[str, int], device: torch.device, remedy: str) -> str:
    """One line with the bytes of each part, their sum and what is free.

    Raises: DeviceError with that line and the `remedy` when the sum is more than what is free.
    """
    total, free = sum(parts.values()), free_bytes(device)
    listed = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
    line = f"memory estimate on {device}: {listed}; {size_text(total)} in all beside the env, {size_text(free)} free"
    if total > free:
        raise DeviceError(f"{line}: {remedy}")
    return line


def size_text(size: int) -> str:
    """Bytes with a unit, e.g. 1.5 GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
