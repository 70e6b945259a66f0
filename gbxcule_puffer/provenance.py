"""The provenance of a measurement: versions, git SHA, device names, memory."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gbxcule_puffer import __version__
from gbxcule_puffer.layout import CLONE

PACKAGES = ("warp-lang", "torch", "numpy", "pyboy", "pufferlib-core", "pufferlib")
DRIVER = Path("/proc/driver/nvidia/version")
GIT_SHA_VARIABLE = "GBXCULE_GIT_SHA"


def git_sha() -> str:
    """The commit, with `-dirty` if the tree differs from it; without a repository, $GBXCULE_GIT_SHA."""
    if given := os.environ.get(GIT_SHA_VARIABLE):
        return given
    # A wheel is identified by its version; a repository around it would be another project's.
    return "unknown" if CLONE is None else _sha_of(CLONE)


@cache
def _sha_of(clone: Path) -> str:
    """The commit when it is first asked for: what a process has imported stays as it was."""
    options: dict[str, Any] = {"cwd": clone, "text": True, "stderr": subprocess.DEVNULL}
    try:
        sha = subprocess.check_output(["git", "rev-parse", "HEAD"], **options)
        status = subprocess.check_output(["git", "status", "--porcelain"], **options)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return sha.strip() + ("-dirty" if status.strip() else "")


def versions() -> dict[str, str]:
    """Versions of this package, Python, the packages that determine a result, and the operating system's kernel; with a
    GPU also torch's CUDA, the CUDA that compiles our kernels, and the driver."""
    found = {"gbxcule-puffer": __version__, "python": platform.python_version(), **_installed()}
    found[platform.system().lower()] = platform.release()
    import torch

    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    if torch.cuda.is_available():
        import warp as wp

        for name, version in (("nvrtc", wp.get_cuda_toolkit_version()), ("cuda driver", wp.get_cuda_driver_version())):
            if version is not None:
                found[name] = ".".join(map(str, version))
        if DRIVER.is_file() and (match := re.search(r"  (\d+(?:\.\d+)+)  ", DRIVER.read_text())):
            found["nvidia driver"] = match[1]
    return found


@cache
def _installed() -> dict[str, str]:
    """The versions of PACKAGES. Each checkpoint has them, and to read them takes 10 ms."""
    found = dict[str, str]()
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def cpu_name() -> str:
    """The processor's name and how many of its cores this process may use."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [line.split(":", 1) for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0][1].strip() if lines else model
    return f"{model}, {usable_cores()} cores"


def cpu_features() -> set[str]:
    """Names of the processor's instruction sets, as Linux has them; none elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return {name for line in lines if line.startswith("flags") for name in line.split(":", 1)[1].split()}


def device_name(device: str) -> str:
    """The name of `cpu`, `cuda` or `cuda:N`."""
    if not device.startswith("cuda"):
        return cpu_name()
    import torch

    return torch.cuda.get_device_name(device)


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resident_bytes(pids: list[int], peak: bool = False) -> int:
    """Memory that these processes have together now, or the most that each had."""
    field = "VmHWM:" if peak else "VmRSS:"
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        total += next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)
    return total
