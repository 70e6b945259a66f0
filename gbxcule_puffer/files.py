"""Files, read and written: a write is whole or leaves what was there, a read is bounded; each error is one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import pickletools
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StorageError

StrPath = str | os.PathLike[str]
TEXT_LIMIT = 4 * 2**20  # bytes of a text or JSON file, where the caller gives no other limit
MAX_DEPTH = 16  # lists and objects inside of each other in JSON
MAKE_ROOM = "make room, or give another path"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # may be half of a character, which nothing can print
_OF_TENSORS = re.compile(r"collections OrderedDict|torch._utils _rebuild_tensor_v2|torch \w+Storage|torch Size")
PART = ".part-"  # how temporary files begin; they stand beside what they are to replace
FILE_TYPES = {
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file as errors name it, the exception for a bad one, and how to get a good one."""

    name: str
    error: type[GBxCuLEError]
    remedy: str

    def bad(self, path: object, fault: str, again: bool = False) -> GBxCuLEError:
        """The exception for the file at `path`; `again`: the remedy has to be applied once more."""
        return self.error(f"{self.name} {path}: {fault}: {self.remedy}{' again' if again else ''}")


def file_type(mode: int) -> str:
    """`st_mode` in words; empty for a regular file."""
    return "" if stat.S_ISREG(mode) else FILE_TYPES.get(stat.S_IFMT(mode), "no regular file")


# Reading


@contextlib.contextmanager
def opened(path: StrPath, kind: Kind, limit: int) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file of at most `limit` bytes, to read, and its size; nothing that blocks is opened.

    Raises: kind.error, also for what the operating system refuses inside of the block.
    """
    try:
        if found := file_type(os.stat(path).st_mode):  # opening some devices does something already
            raise kind.bad(path, f"is {found}, not a file")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if found := file_type(status.st_mode):
                raise kind.bad(path, f"is {found}, not a file")
            if status.st_size > limit:
                raise kind.bad(path, f"has {status.st_size:,} bytes, at most {limit:,} are allowed")
            yield file, status.st_size
    except OSError as error:
        raise kind.bad(path, f"cannot be read ({error.strerror})") from None
    except MemoryError:
        raise kind.bad(path, "does not fit into memory") from None
    except GBxCuLEError:
        raise
    except ValueError as error:  # a zero byte in the path
        raise kind.bad(path, f"cannot be read ({error})") from None


def read_bytes(path: StrPath, kind: Kind, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; nothing larger is read.

    Raises: kind.error.
    """
    with opened(path, kind, limit) as (file, size):
        data = file.read(size + 1)
    if len(data) != size:
        raise kind.bad(path, "changed while it was read")
    return data


def read_text(path: StrPath, kind: Kind, limit: int = TEXT_LIMIT) -> str:
    """The content of a UTF-8 text file.

    Raises: kind.error.
    """
    try:
        return read_bytes(path, kind, limit).decode()
    except UnicodeDecodeError as error:
        raise kind.bad(path, f"is damaged (no UTF-8 text at byte {error.start})") from None


def read_json(path: StrPath, kind: Kind, limit: int = TEXT_LIMIT) -> Any:
    """The content of a JSON file, of which only the depth and the finiteness of its numbers are checked.

    Raises: kind.error.
    """
    return parse_json(read_text(path, kind, limit), path, kind)


def read_object(
    path: StrPath, kind: Kind, format: str | None = None, version: int | None = None, limit: int = TEXT_LIMIT
) -> dict[str, Any]:
    """The object that a JSON file holds, whose keys `format` and `version` have the values given, where not None.

    Raises: kind.error.
    """
    found = read_json(path, kind, limit)
    if not isinstance(found, dict) or (format is not None and found.get("format") != format):
        reason = "" if format is None else f" (format is not {format!r})"
        raise kind.bad(path, f"is no {kind.name} file{reason}")
    if version is not None and (type(found.get("version")) is not int or found["version"] != version):
        raise kind.bad(path, f"has version {_short(found.get('version'))}, not {version}", again=True)
    return found


def parse_json(text: str | bytes, path: StrPath, kind: Kind) -> Any:
    """JSON text from the file at `path`.

    Raises: kind.error for damaged text, numbers that are not finite, and more than MAX_DEPTH levels.
    """
    try:
        found = json.loads(text, parse_constant=_not_finite, parse_float=_finite)
        level = [found]
        for _ in range(MAX_DEPTH):
            level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
            level = [part for part in level if isinstance(part, dict | list)]
            if not level:
                if _SURROGATE.search(text if isinstance(text, str) else text.decode("latin-1")):
                    json.dumps(found, ensure_ascii=False).encode()
                return found
    except RecursionError:
        pass
    except (ValueError, MemoryError) as error:
        raise kind.bad(path, f"is damaged ({error or 'too large for memory'})") from None
    raise kind.bad(path, f"is damaged (more than {MAX_DEPTH} levels of lists and objects)")


def _not_finite(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else _not_finite(text)


def _short(value: Any) -> str:
    """A value from a file as an error quotes it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read_array(path: StrPath, kind: Kind, dtype: Any, ndim: int, limit: int) -> np.ndarray:
    """The array of an .npy file of at most `limit` bytes, which has `dtype` and `ndim` dimensions; never a pickle.

    Raises: kind.error.
    """
    data = read_bytes(path, kind, limit)
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran_order, found = readers[version](stream)
    except Exception:  # neither numpy nor the parser behind it has a common type for what a damaged header raises
        raise kind.bad(path, "is damaged (no header of an .npy array)") from None
    if found != dtype or len(shape) != ndim or fortran_order:
        raise kind.bad(path, f"is not an array of {np.dtype(dtype)} with {ndim} dimensions in C order")
    payload = data[stream.tell() :]
    count = 1
    for length in shape:
        count *= max(0, length)
    if count * found.itemsize != len(payload):
        raise kind.bad(path, f"is damaged (shape {shape} does not fit its {len(payload):,} bytes)")
    return np.frombuffer(payload, found).reshape(shape).copy()


def read_tensors(path: StrPath, kind: Kind, limit: int) -> Any:
    """What torch.save wrote into a file of at most `limit` bytes: tensors, numbers and text in lists and dicts. Nothing
    in it is compressed, so that it takes no more memory than the file is large; nothing in it is executed.

    Raises: kind.error.
    """
    import torch

    with opened(path, kind, limit) as (file, size):
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                    raise ValueError("it is compressed, as torch.save never does")
                if sum(entry.file_size for entry in entries) > size:
                    raise ValueError("its parts are larger than the file")
                # torch.load does not look at the archive's checksums: a flipped bit in a weight would go unnoticed.
                if damaged := archive.testzip():
                    raise ValueError(f"checksum of {damaged} does not match")
                for entry in entries:
                    if entry.filename.endswith(".pkl"):
                        _check_pickle(archive.read(entry))
            file.seek(0)
            return torch.load(file, map_location="cpu", weights_only=True)
        except OSError:
            raise
        except Exception as error:  # neither zipfile nor torch.load has a common type for what a damaged file raises
            reason = "" if isinstance(error, pickle.UnpicklingError) else str(error).partition("\n")[0]
            raise kind.bad(path, f"is damaged ({reason or 'it is not of torch.save'})") from None


def _check_pickle(data: bytes) -> None:
    """Raises: ValueError where a pickle names more than what tensors are made of: torch.load itself would let it make
    tensors of any size."""
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in ("STACK_GLOBAL", "INST", "GLOBAL") and not _OF_TENSORS.fullmatch(str(argument)):
            raise ValueError(f"it holds {argument or opcode.name}, not only tensors, numbers and text")


def inflate(data: bytes, size: int) -> bytes | None:
    """What zlib compressed, if that is exactly `size` bytes, else None; never makes more than `size` + 1."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, size + 1)
    except (zlib.error, MemoryError, OverflowError):
        return None
    return found if len(found) == size and stream.eof and not stream.unused_data else None


# Writing


def check_target(path: StrPath) -> Path:
    """The path of a file to be written.

    Raises: ConfigError where something stands there that is not a regular file, or its folder cannot be one.
    """
    path = Path(path)
    try:
        found = file_type(os.lstat(path).st_mode)
    except FileNotFoundError:
        found = ""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be written ({reason}): give another path") from None
    if found:
        raise ConfigError(f"{path} is {found}, and only a regular file is ever replaced: give another path")
    return path


@contextlib.contextmanager
def new_file(path: StrPath, remedy: str = MAKE_ROOM) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block ends well; its `name` is where it is until then,
    with the same suffix. After an exception `path` is as it was.

    Raises: ConfigError as `check_target`; StorageError with the `remedy` where the disk is full or not writable.
    """
    path = check_target(path)
    part = path.with_name(f"{PART}{secrets.token_hex(4)}{path.suffix}")
    with _failing_in_one_line(path, remedy), _folders(path.parent):
        try:
            with open(part, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            check_target(path)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        _sync_folder(path.parent)


def write_bytes(path: StrPath, data: bytes, remedy: str = MAKE_ROOM) -> None:
    """Write a file whole or not at all; raises as `new_file`."""
    with new_file(path, remedy) as file:
        file.write(data)


def write_text(path: StrPath, text: str, remedy: str = MAKE_ROOM) -> None:
    """Write a UTF-8 text file whole or not at all; raises as `new_file`."""
    write_bytes(path, text.encode(), remedy)


def write_json(path: StrPath, content: Any, remedy: str = MAKE_ROOM) -> None:
    """Write an indented JSON file whole or not at all; raises as `new_file`."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", remedy)


@contextlib.contextmanager
def new_folder(path: StrPath, replaces: Collection[str] = (), remedy: str = MAKE_ROOM) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends well. A folder that stands there already is replaced if
    it holds nothing but regular files of the names in `replaces`. After an exception `path` is as it was.

    Raises: ConfigError where something else stands there; StorageError as `new_file`.
    """
    path = Path(path)
    part, old = (path.with_name(f"{PART}{secrets.token_hex(4)}") for _ in range(2))
    _check_folder(path, replaces)
    with _failing_in_one_line(path, remedy), _folders(path.parent):
        try:
            part.mkdir()
            yield part
            if _check_folder(path, replaces):
                path.rename(old)
            try:
                part.rename(path)
            except OSError:
                if old.exists():
                    old.rename(path)
                raise
        finally:
            for folder in (part, old):
                _remove(folder)
        _sync_folder(path.parent)


def _check_folder(path: Path, replaces: Collection[str]) -> bool:
    """Whether a folder that may be replaced stands at `path`.

    Raises: ConfigError where something else stands there.
    """
    if not os.path.lexists(path):
        return False
    if path.is_symlink() or not path.is_dir():
        raise ConfigError(f"{path} is {file_type(os.lstat(path).st_mode) or 'a file'}, not a folder: give another path")
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name not in replaces or not entry.is_file(follow_symlinks=False):
                raise ConfigError(f"{path} holds {entry.name}, which would be lost: give another path")
    return True


def _remove(folder: Path) -> None:
    """Removes a folder of files; a link in it is removed, not followed."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            entry.unlink()
        folder.rmdir()


@contextlib.contextmanager
def _folders(folder: Path) -> Iterator[None]:
    """`folder`, with those above it, for the block; those that it made go again if the block fails."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for one in missing:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise


@contextlib.contextmanager
def _failing_in_one_line(path: Path, remedy: str) -> Iterator[None]:
    """StorageError for what the operating system refuses; torch.save hides that in a RuntimeError."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise StorageError(f"{path} cannot be written ({cause.strerror or cause}): {remedy}") from None


def _sync_folder(folder: Path) -> None:
    """A renamed file survives a power cut only when its folder has reached the disk too; not all disks can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_parts(folder: Path) -> None:
    """Removes the temporary files that a killed process left in `folder`; call it where no other process writes."""
    for part in folder.glob(f"{PART}*"):
        if part.is_dir() and not part.is_symlink():
            _remove(part)
        else:
            part.unlink(missing_ok=True)
