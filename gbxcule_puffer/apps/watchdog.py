"""A command in a child process that its parent ends if it hangs. PyBoy never returns from an illegal opcode, and until
it does, Python does not react to Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator

POLL_SECONDS = 0.1
START_SECONDS = 60.0  # for PyBoy to start or to save
SLOWEST = 20.0  # PyBoy's frames per second on the slowest machine
GRACE_SECONDS = 5.0  # after a signal; then the child is killed
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
KILLED_WITH_PARENT = 1  # PR_SET_PDEATHSIG
HANGS = (
    "PyBoy has not answered for {seconds:.0f} s: the game may have stopped at an illegal opcode, from which PyBoy "
    "never returns"
)
_deadline = mmap.mmap(-1, 16)  # shared with the parent: when the child is late (0: never), and the seconds it had


def patience(frames: int) -> float:
    """Seconds in which one PyBoy has certainly played `frames`."""
    return START_SECONDS + frames / SLOWEST


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """The block must end within `seconds`, or `supervised` ends the process. Outside of `supervised`, nothing
    happens."""
    _deadline[:] = struct.pack("dd", time.monotonic() + seconds, seconds)
    try:
        yield
    finally:
        _deadline[:] = bytes(16)


def supervised(prog: str, work: Callable[[], int]) -> int:
    """The exit code of `work`, run in a child process; 2 after one line on stderr if it exceeded a `limit`.

    Call it before any thread starts.
    """
    if not hasattr(os, "fork"):
        return work()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal before the child can handle it would be lost: it is blocked until then.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        _end_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = 1
        try:
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    try:
        return _watch(prog, child)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _watch(prog: str, child: int) -> int:
    """Waits for the end of the child, or ends it."""
    deadline, code = float("inf"), 0
    while True:
        found = signal.sigtimedwait({*FORWARDED, signal.SIGCHLD}, POLL_SECONDS)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if found and found.si_signo in FORWARDED:
            os.kill(child, found.si_signo)
            deadline, code = min(deadline, time.monotonic() + GRACE_SECONDS), 128 + found.si_signo
        until, seconds = struct.unpack("dd", _deadline[:])
        if code == 0 and until and time.monotonic() > until:
            print(f"{prog}: {HANGS.format(seconds=seconds)}", file=sys.stderr)
            deadline, code = 0.0, 2
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return code
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if not code:
        print(f"{prog}: ended by signal {number} ({signal.strsignal(number)})", file=sys.stderr)
    return 128 + number


def _end_with_parent() -> None:
    """Makes the kernel end this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(KILLED_WITH_PARENT, signal.SIGKILL)
