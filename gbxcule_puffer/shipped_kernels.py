"""Compiled kernels that came with a wheel: an archive of what Warp compiled for the usual CPUs and GPUs.

An object is found by the digest of all that it depends on: Warp's hash of the module (its source, constants, options),
Warp's version, the compiler's, and the target. With another Python source, Warp or target there is none, and the kernel
is compiled.

The archive has a file for each target, itself an archive of objects and Warp's metadata by their keys, so that what
objects have in common is compressed once; and SHA256SUMS with the digests of these files, in the format of
`sha256sum -c`.
"""

from __future__ import annotations

import functools
import hashlib
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import warp as wp

from gbxcule_puffer.errors import StateError, printable
from gbxcule_puffer.files import Kind, read_bytes, write_bytes
from gbxcule_puffer.layout import PACKAGE

ARCHIVE = PACKAGE / "kernels.zip"
SUMS = "SHA256SUMS"
LIMIT = 2**26  # bytes of a file in the archive, and of the archive
KIND = Kind("shipped kernels", StateError, "kernels are compiled instead")
OBJECT, META = ".object", ".meta"
# What reading a damaged archive raises.
DAMAGES = (
    StateError, KeyError, OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile,
    lzma.LZMAError, zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class Shipped:
    """A compiled module. target: the end of its file's name in Warp's cache, .sm90.cubin, or .cpu1a2b3c4d.o with a
    digest of the compiler and the CPU; key: the digest of what it depends on; data: the file; meta: Warp's metadata."""

    target: str
    key: str
    data: bytes
    meta: bytes


def key(module: wp.Module, block_dim: int | None, target: str) -> str:
    """The digest of what a module's object depends on."""
    toolkit = "" if target.endswith(".o") else str(wp.get_cuda_toolkit_version())
    parts = (wp.config.version, toolkit, target, module.get_module_hash(block_dim).hex())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def find(module: wp.Module, block_dim: int | None, target: str) -> Shipped | None:
    """The object of a module; None where there is none, or the archive is damaged."""
    archive = _of_target(target)
    if archive is None:
        return None
    name = key(module, block_dim, target)
    try:
        if f"{name}{OBJECT}" not in archive.namelist():
            return None
        return Shipped(target, name, _read(archive, f"{name}{OBJECT}"), _read(archive, f"{name}{META}"))
    except DAMAGES:
        _say_damaged()
        return None


def write(path: Path, objects: Iterable[Shipped]) -> None:
    """An archive of objects. Equal objects give equal bytes."""
    files: dict[str, dict[str, bytes]] = {}
    for each in objects:
        files.setdefault(each.target, {}).update({each.key + OBJECT: each.data, each.key + META: each.meta})
    packed = {target: _packed(found, zipfile.ZIP_STORED) for target, found in files.items()}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {target}\n" for target, data in sorted(packed.items()))
    write_bytes(path, _packed({**packed, SUMS: sums.encode()}, zipfile.ZIP_LZMA))


def _packed(files: dict[str, bytes], compression: int) -> bytes:
    """A zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return made.getvalue()


@functools.cache
def _of_target(target: str) -> zipfile.ZipFile | None:
    """The archive of a target's objects; None where there is none. A damaged one is said once, and not used."""
    if not ARCHIVE.exists():
        return None
    try:
        outer = zipfile.ZipFile(io.BytesIO(read_bytes(ARCHIVE, KIND, LIMIT)))
        lines = [line.split("  ") for line in _read(outer, SUMS).decode().splitlines()]
        sums = {name: digest for digest, name in lines}
        if target not in sums:
            return None
        data = _read(outer, target)
        if hashlib.sha256(data).hexdigest() != sums[target]:
            raise KIND.bad(ARCHIVE, f"{target} has another digest than when it was written")
        return zipfile.ZipFile(io.BytesIO(data))
    except DAMAGES:
        _say_damaged()
        return None


@functools.cache
def _say_damaged() -> None:
    """One line for the whole process."""
    print(printable(f"{ARCHIVE} is damaged: kernels are compiled instead"), file=sys.stderr)


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of the archive."""
    if archive.getinfo(name).file_size > LIMIT:
        raise KIND.bad(ARCHIVE, f"{name} is too large")
    return archive.read(name)
