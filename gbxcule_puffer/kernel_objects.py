"""Compiled kernels on disk: their digests are checked before Warp loads them; a kernel that has changed is compiled
again.

Warp's cache has a folder per module of kernels. Its objects (.o, .cubin, .ptx) and metadata (.meta) are loaded into the
process as they are. SHA256SUMS beside them has their digests, in the format of `sha256sum -c`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warp as wp

from gbxcule_puffer.errors import StateError, StorageError, printable
from gbxcule_puffer.files import Kind, read_bytes, read_text, write_bytes, write_text

SUMS = "SHA256SUMS"
LOADED = (".o", ".cubin", ".ptx", ".meta")  # suffixes of the files that are loaded
LIMIT = 2**28  # bytes of one of them
ROOM = 2**24  # the most bytes of a module: on a full disk the compiler would end the process
KIND = Kind("compiled kernel", StateError, "it is compiled anew")
REMEDY = "set WARP_CACHE_PATH to a folder that can be written"
_announced: list[Callable[[], None]] = []  # by announce_compiling, until it has been called


def announce_compiling(announce: Callable[[], None]) -> None:
    """Has `announce` be called, once, before the next kernel that is compiled in this process, if any is."""
    _announced[:] = [announce]


def check_before_loading() -> None:
    """Checks every module of Warp's when it is loaded, in this process; call it once.

    Afterwards `wp.Module.load`, and so every first launch, raises StorageError if a kernel must be compiled and the
    cache is not writable.
    """
    load, loaded = wp.Module.load, weakref.WeakValueDictionary()

    @functools.wraps(load)
    def checked(
        module: wp.Module,
        device: wp.Device,
        block_dim: int | None = None,
        binary_path: os.PathLike[str] | None = None,
        **rest: Any,
    ) -> object:
        name = module.get_module_identifier(block_dim)
        key = (name, str(device))
        if binary_path is not None or key in loaded:
            return load(module, device, block_dim, binary_path, **rest)
        folder = Path(str(wp.config.kernel_cache_dir)) / name
        with _writing(folder.parent), _locked(folder):
            if not as_written(folder):
                _remove(folder)
                _check_room(folder.parent)
                while _announced:
                    _announced.pop()()
            found = load(module, device, block_dim, **rest)
            if found is not None:
                _note(folder)
                loaded[key] = found
        return found

    setattr(wp.Module, "load", checked)  # noqa: B010  a type checker sees another function in a plain assignment


@dataclass(frozen=True)
class CpuObject:
    """A function that is compiled for a CPU. path: of its object, below the kernel cache; sha256: of the object;
    symbol: its name in it."""

    path: str
    sha256: str
    symbol: str

    def file(self) -> Path:
        """The object."""
        return Path(str(wp.config.kernel_cache_dir)) / self.path

    def runs_here(self) -> bool:
        """True where it was compiled for a CPU like this one; the names of objects say for which."""
        return self.path.endswith(_object_suffix(_cpu_flags()))


def compile_cpp(source: str, symbol: str, folder: Path) -> CpuObject:
    """Compile C++ without headers for this machine's CPU, with Warp's compiler, into a folder in the kernel cache."""
    flags = _cpu_flags()
    with tempfile.TemporaryDirectory(prefix="gbxcule_cpp_") as scratch:
        text, built = Path(scratch) / "source.cpp", Path(scratch) / "built.o"
        text.write_text(source)
        build: Any = wp._src.build  # pyright: ignore
        build.build_cpu(str(built), str(text), extra_flags=flags)
        data = built.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    path = folder / f"{symbol}_{digest[:16]}{_object_suffix(flags)}"
    write_bytes(path, data, REMEDY)
    return CpuObject(str(path.relative_to(str(wp.config.kernel_cache_dir))), digest, symbol)


def _cpu_flags() -> str:
    """The compiler's flags for kernels on a CPU."""
    return wp._src.context._resolve_cpu_compiler_flags(None, wp.config.cpu_compiler_flags)  # pyright: ignore


def _object_suffix(flags: str) -> str:
    """The end of the names of objects for this CPU, as Warp's have it."""
    return f".cpu{wp._src.context._get_cpu_target_hash(flags)}.o"  # pyright: ignore


@functools.cache
def load_address(found: CpuObject) -> int:
    """The address of a compiled function.

    Raises: StateError if the object is not there, or is another one.
    """
    path = found.file()
    data = read_bytes(path, KIND, LIMIT)
    if hashlib.sha256(data).hexdigest() != found.sha256:
        raise KIND.bad(path, "has another digest than when it was compiled")
    llvm: Any = wp._src.context.runtime.llvm  # pyright: ignore
    handle = f"gbxcule_{found.sha256}".encode()
    if llvm.wp_load_obj_from_bytes(data, len(data), handle, wp.config.legacy_cpu_linker) != 0:
        raise KIND.bad(path, "cannot be loaded")
    return int(llvm.wp_lookup(handle, found.symbol.encode()))


def as_written(folder: Path) -> bool:
    """True if SHA256SUMS has the current digests of all of a folder's objects."""
    try:
        lines = [line.split("  ") for line in read_text(folder / SUMS, KIND).splitlines()]
        return lines == [[_digest(path), path.name] for path in _objects(folder)]
    except (OSError, StateError):
        return False


def _objects(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in LOADED)


def _digest(path: Path) -> str:
    return hashlib.sha256(read_bytes(path, KIND, LIMIT)).hexdigest()


def _note(folder: Path) -> None:
    """Writes SHA256SUMS, unless it is already correct."""
    text = "".join(f"{_digest(path)}  {path.name}\n" for path in _objects(folder))
    with contextlib.suppress(StateError):
        if read_text(folder / SUMS, KIND) == text:
            return
    write_text(folder / SUMS, text, REMEDY)


def _remove(folder: Path) -> None:
    """Removes a file in place of a module's folder, and the leftovers of killed processes."""
    if (folder / SUMS).exists():
        print(printable(f"{folder} is damaged: its kernels are compiled anew"), file=sys.stderr)
    for path in [folder, *folder.parent.glob(f"{folder.name}_p*")]:  # Warp compiles in folders named after processes
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _check_room(cache: Path) -> None:
    if shutil.disk_usage(cache).free < ROOM:
        raise StorageError(f"kernel cache {cache} has less than {ROOM // 2**20} MiB left: {REMEDY}, or make room")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time uses a module's folder; the others wait for the compiled objects. Without a lock if none
    can be created: then nothing is compiled there either."""
    try:
        descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _writing(cache: Path) -> Iterator[None]:
    """Raises StorageError for errors of the operating system."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"kernel cache {cache} cannot be written ({reason}): {REMEDY}") from None
