"""The exceptions of the package, each with a message of one line that names the input, the fault and the remedy; and
the exit codes."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import sys
from collections.abc import Callable
from types import TracebackType


def printable(text: object) -> str:
    """Text, for example from a file, with escapes for characters that would move the cursor, colour the terminal or
    begin a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


class GBxCuLEError(ValueError):
    """Base of every error that bad input causes; the command line turns it into one line and exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class RomError(GBxCuLEError):
    """A ROM file that is missing, truncated, oversized, damaged or of an unsupported mapper."""


class ActionError(GBxCuLEError):
    """Actions of a wrong dtype, shape, range or device."""


class GoalError(GBxCuLEError):
    """A goal template that is damaged or was made for another configuration."""


class StateError(GBxCuLEError):
    """A snapshot or save state that is damaged or belongs to another ROM or format."""


class DeviceError(GBxCuLEError):
    """A device that does not exist or has too little memory."""


class ConfigError(GBxCuLEError):
    """An option whose value is not allowed."""


class StorageError(GBxCuLEError):
    """A file that cannot be written, as on a full disk; the program ends with exit code 1."""


def exit_code(prog: str, work: Callable[[], int | None], interrupted: str = "interrupted") -> int:
    """Runs a command and returns its exit code: the result of `work` (None is 0), 2 for bad input, 1 for a full disk or
    memory, 130 for Ctrl-C, 141 if nobody reads the output any more. Each of them except the last prints one line on
    stderr."""
    _open_standard_streams()
    atexit.register(gc.freeze)  # collections at the end would visit half a million objects, for a quarter of a second
    try:
        code = work() or 0
        _flush()
        return code
    except KeyboardInterrupt:
        text, code = f"\n{prog}: {interrupted}", 130
    except GBxCuLEError as error:
        text, code = f"{prog}: {error}", 1 if isinstance(error, StorageError) else 2
    except BrokenPipeError:
        text, code = "", 141
    except OSError as error:
        name, reason = error.filename or "the output", error.strerror or error
        code = 2 if error.errno == errno.ENAMETOOLONG else 1  # no disk can have such a file
        text = f"{prog}: {printable(name):.200} cannot be read or written ({reason})"
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        reason = printable(str(error).partition("\n")[0].partition(". ")[0])
        text, code = f"{prog}: the memory is too small{reason and f' ({reason})'}: give fewer --num-envs", 2
    with contextlib.suppress(OSError):
        if text:
            print(text, file=sys.stderr)
        _flush()
        return code
    # A failed write must not be tried again when the interpreter ends.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


def catch_interrupts() -> None:
    """Makes Ctrl-C end a script in one line while its modules are imported, before `exit_code` runs its work. Any other
    exception is shown as before."""
    usual = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print(f"\n{os.path.basename(sys.argv[0])}: interrupted", file=sys.stderr)
        else:
            usual(kind, error, trace)

    sys.excepthook = shown


def is_out_of_memory(error: BaseException) -> bool:
    """True if an allocation failed: torch has its own exception for a GPU, and none for a CPU."""
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)


def _open_standard_streams() -> None:
    """Opens /dev/null for standard streams that are closed; otherwise the next opened file would get their number, and
    their messages."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = (
            stream or open(os.devnull, mode)  # noqa: SIM115
            for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
        )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
