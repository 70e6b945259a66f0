"""Starting: two processes at once on an empty kernel cache both work, and the next one compiles nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.workload import ROOT

pytestmark = pytest.mark.kernel

PROGRAM = """
import sys
import torch
from gbxcule_puffer.emulator import Emulator

emulator = Emulator(open(sys.argv[1], "rb").read(), 2, "cpu")
for _ in range(3):
    emulator.step(torch.zeros(2, dtype=torch.uint8))
print("hashes", *(f"{int(value):016x}" for value in emulator.state_hash()))
"""
START_SECONDS = 300  # a process that hangs fails the test; nothing is asserted about speed


@pytest.fixture(scope="module")
def rom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 32 KiB image that counts in WRAM: `ld hl,C000; loop: inc [hl]; inc l; jr loop`."""
    image = bytearray(0x8000)
    image[0x100:0x104] = bytes([0x00, 0xC3, 0x50, 0x01])  # nop; jp 0150
    image[0x150:0x157] = bytes([0x21, 0x00, 0xC0, 0x34, 0x2C, 0x18, 0xFC])
    image[0x14D] = -sum(image[0x134:0x14D], 0x14D - 0x134) & 0xFF
    path = tmp_path_factory.mktemp("rom") / "count.gb"
    path.write_bytes(image)
    return path


def start(rom: Path, cache: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"WARP_CACHE_PATH": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(rom)]
    return subprocess.Popen(
        command, env=environment, cwd=cache.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def hashes_printed(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=START_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, output
    return next(line for line in output.splitlines() if line.startswith("hashes"))


def compiled_files(cache: Path) -> dict[str, int]:
    """Every file of the cache but locks, with the time at which it was written."""
    return {str(path.relative_to(cache)): path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


def test_processes_share_an_empty_cache_and_later_ones_do_not_compile(rom: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    together = [start(rom, cache), start(rom, cache)]
    try:
        printed = [hashes_printed(process) for process in together]
    finally:
        for process in together:
            process.kill()
    assert printed[0] == printed[1]
    compiled = compiled_files(cache)
    assert any(name.endswith(".o") for name in compiled), f"no compiled CPU kernel in {sorted(compiled)}"

    assert hashes_printed(start(rom, cache)) == printed[0]
    assert compiled_files(cache) == compiled, "a start with a filled cache wrote to it: it compiled again"
