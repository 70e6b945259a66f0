"""Compiled kernels are loaded as they were written, or compiled anew; a cache that cannot be written is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import warp as wp

from benchmarks.workload import ROOT
from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.build import cache as sources
from gbxcule_puffer.emulator.build import interpreter
from gbxcule_puffer.emulator.launch import Launcher
from gbxcule_puffer.env.step_end import kernels as step_end
from gbxcule_puffer.errors import StorageError
from gbxcule_puffer.kernel_objects import ROOM, SUMS, announce_compiling, as_written

SOURCE = """
import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def kernel_count(a: wp.array(dtype=wp.int32)):
    i = wp.tid()
    a[i] = a[i] + i
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kernel cache of this file's own."""
    start_warp()
    before, folder = wp.config.kernel_cache_dir, tmp_path_factory.mktemp("cache")
    wp.config.kernel_cache_dir = str(folder)
    yield folder
    wp.config.kernel_cache_dir = before


def count(module: Any, device: str = "cpu") -> list[int]:
    """What the kernel leaves, once the module has been loaded again."""
    module.kernel_count.module.unload()
    array = torch.zeros(4, dtype=torch.int32, device=device)
    Launcher(torch.device(device))(module.kernel_count, 4, array)
    return array.tolist()


@pytest.fixture(scope="module")
def compiled(cache: Path) -> tuple[Any, Path]:
    """A module with a kernel, and the folder of its compiled objects."""
    module = sources.import_source("tiny", SOURCE)
    assert count(module) == [0, 1, 2, 3]
    (folder,) = (path for path in cache.glob("wp_*") if path.is_dir())
    return module, folder


def test_compiling_is_announced_where_it_is_done(compiled: tuple[Any, Path]) -> None:
    """Once, and not for what is on the disk."""
    said: list[str] = []
    announce_compiling(lambda: said.append("compiles"))
    assert count(compiled[0]) == [0, 1, 2, 3] and said == []
    for name in ("again", "and_again"):
        count(sources.import_source(name, SOURCE.replace("a[i] + i", f"a[i] + i + {len(name)}")))
        assert said == ["compiles"]


def flip(path: Path, *bits: int) -> None:
    data = bytearray(path.read_bytes())
    for bit in bits:
        data[bit // 8 % len(data)] ^= 1 << bit % 8
    path.write_bytes(data)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "one bit": lambda path: flip(path, 12345),
    "two bits": lambda path: flip(path, 1001, 70001),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "missing": lambda path: path.unlink(),
    "device": link,
    "FIFO": fifo,
    "folder": folder_instead,
}


@pytest.mark.parametrize("suffix", [".o", ".meta", SUMS])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(damage: str, suffix: str, compiled: tuple[Any, Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(compiled[1], folder)
    assert as_written(folder)
    (path,) = (path for path in folder.iterdir() if path.name.endswith(suffix))
    DAMAGES[damage](path)
    assert not as_written(folder)


@pytest.mark.parametrize("name", ["other.sm90.cubin", "other.o", "other.ptx", "other.meta"])
def test_an_object_that_nobody_noted_is_found(name: str, compiled: tuple[Any, Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(compiled[1], folder)
    (folder / name).write_bytes(b"\x7fELF")
    assert not as_written(folder)


def test_a_damaged_kernel_is_compiled_anew(compiled: tuple[Any, Path], capfd: pytest.CaptureFixture[str]) -> None:
    module, folder = compiled
    (path,) = folder.glob("*.o")
    written = path.stat().st_mtime_ns
    assert count(module) == [0, 1, 2, 3]
    assert path.stat().st_mtime_ns == written, "a whole one is not compiled again"

    left = folder.with_name(f"{folder.name}_p1_t2")  # of a process that was killed while it compiled
    left.mkdir()
    path.write_bytes(b"")
    assert count(module) == [0, 1, 2, 3]
    assert "is damaged: its kernels are compiled anew" in capfd.readouterr().err
    assert as_written(folder) and not left.exists()


@pytest.mark.gpu
def test_a_damaged_kernel_of_a_gpu_is_compiled_anew(
    cache: Path, cuda_device: str, capfd: pytest.CaptureFixture[str]
) -> None:
    module = sources.import_source("tiny", f"{SOURCE}\n\n# for a GPU\n")
    before = set(cache.glob("wp_*/*"))
    assert count(module, cuda_device) == [0, 1, 2, 3]
    (path,) = (path for path in set(cache.glob("wp_*/*")) - before if path.suffix in (".cubin", ".ptx"))
    for damage in ("truncated", "empty", "one bit", "two bits", "missing"):
        DAMAGES[damage](path)
        assert count(module, cuda_device) == [0, 1, 2, 3]
        assert "is damaged: its kernels are compiled anew" in capfd.readouterr().err
        assert as_written(path.parent)


def test_a_full_cache_is_one_line(compiled: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    module, folder = compiled
    (folder / SUMS).unlink()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=ROOM - 1))
    with pytest.raises(
        StorageError, match=r"has less than 16 MiB left: set WARP_CACHE_PATH to a folder that can be written"
    ):
        count(module)


def test_damaged_source_is_written_anew(cache: Path) -> None:
    text = "ANSWER = 42\n"
    assert sources.import_source("answer", text).ANSWER == 42
    (path,) = (cache / "gbxcule_puffer").glob("gbxcule_answer_*.py")
    path.write_bytes(b"\xff\xfe")
    del sys.modules[path.stem]
    assert sources.import_source("answer", text).ANSWER == 42
    assert path.read_text() == text


def test_generated_text_is_made_once(cache: Path, tmp_path: Path) -> None:
    """And anew where the code that makes it has changed, or what was kept is damaged."""
    maker, made = tmp_path / "maker.py", list[str]()
    maker.write_text("one")

    def text() -> str:
        return sources.remembered("kept", [maker], lambda: made.append("") or f"made of {maker.read_text()}\n")

    assert [text(), text()] == ["made of one\n"] * 2 and len(made) == 1
    maker.write_text("two")
    assert [text(), text()] == ["made of two\n"] * 2 and len(made) == 2
    for damage in ("truncated", "empty", "one bit", "longer", "missing"):
        before = set((cache / "gbxcule_puffer").glob("gbxcule_kept_*"))
        assert len(before) == 2
        for path in before:
            DAMAGES[damage](path)
        made.clear()
        assert [text(), text()] == ["made of two\n"] * 2 and len(made) == 1
        maker.write_text("one")
        assert text() == "made of one\n" and len(made) == 2
        maker.write_text("two")


def test_kept_sources_are_those_that_are_generated(cache: Path) -> None:
    for size, flat in ((4, False), (interpreter.GROUP_SIZE, True)):
        assert interpreter.source(size, flat) == interpreter.generate(size, flat)
    assert interpreter.source(color=True) == interpreter.generate(interpreter.GROUP_SIZE, False, True)
    for name in step_end.SEQUENCES:
        assert step_end.source(name) == step_end.generate(name)


def test_generated_code_leaves_no_bytecode(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    name = sources.import_package("pair", {"one": "from PACKAGE_NAME.two import X\n", "two": "X = 3\n"})
    assert __import__(f"{name}.one").one.X == 3
    assert not list(cache.rglob("*.pyc"))


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = os.environ | {"WARP_CACHE_PATH": str(tmp_path / "file")}
    command = [sys.executable, "-m", "gbxcule_puffer", "play", str(ROOT / "roms" / "homeward.gb")]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "kernel cache" in done.stderr and "set WARP_CACHE_PATH" in done.stderr
