"""Fixtures for all tests: where the shared references are, and the devices that kernels can run on."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

# What starts Game Boys, or launches kernels: tests of a module that imports some of it have the marker `kernel`.
STARTERS = {
    "Emulator", "GBxCuLEEnv", "PyBoyPufferVec", "PyBoyPufferSingle", "PyBoyEmulator", "GameBoys", "PlaySession", "cli",
    "compare", "env_creator", "make", "make_env", "make_test_task", "make_vec", "wp",
}  # fmt: skip

# Of tests with the marker `slow`: folders, and files by their folder, but for those in QUICK. They are trainings,
# random programs and files, what measures speed, and what plays whole games beside PyBoy for minutes.
SLOW_FOLDERS = ("fuzz", "hostile", "suite", "trainers", "integrations/pufferl", "native", "scan", "emulator/pieces")
SLOW_FILES = {
    ".": ("docs_run", "docs_site", "kernel_objects", "wheel"),
    "apps": (
        "bench",
        "bench_suites",
        "game",
        "model_flag",
        "play_in_time",
        "play_memory_displays",
        "plot",
        "profile",
        "record",
        "verify",
        "watch",
    ),
    "baselines": ("pyboy_puffer_vec",),
    "conformance": ("game_boy_color", "sound"),
    "emulator": ("startup",),
    "emulator/gpu": ("draw_later", "fusion", "turn_cost", "warp_of_threads"),
    "emulator/loops": ("counted_loops",),
    "emulator/saves": ("pyboy_color_states",),
    "env": ("objects", "options"),
    "tasks/goals": ("advice",),
    "tasks/ram": ("search",),
}
QUICK = ("flags_text", "replay", "returns")  # in trainers
SLOW = (*SLOW_FOLDERS, *(f"{folder}/test_{name}.py" for folder, names in SLOW_FILES.items() for name in names))
HERE = Path(__file__).parent


@functools.cache
def is_slow(path: Path) -> bool:
    """True for a test file that `make test-quick` leaves out."""
    if path.parent.name == "trainers" and path.stem.removeprefix("test_") in QUICK:
        return False
    return any(path.is_relative_to(HERE / each) for each in SLOW)


def pytest_configure() -> None:
    """No test, and no process that a test starts, looks for native code in the background, which would take a core from
    the others, or runs what another has kept. Tests of native code turn it on."""
    os.environ["GBXCULE_NO_NATIVE"] = "1"
    gc.disable()  # until all tests are collected: nothing of it is garbage, and looking for some takes seconds


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        if isinstance(item, pytest.Function) and STARTERS & vars(item.module).keys():
            item.add_marker("kernel")


@pytest.fixture(autouse=True)
def no_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests without the marker `kernel` load none, so that `make test-fast` is fast."""
    if "warp" not in sys.modules or any(request.node.get_closest_marker(name) for name in ("kernel", "gpu")):
        return

    def refuse(module: Any, *args: object, **options: object) -> None:
        pytest.fail(f"a kernel of {module.name} is loaded: mark the test with pytest.mark.kernel")

    monkeypatch.setattr("warp._src.context.Module.load", refuse)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared ROMs and references; the test is skipped where there is none."""
    from benchmarks.workload import shared_folder  # with torch, which pytest itself does not need
    from tests.support.shared import NONE

    folder = shared_folder()
    if folder is None:
        pytest.skip(NONE)
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
