"""gzip files of strangers."""

from __future__ import annotations

import zlib

from gbxcule_puffer.errors import StateError


def gunzip(data: bytes, most: int) -> bytes:
    """The content of a gzip file of at most `most` bytes. Raises: StateError for damage and for more."""
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        found = reader.decompress(data, most)
    except zlib.error:
        raise StateError("is not a gzip file, or damaged") from None
    if not reader.eof:
        raise StateError(f"is cut off, or has more than {most:,} bytes")
    return found
