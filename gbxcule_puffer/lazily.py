"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def door(package: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`: a name of `files` is imported from the module that stands there, below gbxcule_puffer.

    Garbage collections leave out what is imported: half a million objects, and hardly any garbage. Looking for some
    while it is imported and at the end of the process would take a second.
    """

    def find(name: str) -> Any:
        if name not in files:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"gbxcule_puffer.{files[name]}"
        is_first = module not in sys.modules and gc.isenabled()
        if is_first:
            gc.disable()
        try:
            return getattr(importlib.import_module(module), name)
        finally:
            if is_first:
                gc.freeze()
                gc.enable()

    return find
