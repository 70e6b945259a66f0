"""Installs all of PufferLib 3.0.0 and this package, with the versions of constraints.txt, into the Python that runs it.

PufferLib's own installation fetches raylib for its games, which works only with an open network, and without them
(NO_OCEAN) trips over a name that it has not set: it is set for it here. Its CUDA kernel is built where nvcc and a torch
with CUDA are; nvcc alone would make it fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILD = ("torch", "numpy", "setuptools", "wheel", "cython")
OURS = ("warp-lang", "pyboy", "libcst", "tyro", "tensorboard", "pillow", "pytest")


def pip(*arguments: str, **environment: str) -> None:
    """`pip install` with the constraints; ends this program where it fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(FOLDER / "constraints.txt"), *arguments]
    code = subprocess.run(command, env={**os.environ, **environment}).returncode
    if code:
        sys.exit(code)


def path_without_nvcc() -> str:
    """PATH without the folders that hold nvcc."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if shutil.which("nvcc", path=folder) is None)


def main() -> None:
    pip(*BUILD)
    pip(*OURS)
    script = "import torch; print(torch.version.cuda or '')"
    cuda = subprocess.check_output([sys.executable, "-c", script], text=True).strip()
    path = os.environ.get("PATH", "") if cuda else path_without_nvcc()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text("import builtins\n\nbuiltins.c_extension_paths = []\n")
        pip("--no-build-isolation", "pufferlib==3.0.0", NO_OCEAN="1", PYTHONPATH=folder, PATH=path)
    # Last, so that the command `puffer` is ours, which hands PufferLib's modes on to PufferLib.
    pip("--no-deps", "--no-build-isolation", "--editable", str(FOLDER.parents[2]))


if __name__ == "__main__":
    main()
