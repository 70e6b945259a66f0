"""A run's folder: made, found again, and locked by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
from pathlib import Path

from gbxcule_puffer.errors import ConfigError, GBxCuLEError, StateError, StorageError
from gbxcule_puffer.files import Kind, read_object, remove_parts
from gbxcule_puffer.files.kinds import file_type

CHECKPOINT, MANIFEST, METRICS, LOCK = "checkpoint.pt", "manifest.json", "metrics.jsonl", "run.lock"
WRITTEN = ("*.pt", "*.json*", "events.out.*", LOCK, "media", "media/*")
WRITTEN += ("start", "stage", "stages", "start/*", "stage/**/*", "stages/**/*", "milestones", "milestones/*")
NOTE = "task_code"  # in checkpoint and manifest: known_tasks.Known of the run's --task
RUN = Kind("run", StateError, "give the folder of a run")


def newest_run(runs: Path, exp_name: str) -> Path:
    """The trainer's run in the folder `runs` that was last started or resumed.

    Raises: ConfigError if there is none.
    """
    found = []
    for manifest in runs.glob(f"*/{MANIFEST}"):
        try:
            if read_object(manifest, RUN).get("exp_name") == exp_name:
                found.append((manifest.stat().st_mtime, manifest.parent))
        except (OSError, GBxCuLEError):  # no run of ours
            continue
    if not found:
        raise ConfigError(f"--resume: {runs} has no run of {exp_name}: give the run's folder")
    return max(found)[1]


class RunFolder:
    """The folder at `path`, created if it is missing, and locked until `leave`.

    The lock is the operating system's, and ends with the process.
    """

    def __init__(self, path: Path, resumes: bool) -> None:
        """Raises: ConfigError if the folder has a run that is not to be resumed, is not a folder, contains links, or is
        in use by another process; StorageError if it is not writable."""
        self.path = path
        try:
            self.made = not path.exists()
            self._made_above = [each for each in path.parents if not each.exists()]
            path.mkdir(parents=True, exist_ok=True)
            _refuse_links(path)
            self._lock = self._open_lock()
        except FileExistsError:
            found = file_type(os.lstat(path).st_mode) or "a file"
            raise ConfigError(f"run folder {path} is {found}: give another --run-dir") from None
        except NotADirectoryError:
            raise ConfigError(f"run folder {path} cannot be made below a file: give another --run-dir") from None
        except OSError as error:
            raise StorageError(f"run folder {path} cannot be written ({error.strerror}): give another") from None
        held = [name for name in (CHECKPOINT, METRICS, MANIFEST) if (path / name).exists()]
        if held and not resumes:
            self.leave()
            raise ConfigError(f"run folder {path} holds a run ({held[0]}): give another --run-dir, or --resume")
        remove_parts(path)

    def is_bare(self) -> bool:
        """True if the run has neither a record nor a checkpoint."""
        records = self.path / METRICS
        return not (self.path / CHECKPOINT).exists() and not (records.exists() and records.stat().st_size)

    def leave(self, remove: bool = False) -> None:
        """Releases the lock; with `remove` deletes the folder, if it was created here, and those above it that were
        created with it and are empty."""
        (self.path / LOCK).unlink(missing_ok=True)
        os.close(self._lock)
        if remove and self.made:
            shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):  # another run is there
                for folder in self._made_above:
                    folder.rmdir()

    def _open_lock(self) -> int:
        """The lock file's descriptor, once this process has the lock."""
        while True:
            lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(lock, 200, 0).decode(errors="replace").strip()
                os.close(lock)
                text = f"run folder {self.path} is in use by {holder or 'another process'}"
                raise ConfigError(f"{text}: wait for it, or give another --run-dir") from None
            if os.fstat(lock).st_nlink:  # else its holder has removed it meanwhile
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return lock
            os.close(lock)


def _refuse_links(folder: Path) -> None:
    """Raises: ConfigError if a file that a run writes is a link, through which it would write elsewhere."""
    for pattern in WRITTEN:
        for path in folder.glob(pattern):
            if path.is_symlink():
                raise ConfigError(f"run folder {folder} has a symbolic link in it, {path}: put the file itself there")
