"""Compiled kernels are loaded as they were written, or compiled again; a cache that cannot be written is one line."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import warp as wp

from benchmarks.workload import ROOT
from gbxcule_puffer import progress, shipped_kernels
from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.build import cache as sources
from gbxcule_puffer.emulator.build import interpreter
from gbxcule_puffer.emulator.launch import Launcher
from gbxcule_puffer.env.step_end import kernels as step_end
from gbxcule_puffer.errors import StorageError
from gbxcule_puffer.kernel_objects import FEATURES, LEVEL, ROOM, SUMS, Needed, as_written, compile_for, prepare
from gbxcule_puffer.progress import Work

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


@pytest.fixture
def said() -> Iterator[list[str]]:
    """The lines about what takes long."""
    lines: list[str] = []
    progress.listen(lines.append)
    yield lines
    progress.listen(None)


def another(number: int) -> Any:
    """A module like the compiled one with another number in it."""
    return sources.import_source("another", SOURCE.replace("a[i] + i", f"a[i] + i + {number} - {number}"))


def test_compiling_is_said_where_it_is_done(compiled: tuple[Any, Path], said: list[str]) -> None:
    """And not for what is on the disk."""
    assert count(compiled[0]) == [0, 1, 2, 3] and said == []
    for number in (1, 2):
        assert count(another(number)) == [0, 1, 2, 3]
        first, last = said
        assert first == "compiling count (once for this version on this machine)"
        assert re.fullmatch(r"compiled count in \d+\.\d s, 1 of 1", last)
        said.clear()


def test_what_is_prepared_is_said_by_name_and_number(compiled: tuple[Any, Path], said: list[str]) -> None:
    names = {"one": another(3), "two": another(4), "there": compiled[0]}
    needed = [Needed(name, module.kernel_count) for name, module in names.items()]
    prepare(needed, "cpu")
    assert said[0] == "compiling one, two (once for this version on this machine)"
    assert [re.sub(r"\d+\.\d", "X", line) for line in said[1:]] == [
        "compiled one in X s, 1 of 2",
        "compiled two in X s, 2 of 2",
    ]
    said.clear()
    prepare(needed, "cpu")
    assert [count(module) for module in names.values()] == [[0, 1, 2, 3]] * 3 and said == []


def test_work_that_another_process_did_is_not_said(said: list[str]) -> None:
    work = Work(("doing", "did"), "once")
    with work.announced(["a", "b"]), work.doing("a"):
        pass
    with work.doing("c"):
        pass
    assert [re.sub(r"\d+\.\d", "X", line) for line in said] == [
        "doing a, b (once)", "did a in X s, 1 of 2", "doing c (once)", "did c in X s, 1 of 1",
    ]  # fmt: skip


def test_kernels_are_compiled_for_a_level_of_cpus(compiled: tuple[Any, Path]) -> None:
    """So that a wheel's serve most; an older CPU has its own."""
    features = wp._src.context._get_cpu_feature_set()  # pyright: ignore
    assert (wp.config.cpu_compiler_flags == LEVEL) == (features >= FEATURES)


@pytest.fixture
def archive(compiled: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A wheel's archive with the module's object, and an empty kernel cache."""
    path = tmp_path / "kernels.zip"
    shipped_kernels.write(path, [compile_for(Needed("tiny", compiled[0].kernel_count), None)])
    monkeypatch.setattr(shipped_kernels, "ARCHIVE", path)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "empty"))
    for cached in (shipped_kernels._of_target, shipped_kernels._say_damaged):
        cached.cache_clear()
    yield path
    for cached in (shipped_kernels._of_target, shipped_kernels._say_damaged):
        cached.cache_clear()


def test_a_wheel_s_kernel_is_not_compiled(
    archive: Path, compiled: tuple[Any, Path], said: list[str], tmp_path: Path
) -> None:
    prepare([Needed("tiny", compiled[0].kernel_count)], "cpu")
    assert count(compiled[0]) == [0, 1, 2, 3] and said == []
    folder = tmp_path / "empty" / compiled[1].name
    assert as_written(folder)
    (ours,), (theirs,) = folder.glob("*.o"), compiled[1].glob("*.o")
    assert ours.name == theirs.name and ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("other", ["version of Warp", "source"])
def test_another_kernel_than_the_wheel_s_is_compiled(
    other: str, archive: Path, compiled: tuple[Any, Path], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = another(5) if other == "source" else compiled[0]
    if other == "version of Warp":
        monkeypatch.setattr(wp.config, "version", "1.19.1")
    assert count(module) == [0, 1, 2, 3] and len(said) == 2


def test_a_kernel_has_a_key_for_each_target(compiled: tuple[Any, Path]) -> None:
    module = compiled[0].kernel_count.module
    assert len({shipped_kernels.key(module, 1, target) for target in (".cpu0.o", ".cpu1.o", ".sm90.cubin")}) == 3


@pytest.mark.parametrize("damage", ["truncated", "empty", "one bit", "longer", "missing", "device", "FIFO", "folder"])
def test_a_damaged_archive_is_not_used(
    damage: str, archive: Path, compiled: tuple[Any, Path], said: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    DAMAGES[damage](archive)
    assert count(compiled[0]) == [0, 1, 2, 3]
    used, warned = not said, "kernels.zip is damaged: kernels are compiled instead\n" in capfd.readouterr().err
    assert (used, warned) == {"longer": (True, False), "missing": (False, False)}.get(damage, (False, True))


def test_a_target_of_the_archive_with_another_digest_is_not_used(
    archive: Path, compiled: tuple[Any, Path], said: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(archive) as before:
        files = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(archive, "w") as after:
        for name, data in files.items():
            after.writestr(name, data if name == shipped_kernels.SUMS else data + b"\0")
    assert count(compiled[0]) == [0, 1, 2, 3] and len(said) == 2
    assert "kernels.zip is damaged: kernels are compiled instead" in capfd.readouterr().err


def test_a_target_that_is_damaged_inside_is_said_once(
    archive: Path, compiled: tuple[Any, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """An object without its metadata, and one that is encrypted, in an archive whose digests are right."""
    module, target = compiled[0].kernel_count.module, ".cpu0.o"
    key = shipped_kernels.key(module, None, target)
    object, meta = key + shipped_kernels.OBJECT, key + shipped_kernels.META
    for files in ({object: b"x"}, {object: b"x", meta: b"x"}):
        inner = shipped_kernels._packed(files, zipfile.ZIP_STORED)
        if meta in files:
            inner = inner.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
        sums = f"{hashlib.sha256(inner).hexdigest()}  {target}\n".encode()
        archive.write_bytes(shipped_kernels._packed({target: inner, shipped_kernels.SUMS: sums}, zipfile.ZIP_STORED))
        for cached in (shipped_kernels._of_target, shipped_kernels._say_damaged):
            cached.cache_clear()
        assert [shipped_kernels.find(module, None, target) for _ in range(2)] == [None, None]
        assert capfd.readouterr().err == f"{archive} is damaged: kernels are compiled instead\n"


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
    assert "is damaged: its kernels are compiled again" in capfd.readouterr().err
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
        assert "is damaged: its kernels are compiled again" in capfd.readouterr().err
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
