"""Generated kernel source: modules named by their digest, written once, safe with several processes.

Warp itself caches the compiled kernels by the digest of the source (kernel_objects.py checks them). The source has to
be a file, because Warp reads functions with inspect. Bytecode is not cached, because nothing could check it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import warp as wp

from gbxcule_puffer.device import start_warp
from gbxcule_puffer.files import write_text
from gbxcule_puffer.kernel_objects import REMEDY

PACKAGE = "PACKAGE_NAME"


def directory() -> Path:
    """The folder of generated modules, inside Warp's own cache folder (WARP_CACHE_PATH moves both)."""
    start_warp()
    return Path(str(wp.config.kernel_cache_dir)) / "gbxcule_puffer"


def import_source(name: str, source: str) -> ModuleType:
    """Write `source` as a module named `name`_digest, if it does not exist, and import it."""
    full_name = f"gbxcule_{name}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    path = directory() / f"{full_name}.py"
    _write(path, source)
    return _import(full_name, path)


def import_package(name: str, sources: Mapping[str, str]) -> str:
    """Write `sources`, dotted module name to text, as a package named `name`_digest, and import it empty. The texts
    call the package PACKAGE; its folders are named `folder.__init__`. Returns the package's name."""
    digest = hashlib.sha256("".join(f"{stem}\n{text}" for stem, text in sorted(sources.items())).encode())
    full_name = f"gbxcule_{name}_{digest.hexdigest()[:12]}"
    for stem, text in {**sources, "__init__": ""}.items():
        _write(directory() / full_name / f"{stem.replace('.', '/')}.py", text.replace(PACKAGE, full_name))
    _import(full_name, directory() / full_name / "__init__.py")
    return full_name


def remembered(name: str, makers: Iterable[Path], make: Callable[[], str]) -> str:
    """The text that `make` returns. It is kept as a file, and read from there as long as the files `makers`, the code
    that makes it, are unchanged and the text has its digest."""
    text = recall(name, makers)
    if text is None:
        text = make()
        keep(name, makers, text)
    return text


def recall(name: str, makers: Iterable[Path]) -> str | None:
    """The text of `keep`, None where there is none, or one that is damaged."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        noted, _, text = _path_of(name, makers).read_text().partition("\n")
        if noted == hashlib.sha256(text.encode()).hexdigest():
            return text
    return None


def keep(name: str, makers: Iterable[Path], text: str) -> None:
    """Keep a text that the code in the files `makers` has made."""
    write_text(_path_of(name, makers), f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}", REMEDY)


def _path_of(name: str, makers: Iterable[Path]) -> Path:
    """The file of a text that is kept."""
    digest = hashlib.sha256(f"{sys.version} {metadata.version('libcst')}".encode())
    for path in makers:
        digest.update(path.read_bytes())
    return directory() / f"gbxcule_{name}_made_by_{digest.hexdigest()[:12]}.txt"


def _write(path: Path, source: str) -> None:
    """A file with `source`; another process sees the whole file or none."""
    with contextlib.suppress(OSError):
        if path.is_file() and path.read_bytes() == source.encode():
            return
    write_text(path, source, REMEDY)


def _import(full_name: str, path: Path) -> ModuleType:
    """The module or package at `path`."""
    if full_name in sys.modules:
        return sys.modules[full_name]
    if _finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder)  # for the imports between the package's modules
    folder = [str(path.parent)] if path.stem == "__init__" else None
    loader = _FromSource(full_name, str(path))
    spec = importlib.util.spec_from_file_location(full_name, path, loader=loader, submodule_search_locations=folder)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    loader.exec_module(module)
    return module


class _FromSource(SourceFileLoader):
    """Compiles the source each time."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _finder(folder: str) -> FileFinder:
    """Imports from the folder of generated modules; an entry of sys.path_hooks."""
    if not Path(folder).is_relative_to(directory()):
        raise ImportError(f"{folder} has no generated modules")
    return FileFinder(folder, (_FromSource, [".py"]))
