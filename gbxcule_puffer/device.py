"""Devices by name, their memory, threads, and the start of Warp without its messages."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
import warp as wp

from gbxcule_puffer import kernel_objects
from gbxcule_puffer.errors import ConfigError, DeviceError, StorageError, is_out_of_memory
from gbxcule_puffer.provenance import usable_cores

CACHE_VARIABLE = "WARP_CACHE_PATH"


@cache
def start_warp() -> None:
    """`wp.init` in silence: without a GPU, its native part writes to stderr, where our errors are one line, and no
    option turns that off. From then on, compiled kernels are checked before they are loaded.

    Raises: StorageError if the folder of the kernel cache cannot be created.
    """
    wp.config.log_level = wp.LOG_WARNING
    if not os.environ.get(CACHE_VARIABLE):
        os.environ.pop(CACHE_VARIABLE, None)  # Warp would take an empty one for the current folder
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        wp.init()
    except OSError as error:
        folder, reason = error.filename or wp.config.kernel_cache_dir, error.strerror or error
        raise StorageError(f"kernel cache {folder} cannot be made ({reason}): {kernel_objects.REMEDY}") from None
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
    kernel_objects.check_before_loading()


def resolve_device(device: str) -> str:
    """`cpu`, `cuda` or `cuda:N` -> the device's full name.

    Raises: DeviceError if it does not exist on this machine.
    """
    try:
        name = torch.device(device)
    except RuntimeError:
        name = None
    if name is None or name.type not in ("cpu", "cuda") or (name.type == "cpu" and name.index is not None):
        mps = " (Warp has no kernels for a Mac's GPU)" if str(device).startswith("mps") else ""
        raise DeviceError(f"device {device!r} is not supported{mps}; use 'cpu', 'cuda' or 'cuda:N'")
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
    """Bytes that can still be allocated on `device`: of the machine's memory, or of the limit of this process's control
    group (its container)."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    # Free pages alone would exclude the page cache, which Linux releases on demand.
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return min(int(facts["MemAvailable"].split()[0]) * 1024, free_in_groups(Path("/proc/self/cgroup"), CGROUPS))


@contextlib.contextmanager
def room_for(needed: int, device: str, name: str, remedy: str) -> Iterator[None]:
    """For a block that allocates `needed` bytes on `device`.

    Raises: DeviceError, before the block or if an allocation in it fails; it names the memory that `name` needs and the
    `remedy`.
    """
    free = free_bytes(torch.device(device))
    text = f"{name} needs {size_text(needed)} of memory on {device}"
    if needed > free:
        raise DeviceError(f"{text}, of which {size_text(free)} is free: {remedy}")
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceError(f"{text}, and an allocation failed: {remedy}") from None


CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 2**63
# Files of control groups, version 2 and version 1: limit, bytes in use, and the statistic of reclaimable bytes.
GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_in_groups(membership: Path, root: Path) -> int:
    """Bytes that the control groups of a process leave, of either version: the least of its own group and the groups
    above it. `membership`: the process's /proc/.../cgroup; `root`: where control groups are mounted."""
    found = [UNLIMITED]
    with contextlib.suppress(OSError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "" or "memory" in controllers.split(","):
                top = root / ("memory" if controllers else "")
                # A container may show its own group as the root, under a path that exists only outside of it.
                groups = [top, *(top / part for part in itertools.accumulate(Path(path).parts[1:], os.path.join))]
                found += [_free_in_group(group) for group in groups]
    return min(found)


def _free_in_group(group: Path) -> int:
    """Bytes that one control group leaves; UNLIMITED if it has no limit or is not visible."""
    for limit, used, reclaimable in GROUP_FILES:
        with contextlib.suppress(OSError, ValueError, KeyError):
            most = int((group / limit).read_text())  # "max" is no number
            statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            return max(0, most - int((group / used).read_text()) + int(statistics[reclaimable]))
    return UNLIMITED


def size_text(size: int) -> str:
    """Bytes with a unit, e.g. 1.5 GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


@contextlib.contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Inside, torch uses one thread on a CPU.

    For many small operations in a row. If torch was imported before this package, its idle threads spin between them;
    on cores that other programs use, a step then takes five times as long.
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


class OneUser:
    """Admits one thread at a time, of the process that made it, until it is closed; `with` it around objects with
    threads or device memory."""

    def __init__(self, name: str) -> None:
        self.name, self.closed = name, False
        self._process, self._lock = os.getpid(), threading.Lock()

    def __enter__(self) -> None:
        """Raises: ConfigError if it is closed, another thread is inside, or the process is a fork, which has none of
        the threads."""
        if self.closed:
            raise ConfigError(f"{self.name} is closed: make another one")
        if self._process != os.getpid():
            raise ConfigError(f"{self.name} cannot run in a fork of the process that made it: make one in the fork")
        if not self._lock.acquire(blocking=False):
            raise ConfigError(f"{self.name} runs in another thread at this moment: give each thread its own")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def default_threads() -> int:
    """CPU threads of a kernel, if no number is given: all cores, but 1 in a worker process, whose siblings use the
    others."""
    return 1 if multiprocessing.parent_process() is not None else usable_cores()
