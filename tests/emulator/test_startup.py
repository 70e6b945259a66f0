"""Starting: two processes at once compile a kernel once; what one has compiled is what every other one looks for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import warp as wp

from benchmarks.workload import ROOT
from gbxcule_puffer import progress
from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.build.variant import build
from gbxcule_puffer.kernel_objects import Needed, prepare

pytestmark = pytest.mark.kernel

PROGRAM = """
import sys
from tests.emulator.test_startup import compile_one

print("ready", flush=True)
sys.stdin.readline()
for line in compile_one():
    print(line)
"""
START_SECONDS = 300  # a process that hangs fails the test; nothing is asserted about speed


def compile_one() -> list[str]:
    """Compile the smallest kernel of the machine where the cache does not have it. Returns whether this process did,
    and the names under which the steps' kernels are looked for."""
    start_warp()
    said: list[str] = []
    progress.listen(said.append)
    draw = build("datapath").draw
    draw.module.unload()
    prepare([Needed("draw", draw)], "cpu")
    progress.listen(None)
    steps = [build(kernel).step.module for kernel in ("interpreter", "datapath")]
    compiled = [line for line in said if line.startswith("compiled draw")]
    return [f"compiled {len(compiled)}", *(step.get_module_identifier(1) for step in (draw.module, *steps))]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty kernel cache."""
    start_warp()
    before, folder = wp.config.kernel_cache_dir, tmp_path / "cache" / wp.__version__  # as Warp names it
    folder.mkdir(parents=True)
    wp.config.kernel_cache_dir = str(folder)
    yield folder
    wp.config.kernel_cache_dir = before


def files_of(cache: Path) -> dict[str, int]:
    """Every file of a cache, with the time at which it was written."""
    return {str(path.relative_to(cache)): path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


@pytest.mark.long
def test_processes_share_an_empty_cache_and_later_ones_do_not_compile(cache: Path) -> None:
    environment = os.environ | {"WARP_CACHE_PATH": str(cache.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            print(file=process.stdin, flush=True)
            here = compile_one()
            output, errors = process.communicate(timeout=START_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    there = output.split("\n")[:-1]
    assert sorted([here[0], there[0]]) == ["compiled 0", "compiled 1"]
    assert here[1:] == there[1:], "a process would compile what another one has compiled"
    compiled = files_of(cache)
    assert any(name.endswith(".o") for name in compiled), f"no compiled CPU kernel in {sorted(compiled)}"
    assert compile_one() == ["compiled 0", *here[1:]]
    assert files_of(cache) == compiled, "a start with a filled cache wrote to it: it compiled again"
