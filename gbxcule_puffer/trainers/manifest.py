"""Where a run comes from: versions, commit and device, and how its JSON files are written."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from gbxcule_puffer import __version__

PACKAGES = ("torch", "warp-lang", "pufferlib-core", "pyboy", "numpy")


def write_json(path: Path, content: Any) -> None:
    """Indented JSON."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """Python and the packages that decide a result."""
    own = {"python": platform.python_version(), "gbxcule-puffer": __version__}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):  # e.g. all of pufferlib instead of its core
            own[name] = metadata.version(name)
    return own


def git_sha() -> str | None:
    """The commit of the source tree, None outside of a repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        return subprocess.check_output(command, cwd=Path(__file__).parent, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def device_name(device: str) -> str:
    """The GPU's name, or the kind and number of CPU cores."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {os.cpu_count()} cores"
