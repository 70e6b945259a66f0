"""Programs in Python side by side on one or several devices; none goes on without the command that started it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import IO, TypeVar

from gbxcule_puffer.layout import child_environment
from gbxcule_puffer.provenance import usable_cores

Work = TypeVar("Work")
Result = TypeVar("Result")
LOOK_SECONDS = 0.25  # between two looks at running programs
NEVER = 10**12
# Flags of a training whose curve alone counts: no evaluations or films beside it, and no early end.
BARE = {"eval_every_steps": NEVER, "checkpoint_every": NEVER, "media_every": NEVER, "eval_envs": 1, "eval_episodes": 1}
BARE |= {"stop_at_success": 2}
WARM_SECONDS = 0.01  # of a training that only compiles the kernels


class SideBySide:
    """`jobs` programs at a time on each of the `devices`, between which they share this machine's cores."""

    def __init__(self, devices: Sequence[str], jobs: int) -> None:
        self.devices, self.jobs = devices, jobs
        self.stopped = threading.Event()
        self._children: set[subprocess.Popen[bytes]] = set()

    def each(
        self,
        work: Iterable[Work],
        run: Callable[[Work, Sequence[str]], Result],
        together: int = 1,
        after: Callable[[Work, Result], Result] | None = None,
    ) -> list[Result]:
        """The results of `run(one, devices)` of all work, in its order, as many at a time as there is room for;
        devices: of the `together` programs that one starts at the same time, which are at most the jobs of all devices;
        after: is called with a result, needs no device, and returns what counts instead; as many of these at a time
        beside the next runs.

        Where one raises, or this process is interrupted or ended, all programs end, and the error is raised.
        """
        slots, free = self.jobs * list(self.devices), SimpleQueue[Sequence[str]]()
        groups = [slots[first : first + together] for first in range(0, len(slots) - together + 1, together)]
        for group in groups:
            free.put(group)

        def one(item: Work) -> Result:
            devices = free.get()
            try:
                result = run(item, devices)
            finally:
                free.put(devices)
            return result if after is None else after(item, result)

        with ThreadPoolExecutor(len(groups) * (1 if after is None else 2)) as pool, ended_by(signal.SIGTERM):
            try:
                pending = [pool.submit(one, item) for item in work]
                wait(pending, return_when=FIRST_EXCEPTION)
                for done in pending:
                    if done.done():  # else one that waits for others would hide an error
                        done.result()
                return [done.result() for done in pending]
            except BaseException:  # Ctrl-C, or a time limit: no program goes on alone
                self.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for child in list(self._children):
                    child.terminate()
                raise

    def call(
        self,
        commands: Sequence[Sequence[str]],
        enough: Callable[[], bool] = lambda: False,
        log: IO[bytes] | None = None,
    ) -> list[str]:
        """The standard output of programs that run at the same time, each given by the words after `python`. enough:
        asked several times a second; once it is True, all are interrupted as by Ctrl-C, which is not an error. log: a
        file for all that they write, in place of the output.

        Raises: RuntimeError with the last message of one that fails, once all have ended.
        """
        threads = str(max(1, usable_cores() // (self.jobs * len(self.devices))))
        environment = {"OMP_NUM_THREADS": threads, "PYTHONWARNINGS": "ignore", **child_environment()}
        with contextlib.ExitStack() as open_files:
            files = [[open_files.enter_context(tempfile.TemporaryFile()) for _ in range(2)] for _ in commands]
            children = list[subprocess.Popen[bytes]]()
            try:
                for words, (out, errors) in zip(commands, files, strict=True):
                    if self.stopped.is_set():
                        raise RuntimeError("stopped")
                    command = [sys.executable, *words]
                    child = subprocess.Popen(command, stdout=log or out, stderr=log or errors, env=environment)
                    children.append(child)
                    self._children.add(child)
                was_enough = self._wait(children, enough)
            finally:
                for child in children:
                    if child.poll() is None:
                        child.send_signal(signal.SIGINT)  # it closes its device's memory itself
                    child.wait()
                    self._children.discard(child)
            texts = [[_text(file) for file in pair] for pair in files]
        for child, (_, errors) in zip(children, texts, strict=True):
            if child.returncode and not was_enough:
                lines = errors.strip().splitlines() or [f"exit code {child.returncode}"]
                raise RuntimeError(lines[-1])
        return [out for out, _ in texts]

    @staticmethod
    def _wait(children: Sequence[subprocess.Popen[bytes]], enough: Callable[[], bool]) -> bool:
        """Waits until all have ended, or one has failed; True if they may be ended."""
        while running := [child for child in children if child.poll() is None]:
            if any(child.returncode for child in children):
                break
            if enough():
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                running[0].wait(LOOK_SECONDS)
        return False


@contextlib.contextmanager
def ended_by(number: signal.Signals) -> Iterator[None]:
    """Inside, a signal that would end this process at once raises SystemExit in it."""

    def end(*_: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
