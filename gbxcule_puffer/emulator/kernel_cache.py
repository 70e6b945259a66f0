"""The home of generated kernel source: a module named by its digest, written once, safe for processes at once.

Warp caches the compiled kernels itself, by the digest of the source. The source has to be a file, because Warp reads
functions back with inspect.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import warp as wp

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.files import write_text

PACKAGE = "PACKAGE_NAME"


def directory() -> Path:
    """The folder of generated modules, inside Warp's own cache folder (WARP_CACHE_PATH moves both)."""
    start_warp()
    return Path(str(wp.config.kernel_cache_dir)) / "gbxcule_puffer"


def import_source(name: str, source: str) -> ModuleType:
    """Write `source` as a module named `name`_digest, unless it is there, and import it."""
    full_name = f"gbxcule_{name}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    path = directory() / f"{full_name}.py"
    _write(path, source)
    return _import(full_name, path)


def import_package(name: str, sources: Mapping[str, str]) -> str:
    """Write `sources`, dotted module name to text, as a package named `name`_digest, and import it empty. In the texts
    the package is called PACKAGE; those of its folders are named `folder.__init__`. Returns its name."""
    digest = hashlib.sha256("".join(f"{stem}\n{text}" for stem, text in sorted(sources.items())).encode())
    full_name = f"gbxcule_{name}_{digest.hexdigest()[:12]}"
    for stem, text in {**sources, "__init__": ""}.items():
        _write(directory() / full_name / f"{stem.replace('.', '/')}.py", text.replace(PACKAGE, full_name))
    _import(full_name, directory() / full_name / "__init__.py")
    return full_name


def _write(path: Path, source: str) -> None:
    """A file with `source`; another process sees the whole file or none."""
    if not path.exists() or path.read_text() != source:
        write_text(path, source)


def _import(full_name: str, path: Path) -> ModuleType:
    """The module or package at `path`."""
    if full_name in sys.modules:
        return sys.modules[full_name]
    spec = importlib.util.spec_from_file_location(full_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    spec.loader.exec_module(module)
    return module
