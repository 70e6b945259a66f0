"""Fixtures for all tests: where the shared references are, and the devices that kernels can run on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import SHARED_VARIABLE, shared_folder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared ROMs and references; the test is skipped where there is none."""
    folder = shared_folder()
    if folder is None:
        pytest.skip(f"no shared references: put them beside the repository as ../shared or set {SHARED_VARIABLE}")
    return folder


@pytest.fixture(scope="session")
def manifest(shared: Path) -> dict[str, Any]:
    """manifest.json of the shared ROMs."""
    return json.loads((shared / "roms" / "manifest.json").read_text())


@pytest.fixture(scope="session")
def cuda_device() -> str:
    """The first NVIDIA GPU; the test is skipped where there is none."""
    import warp as wp

    if not wp.is_cuda_available():
        pytest.skip("no NVIDIA GPU")
    return "cuda:0"


@pytest.fixture
def cpu_kernels() -> None:
    """For tests that compare with a CPU: skipped where Warp was installed without its compiler for one."""
    import warp as wp

    if wp._src.context.runtime.llvm is None:  # pyright: ignore
        pytest.skip("this Warp was installed without its CPU compiler, so there is no CPU to compare with")
