"""Readers of files that may come from anybody: sizes are known before anything is read, nothing is executed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import pickletools
import re
import tomllib
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.files.kinds import Kind, StrPath, file_type

TEXT_LIMIT = 4 * 2**20  # bytes of a text or JSON file, where the caller gives no other limit
MAX_DEPTH = 16  # lists and objects inside of each other in JSON
LARGEST = 2**1023  # whole numbers beyond it are no float's
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # may be half of a character, which nothing can print
_OF_TENSORS = re.compile(r"collections OrderedDict|torch._utils _rebuild_tensor_v2|torch \w+Storage|torch Size")


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
    """The content of a UTF-8 text file, without the byte order mark that some editors write.

    Raises: kind.error.
    """
    try:
        return read_bytes(path, kind, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind.bad(path, f"is damaged (no UTF-8 text at byte {error.start})") from None


def read_json(path: StrPath, kind: Kind, limit: int = TEXT_LIMIT) -> object:
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
        article = "an" if kind.name[0] in "aeiou" else "a"
        raise kind.bad(path, f"is not {article} {kind.name} file{reason}")
    if version is not None and (type(found.get("version")) is not int or found["version"] != version):
        raise kind.bad(path, f"has version {_short(found.get('version'))}, not {version}", again=True)
    return found


def parse_json(text: str | bytes, path: StrPath, kind: Kind) -> object:
    """JSON text from the file at `path`.

    Raises: kind.error for damaged text, numbers that are infinite or larger than a float can be, and more than
    MAX_DEPTH levels.
    """
    try:
        found = json.loads(text, parse_constant=_not_finite, parse_float=_finite, parse_int=_whole)
        level = [found] if isinstance(found, dict | list) else []
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
    raise ValueError(f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else _not_finite(text)


def _whole(text: str) -> int:
    value = int(text)
    if abs(value) > LARGEST:
        raise ValueError(f"a number has {len(text)} digits")
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The content of TOML text.

    Raises: ValueError, with one line that says what is wrong; also for numbers that are larger than a float can be.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("too many brackets inside of each other") from None
    except ValueError:  # Python converts 4,300 digits at most
        raise ValueError("a number has too many digits") from None
    level: list[object] = [content]
    while level:
        if any(type(each) is int and abs(each) > LARGEST for each in level):
            raise ValueError("a number has more than 300 digits")
        groups = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [each for group in groups for each in group]
    return content


def _short(value: object) -> str:
    """A value from a file as an error quotes it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read_array(path: StrPath, kind: Kind, dtype: DTypeLike, ndim: int, limit: int) -> np.ndarray:
    """The array of an .npy file of at most `limit` bytes, which has `dtype` and `ndim` dimensions; never a pickle.

    Raises: kind.error.
    """
    data = read_bytes(path, kind, limit)
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python comments on odd text in a header; here it is read or refused
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
    """Read what torch.save wrote into a file of at most `limit` bytes: tensors, numbers and text in lists and dicts.
    Nothing in it is compressed, so that it takes no more memory than the file is large; nothing in it is executed.

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
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch comments on odd files; here they are read or refused
                return torch.load(file, map_location="cpu", weights_only=True)
        except OSError:
            raise
        except zipfile.BadZipFile:
            raise kind.bad(path, f"is damaged, or not a {kind.name}") from None
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
    """Inflate what zlib compressed, if that is exactly `size` bytes, else None; never makes more than `size` + 1."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, size + 1)
    except (zlib.error, MemoryError, OverflowError):
        return None
    return found if len(found) == size and stream.eof and not stream.unused_data else None
