"""Where a measurement comes from: versions, git SHA, device names; and how its record is written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT

PACKAGES = ("gbxcule-puffer", "warp-lang", "torch", "numpy", "pyboy", "pufferlib-core")
GIT_SHA_VARIABLE = "GBXCULE_GIT_SHA"


def git_sha() -> str:
    """The commit, `-dirty` where the tree differs from it; $GBXCULE_GIT_SHA stands in where there is no repository."""
    if given := os.environ.get(GIT_SHA_VARIABLE):
        return given
    try:
        sha = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
        status = subprocess.check_output(["git", "status", "--porcelain"], cwd=ROOT, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return sha.strip() + ("-dirty" if status.strip() else "")


def versions() -> dict[str, str]:
    """Python, the packages that decide a result, and CUDA where torch has one."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    import torch

    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    return found


def cpu_name() -> str:
    """The processor's name and how many of its cores this process may use."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {usable_cores()} cores"


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)
