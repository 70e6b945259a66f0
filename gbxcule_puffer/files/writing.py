"""Writers of files and folders, whole or not at all; they replace regular files and folders of the same kind only."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from gbxcule_puffer.errors import ConfigError, StorageError
from gbxcule_puffer.files.kinds import StrPath, file_type

MAKE_ROOM = "make room, or give another path"
PART = ".part-"  # how temporary files begin; they stand beside what they are to replace


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


def check_output(path: StrPath) -> Path:
    """The path of a file that is written after some work: also looks at the folders above it, as `new_file` will.

    Raises: ConfigError as `check_target`, and where the file's folder is not one, or is read-only.
    """
    path = check_target(path)
    _check_folders(path, path.absolute().parents)
    return path


def check_output_folder(path: StrPath) -> Path:
    """The path of a folder that is made, or written into, after some work.

    Raises: ConfigError where something else stands there, or the folder is read-only.
    """
    path = _check_is_folder(path)
    _check_folders(path, (path.absolute(), *path.absolute().parents))
    return path


def _check_is_folder(path: StrPath) -> Path:
    """Raises: ConfigError where something stands at the path that is not a folder."""
    path = Path(path)
    if os.path.lexists(path) and not path.is_dir():
        raise ConfigError(f"{path} is {file_type(path.lstat().st_mode) or 'a file'}, not a folder: give another path")
    return path


def _check_folders(path: Path, folders: Iterable[Path]) -> None:
    """Raises: ConfigError where the first of the folders that exists is a file, or read-only."""
    for folder in folders:
        if os.path.lexists(folder):
            if not folder.is_dir():
                raise ConfigError(f"{path} cannot be written ({folder} is not a folder): give another path")
            if not os.access(folder, os.W_OK | os.X_OK):
                raise ConfigError(f"{path} cannot be written ({folder} is read-only): give another path")
            return


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


def write_json(path: StrPath, content: object, remedy: str = MAKE_ROOM) -> None:
    """Write an indented JSON file whole or not at all; raises as `new_file`."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", remedy)


def open_append(path: StrPath, remedy: str = MAKE_ROOM) -> TextIO:
    """A text file to add lines to, made if it is not there; raises as `new_file`."""
    path = check_target(path)
    with _failing_in_one_line(path, remedy):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        return open(os.open(path, flags, 0o666), "a", encoding="utf-8")


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


def make_folder(path: StrPath, remedy: str = MAKE_ROOM) -> Path:
    """The folder `path` to write into, made where it is missing, with those above it.

    Raises: ConfigError where something else stands there; StorageError as `new_file`.
    """
    path = _check_is_folder(path)
    with _failing_in_one_line(path, remedy):
        path.mkdir(parents=True, exist_ok=True)
    return path


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
    """StorageError for what the operating system refuses, ConfigError for a path that nothing can be at; torch.save
    hides the cause in a RuntimeError."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        if isinstance(cause, NotADirectoryError | FileExistsError):
            raise ConfigError(f"{path} cannot be written ({cause.strerror}): give another path") from None
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
