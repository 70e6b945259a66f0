"""Devices by name, their memory, threads, and starting Warp without its messages."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
import warp as wp

from gbxcule_puffer.errors import DeviceError
from gbxcule_puffer.provenance import usable_cores


@cache
def start_warp() -> None:
    """`wp.init` in silence: on a machine without a GPU its native part writes to stderr, where our own errors are one
    line, and no option turns that off."""
    wp.config.log_level = wp.LOG_WARNING
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        wp.init()
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def resolve_device(device: str) -> str:
    """`cpu`, `cuda` or `cuda:N` -> the device's full name.

    Raises: DeviceError where it does not exist on this machine.
    """
    try:
        name = torch.device(device)
    except RuntimeError:
        name = None
    if name is None or name.type not in ("cpu", "cuda"):
        raise DeviceError(f"device {device!r} is not supported; use 'cpu', 'cuda' or 'cuda:N'")
    if name.type == "cpu":
        return "cpu"
    start_warp()
    if not torch.cuda.is_available() or not wp.is_cuda_available():
        raise DeviceError(f"device {device!r} needs an NVIDIA GPU and its driver, and none is usable; use 'cpu'")
    torch.cuda.init()  # so that its statistics can be asked for
    index = name.index if name.index is not None else torch.cuda.current_device()
    if index >= torch.cuda.device_count():
        raise DeviceError(
            f"device {device!r} does not exist: this machine has {torch.cuda.device_count()} GPU(s), "
            "give cuda:0 and up, or cpu"
        )
    return f"cuda:{index}"


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on `device`."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    # Free pages alone would leave out the page cache, which Linux gives up when asked.
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) * 1024


def size_text(size: int) -> str:
    """Bytes with a unit, e.g. 1.5 GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Has torch work on one thread inside, on a CPU.

    For many small operations in a row: where torch was imported before this package, its idle threads spin between
    them, and on cores that anything else uses a step then takes five times as long.
    """
    before = torch.get_num_threads()
    if device.type != "cpu" or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def default_threads() -> int:
    """CPU threads of a kernel, where nobody gives a number: all cores, but 1 in a worker process, whose siblings use
    the others."""
    return 1 if multiprocessing.parent_process() is not None else usable_cores()
