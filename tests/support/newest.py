"""Installs this package with the newest release of everything that it needs into the Python that runs this:
`make test-newest`.

Names and extras come from setup.py, without versions, but for PyBoy and Warp, on whose versions the results depend. JAX
comes for its test, pufferlib-core last: it requires one torch, to which its C++ part is bound, so it is built here for
the torch that is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXACT = ("pyboy", "warp-lang")
CORE = "pufferlib-core"


def pip(*arguments: str, **environment: str) -> None:
    """`pip install`; ends this program where it fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    code = subprocess.run(command, env={**os.environ, **environment}).returncode
    if code:
        sys.exit(code)


def wanted() -> list[str]:
    """What the package and its tests need, as pip takes it."""
    found = []
    for requirement in requires("gbxcule-puffer") or ():
        needed, _, marker = requirement.partition(";")
        if "extra" in marker and "dev" not in marker:
            continue
        name = re.split(r"[<>=!~\[ ]", needed.strip())[0]
        if name != CORE:
            found.append(needed.strip() if name in EXACT else name)
    return found


def main() -> None:
    pip("--upgrade", "pip", "setuptools", "wheel")
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    pip("--upgrade", *wanted(), "jax[cpu]")
    pip("--no-deps", "--no-build-isolation", "--no-binary", CORE, CORE, PUFFERLIB_DISABLE_CUDA="1")


if __name__ == "__main__":
    main()
