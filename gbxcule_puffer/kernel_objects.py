"""Compiled kernels on disk: their digests are checked before Warp loads them; a kernel that has changed is compiled
again, unless it came compiled with the wheel (shipped_kernels.py).

Warp's cache has a folder per module of kernels. Its objects (.o, .cubin, .ptx) and metadata (.meta) are loaded into the
process as they are. SHA256SUMS beside them has their digests, in the format of `sha256sum -c`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warp as wp

from gbxcule_puffer import shipped_kernels
from gbxcule_puffer.errors import StateError, StorageError, printable
from gbxcule_puffer.files import Kind, read_bytes, read_text, write_bytes, write_text
from gbxcule_puffer.progress import Work
from gbxcule_puffer.provenance import usable_cores
from gbxcule_puffer.shipped_kernels import Shipped

SUMS = "SHA256SUMS"
LOADED = (".o", ".cubin", ".ptx", ".meta")  # suffixes of the files that are loaded
LIMIT = 2**28  # bytes of one of them
ROOM = 2**24  # the most bytes of a module: on a full disk the compiler would end the process
KIND = Kind("compiled kernel", StateError, "it is compiled again")
REMEDY = "set WARP_CACHE_PATH to a folder that can be written"
# Where this CPU has the FEATURES, by LLVM's names, kernels are compiled for all CPUs that have them, so that a wheel's
# kernels fit most. In place of Warp's flags, for exactly this CPU and with more inlining: as fast, and compiled sooner.
LEVEL, WARPS = "-target-cpu x86-64-v3", "-march=native"
# Of the native code of a game: the flags that Warp has by default. On x86, LLVM turns `x & ~255 | byte` into a load of
# the low byte, and its pass FixupBWInsts that into one that clears the upper ones, which are still needed: without it.
EXACT = (
    f"{WARPS} -mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000"
    " -mllvm=-slp-recursion-max-depth=4"
    f"{' -mllvm=-fixup-byte-word-insts=0' if platform.machine() in ('x86_64', 'AMD64') else ''}"
)
FEATURES = {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave"}
CPU_BLOCK = 1  # the block size of launches on a CPU
WORK = Work(("compiling", "compiled"), "once for this version on this machine")
_names: weakref.WeakKeyDictionary[wp.Module, str] = weakref.WeakKeyDictionary()  # as people read them, by `prepare`


@dataclass(frozen=True)
class Needed:
    """A kernel that will be launched. name: as people read it; block_dim: threads per block on a GPU."""

    name: str
    kernel: object
    block_dim: int = 256

    @property
    def module(self) -> wp.Module:
        """The module that is compiled with it."""
        kernel: Any = self.kernel
        return kernel.module


def prepare(needed: Sequence[Needed], device: str) -> None:
    """Loads the modules of kernels that have to be compiled, on a GPU at the same time. Those that are compiled load at
    their first launch, in milliseconds."""
    on = wp.get_device(device)
    names = {(each.module, CPU_BLOCK if on.is_cpu else each.block_dim): each.name for each in needed}
    new = [each for each in names if (on.context, each[1]) not in each[0].execs]
    missing = [each for each in new if not _is_there(each[0], on, each[1]) and not _is_shipped(each[0], on, each[1])]
    for module, block_dim in missing:
        _names[module] = names[module, block_dim]
    if not missing:
        return
    with WORK.announced([names[each] for each in missing]):
        if on.is_cpu:  # where each thread would read Warp's headers anew, which takes longer than a small kernel
            for module, block_dim in missing:
                module.load(on, block_dim)
        else:
            with ThreadPoolExecutor(min(len(missing), usable_cores())) as threads:
                loads = [threads.submit(module.load, on, block_dim) for module, block_dim in missing]
            for load in loads:
                load.result()


def check_before_loading() -> None:
    """Checks every module of Warp's when it is loaded, in this process; call it once, after Warp has started.

    Afterwards `wp.Module.load`, and so every first launch, raises StorageError if a kernel must be compiled and the
    cache is not writable.
    """
    load, loaded = wp.Module.load, weakref.WeakValueDictionary()
    flags, features = wp.config.cpu_compiler_flags, wp._src.context._get_cpu_feature_set()  # pyright: ignore
    if (flags is None or WARPS in flags) and features >= FEATURES:
        wp.config.cpu_compiler_flags = LEVEL

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
            compiles = nullcontext()
            if not _is_there(module, device, block_dim):
                if not as_written(folder):
                    _remove(folder)
                _check_room(folder.parent)
                if not _unpack(module, device, block_dim, folder):
                    first = next(iter(module.kernels)).removeprefix("kernel_").replace("_", " ")
                    compiles = WORK.doing(_names.get(module) or first)
            with compiles:
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
        return self.path.endswith(_object_suffix(EXACT))


def compile_cpp(source: str, symbol: str, folder: Path) -> CpuObject:
    """Compile C++ without headers for this machine's CPU, with Warp's compiler, into a folder in the kernel cache."""
    with tempfile.TemporaryDirectory(prefix="gbxcule_cpp_") as scratch:
        text, built = Path(scratch) / "source.cpp", Path(scratch) / "built.o"
        text.write_text(source)
        build: Any = wp._src.build  # pyright: ignore
        build.build_cpu(str(built), str(text), extra_flags=EXACT)
        data = built.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    path = folder / f"{symbol}_{digest[:16]}{_object_suffix(EXACT)}"
    write_bytes(path, data, REMEDY)
    return CpuObject(str(path.relative_to(str(wp.config.kernel_cache_dir))), digest, symbol)


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


def compile_for(needed: Needed, arch: int | None) -> Shipped:
    """A kernel's module compiled for GPUs of an architecture, or for CPUs (None), without loading it."""
    module, block_dim = needed.module, CPU_BLOCK if arch is None else needed.block_dim
    options = module.resolve_options(wp.config, block_dim=block_dim)
    on = wp.get_device("cpu") if arch is None else None
    name = module.get_module_identifier(block_dim)
    file = module._get_compile_output_name(on, arch, use_ptx=False, block_dim=block_dim)
    folder = Path(str(wp.config.kernel_cache_dir)) / name
    with _writing(folder.parent), _locked(folder):
        if not as_written(folder):
            _remove(folder)
        if not (folder / file).is_file():
            module._compile(on, folder, file, arch, use_ptx=False, options=options)
            _note(folder)
        found = (folder / file).read_bytes(), (folder / f"{name}.meta").read_bytes()
    target = file.removeprefix(name)
    return Shipped(target, shipped_kernels.key(module, block_dim, target), *found)


def _is_there(module: wp.Module, device: wp.Device, block_dim: int | None) -> bool:
    """True if a module is compiled for a device, in the cache."""
    folder = Path(str(wp.config.kernel_cache_dir)) / module.get_module_identifier(block_dim)
    return (folder / f"{folder.name}{_target(module, device, block_dim)}").is_file() and as_written(folder)


def _target(module: wp.Module, device: wp.Device, block_dim: int | None) -> str:
    """The end of the name of a module's object."""
    file = module._get_compile_output_name(wp.get_device(device), block_dim=block_dim)
    return file.removeprefix(module.get_module_identifier(block_dim))


def _is_shipped(module: wp.Module, device: wp.Device, block_dim: int | None) -> bool:
    """True if a module's object came with the wheel."""
    return shipped_kernels.find(module, block_dim, _target(module, device, block_dim)) is not None


def _unpack(module: wp.Module, device: wp.Device, block_dim: int | None, folder: Path) -> bool:
    """Put the object that came with the wheel into the cache; False if there is none."""
    found = shipped_kernels.find(module, block_dim, _target(module, device, block_dim))
    if found is None:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / f"{folder.name}{found.target}", found.data, REMEDY)
    write_bytes(folder / f"{folder.name}.meta", found.meta, REMEDY)
    return True


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
        print(printable(f"{folder} is damaged: its kernels are compiled again"), file=sys.stderr)
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
