"""The Task of a run, found again. A run's folder may be a stranger's: the code that it names is run only if the command
line of this machine has named it before, and the file has not changed.

--task makes a note in Warp's cache, a folder that is the user's own and holds code already: the text, the file, and the
file's digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.errors import GBxCuLEError, StateError
from gbxcule_puffer.files import Kind, read_bytes, write_text
from gbxcule_puffer.layout import find_own

LIMIT = 2**23  # bytes of a Task's file
REMEDY = "give it with --task to run it"
KIND = Kind("task", StateError, REMEDY)
Known = dict[str, str]  # task: as it was given; file: its full path; sha256: of its content


def remember(task: str) -> Known:
    """Notes that this Task, whose module has been imported, was given on the command line. Returns the note, for a
    run's folder."""
    where = task.rpartition(":")[0]
    file = (
        str(Path(find_own(where)).resolve())
        if where.endswith(".py")
        else str(getattr(sys.modules[where], "__file__", ""))
    )
    note = {"task": task, "file": file, "sha256": _digest(file)}
    with contextlib.suppress(GBxCuLEError):  # a cache on a read-only disk: --task has to be given again
        write_text(_note(note), json.dumps(note) + "\n")
    return note


def recall(task: str, note: object, source: os.PathLike[str]) -> str:
    """The value of --task that runs the Task of the run in the file `source`, with its `note` there.

    Raises: StateError where it was never run from here, is gone, or has changed.
    """
    text = f"{source} was trained with --task {task!r:.80}"
    known: Known = note if isinstance(note, dict) and set(note) == {"task", "file", "sha256"} else {"task": ""}
    fits = known["task"] == task and all(isinstance(value, str) for value in known.values())
    if not fits or not _note(known).is_file():
        raise StateError(f"{text}, which is code that was not run from here before: {REMEDY}")
    file, where, name = known["file"], *task.rpartition(":")[::2]
    if not os.path.isfile(file):
        raise StateError(f"{text}, but {file} is gone: give it with --task, wherever it is now")
    if _digest(file) != known["sha256"]:
        raise StateError(f"{text}, but {file} has changed since: give it with --task to run it as it is now")
    if where.endswith(".py"):
        return f"{file}:{name}"
    if _file_of(where) is None:
        sys.path.append(str(Path(file).parents[where.count(".") + file.endswith("__init__.py")]))
    if _file_of(where) != file:
        raise StateError(f"{text}, of {file}, but {where} is now {_file_of(where)}: {REMEDY}")
    return task


def _digest(file: str) -> str:
    return hashlib.sha256(read_bytes(file, KIND, LIMIT)).hexdigest()


def notes() -> Path:
    """The folder of all notes."""
    return cache.directory() / "tasks"


def _note(note: Known) -> Path:
    """The file of a note."""
    words = "\n".join(note[name] for name in sorted(note))
    return notes() / hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()


def _file_of(module: str) -> str | None:
    """The file that `module` would be imported from; imports nothing."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__file__", None)
    folders, spec = None, None
    parts = module.split(".")
    for number in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: number + 1]), folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return None if spec is None else spec.origin
