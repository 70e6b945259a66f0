"""Tasks as users' code: found by name, made, and run. An exception in it becomes one line."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from gbxcule_puffer.errors import ConfigError, GBxCuLEError, is_out_of_memory
from gbxcule_puffer.layout import find_own
from gbxcule_puffer.tasks.task import Task, TaskSpec

LIBRARIES = tuple(
    str(Path(folder)) + os.sep
    for folder in (*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), Path(__file__).parents[1])
)
"""Folders whose code is nobody's Task, unless the Task itself lies there."""


def make_task(spec: TaskSpec) -> Task:
    """The Task: the given Task, or an instance of a class, or of the class named 'package.module:Class' or
    'folder/file.py:Class'.

    Raises: ConfigError if the class does not exist, or cannot be made without arguments.
    """
    if isinstance(spec, Task):
        return spec
    kind = find_class(spec) if isinstance(spec, str) else spec
    with code_of(kind.__name__, kind):
        try:
            return kind()
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # by its own code
            raise ConfigError(f"cannot be made without arguments ({error}): give an instance") from None


@contextmanager
def code_of(name: str, kind: type[Task] | None = None) -> Iterator[None]:
    """Runs a Task's code. An exception becomes a ConfigError of one line, which names the file and line; the exception
    itself is its cause. Our own errors name the Task. Out-of-memory and broken-pipe errors pass through unchanged."""
    try:
        yield
    except GBxCuLEError as error:
        raise type(error)(f"task {name}: {error}") from None
    except BrokenPipeError:
        raise
    except (Exception, SystemExit) as error:
        if is_out_of_memory(error):
            raise
        raise ConfigError(f"task {name}: {_fault(error, kind)}") from error


def _fault(error: BaseException, kind: type[Task] | None) -> str:
    """File, line and function of the Task in which an exception was raised, and the exception's first line."""
    text = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
        return f"{_short(str(error.filename))}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    bases = [] if kind is None else [each.__module__ for each in kind.__mro__ if each not in (Task, object)]
    files = [getattr(sys.modules.get(module), "__file__", None) for module in bases]
    called = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in called if frame.filename in files or not frame.filename.startswith(LIBRARIES)]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{_short(own[-1].filename)}, line {own[-1].lineno}, in {own[-1].name}: {what}" if own else what


def _short(file: str) -> str:
    """A file's path, relative to the current folder if it is inside."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") or not os.path.isfile(file) else relative


def find_class(spec: str) -> type[Task]:
    """The class named by 'module:Class' or 'file.py:Class'."""
    where, colon, name = spec.rpartition(":")
    if not (colon and where and name):
        raise ConfigError(f"task {spec!r:.80} must be package.module:Class or file.py:Class")
    module = _import_file(Path(find_own(where)), spec) if where.endswith(".py") else _import_module(where, spec)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Task)):
        known = [each for each, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, Task)]
        listed = ", ".join(each for each in known if each != "Task")
        fault = "has no such class" if found is None else f"has another kind of {name}"
        raise ConfigError(f"task {spec!r:.80}: {where} {fault}: give one of its Tasks ({listed or 'it has none'})")
    return found


def _import_module(name: str, spec: str) -> ModuleType:
    """A module by name; modules in the current folder are found, too."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"task {spec!r:.80}: {name!r:.60} is not a name of a module")
    first = name.partition(".")[0]
    if first not in sys.modules and importlib.util.find_spec(first) is None:
        sys.path.append(os.getcwd())
    try:
        with code_of(f"{spec!r:.80}"):
            return importlib.import_module(name)
    except ConfigError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{name}.".startswith(f"{missing}."):
            raise
        raise ConfigError(f"task {spec!r:.80}: there is no module {missing!r:.60}: give its file's path") from None


def _import_file(path: Path, spec: str) -> ModuleType:
    """A module by its file; the same file is the same module."""
    full = path.resolve()
    name = f"gbxcule_task_{full.stem}_{abs(hash(str(full)))}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, full)
    if not full.is_file() or found is None or found.loader is None:
        raise ConfigError(f"task {spec!r:.80}: there is no file {path}")
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        with code_of(f"{spec!r:.80}"):
            found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
