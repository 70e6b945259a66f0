"""Files as errors name them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from gbxcule_puffer.errors import GBxCuLEError

StrPath = str | os.PathLike[str]
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
