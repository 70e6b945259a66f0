"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any


@contextmanager
def without_collections() -> Iterator[None]:
    """For a block that imports much. Garbage collections leave out what it makes: half a million objects, and hardly
    any garbage. Looking for some in it while it is imported, and at the end of the process, would take a second."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def door(package: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: a name of `files` is imported from the module that stands there, below gbxcule_puffer,
    `without_collections`."""

    def find(name: str) -> Any:
        if name not in files:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"gbxcule_puffer.{files[name]}"
        with nullcontext() if module in sys.modules else without_collections():
            return getattr(importlib.import_module(module), name)

    return find
