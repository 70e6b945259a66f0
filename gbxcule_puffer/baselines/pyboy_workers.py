"""PyBoy environments in the worker processes of pufferlib.vector, with requests to them and without orphans."""

from __future__ import annotations

import contextlib
import copy
import math
import multiprocessing
import multiprocessing.resource_tracker
import multiprocessing.util
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np
import psutil
import pufferlib.vector
from numpy.typing import DTypeLike

from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.device import default_threads
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.env.protocol import Infos
from gbxcule_puffer.errors import ConfigError, DeviceError
from gbxcule_puffer.tasks.observe.layout import Array
from gbxcule_puffer.tasks.task import Task

BACKENDS = ("serial", "mp_sync", "mp_async")
POLL_SECONDS = 50e-6
ALIVE_SECONDS = 1.0  # interval between checks of the processes while waiting for them
UNGUARDED = (
    "processes that are not forked import your script, and it starts some itself: "
    'put what it does under `if __name__ == "__main__":`, or give backend="serial"'
)


@dataclass(frozen=True)
class Split:
    """The division of `num_envs` into `num_workers` equal parts, of which `workers_per_batch` answer together."""

    backend: str
    num_envs: int
    num_workers: int
    workers_per_batch: int

    @property
    def envs_per_worker(self) -> int:
        return self.num_envs // self.num_workers

    @property
    def batch_size(self) -> int:
        """Envs of one `recv`."""
        return self.envs_per_worker * self.workers_per_batch

    @classmethod
    def make(cls, backend: str, num_envs: int, num_workers: int | None, batch_size: int | None) -> Split:
        """Defaults for None: one worker ('serial') or one per core; all envs per batch, or half of them for 'mp_async'.

        Raises: ConfigError if the numbers do not divide each other.
        """
        if backend not in BACKENDS:
            raise ConfigError(f"backend {backend!r} is unknown: give one of {', '.join(BACKENDS)}")
        if num_workers is None:
            num_workers = 1 if backend == "serial" else largest_divisor(num_envs, default_threads())
        if num_workers < 1 or num_envs % num_workers:
            raise ConfigError(f"num_workers {num_workers} must divide num_envs {num_envs}")
        per_worker = num_envs // num_workers
        if batch_size is None:
            share = max(1, num_workers // 2) if backend == "mp_async" else num_workers
            return cls(backend, num_envs, num_workers, largest_divisor(num_workers, share))
        if backend != "mp_async" and batch_size != num_envs:
            raise ConfigError(f"batch_size {batch_size}: {backend} answers for all {num_envs} envs; use 'mp_async'")
        if batch_size < 1 or num_envs % batch_size or batch_size % per_worker:
            raise ConfigError(
                f"batch_size {batch_size} must divide num_envs {num_envs} and be a multiple of the {per_worker} envs "
                "of a worker"
            )
        return cls(backend, num_envs, num_workers, batch_size // per_worker)


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`."""
    return next(divisor for divisor in range(min(number, limit), 0, -1) if number % divisor == 0)


class SharedArray:
    """An array of zeros that this process shares with the workers it starts, by fork or by spawn."""

    def __init__(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self._raw = RawArray("b", math.prod(shape) * self.dtype.itemsize)

    def numpy(self) -> np.ndarray:
        return np.frombuffer(self._raw, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Slot:
    """A worker's arguments besides its env's options."""

    index: int
    first_env: int
    """Of all envs, the first of this worker."""
    seed: int | None
    shared: Mapping[str, SharedArray]
    """Name of an attribute -> where its value goes, [env of all workers, ...]."""
    requests: Connection | None
    """None where the worker runs in the caller's process."""


class PyBoyWorker(PyBoyPufferSingle):
    """A worker's share of the envs. Results for which pufferlib.vector has no buffers go to the arrays of its slot."""

    def __init__(
        self,
        rom: Rom,
        num_envs: int,
        *,
        slot: Slot,
        seed: int | None = None,
        buf: Mapping[str, np.ndarray] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(options.get("task"), Task):  # one for each worker, also where they share a process
            options["task"] = copy.deepcopy(options["task"])
        del seed  # PufferLib adds the worker's index to it; here all workers use one seed, and know their envs
        self._slot, self._seeds = slot, None
        rows = slice(slot.index * num_envs, (slot.index + 1) * num_envs)
        self._shared = {name: array.numpy()[rows] for name, array in slot.shared.items()}
        super().__init__(rom, num_envs, seed=slot.seed, first_env=slot.first_env, buf=buf, **options)
        if buf is not None and slot.requests is not None:
            _end_with_parent()

    def reset(self, seed: int | Sequence[int] | None = None) -> tuple[Any, Infos]:
        """As GBxCuLEEnv.reset; PufferLib has added the worker's index to the seed. After `take_seeds` with those."""
        own = seed - self._slot.index if isinstance(seed, int) else seed
        result = super().reset(own if self._seeds is None else self._seeds)
        self._share()
        return result

    def step(self, actions: Array) -> tuple[Any, Any, Any, Any, Infos]:
        """As GBxCuLEEnv.step."""
        result = super().step(actions)
        self._share()
        return result

    def reset_envs(self, mask: Array) -> None:
        """As GBxCuLEEnv.reset_envs, for this worker's envs."""
        super().reset_envs(mask)
        self._share()

    def take_seeds(self, seeds: Sequence[int] | None) -> None:
        """Seeds of this worker's envs for the next resets, one for each; None: the seed of the reset."""
        self._seeds = seeds

    def notify(self) -> None:
        """Answers one request of the parent: (method, arguments) -> (True, result) or (False, exception)."""
        requests = self._slot.requests
        assert requests is not None, "the parent calls the methods of its own process directly"
        method, arguments = pickle.loads(requests.recv_bytes())
        try:
            answer = True, getattr(self, method)(*arguments)
        except Exception as error:
            answer = False, error
        requests.send_bytes(pickle.dumps(answer))

    def _share(self) -> None:
        for name, array in self._shared.items():
            np.copyto(array, getattr(self, name))


def _end_with_parent() -> None:
    """Leaves Ctrl-C to the parent, and starts a thread that ends this process when the parent is gone, however it
    ended: PufferLib's workers would wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delays Ctrl-C, which reaches all processes of a terminal, inside the block: nobody could end a worker that is
    half started.

    The signal is blocked for the workers, which inherit that until they can ignore it. In this process a library's
    thread may still take the signal, so Python's handler is delayed, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if multiprocessing.get_start_method(allow_none=True) == "forkserver":
        multiprocessing.resource_tracker.ensure_running()  # else it starts inside, and lifts the block as it does
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if received:
        raise KeyboardInterrupt


def end_children(but: set[BaseProcess]) -> None:
    """Ends the child processes of this one, except those in `but`."""
    _end(set(multiprocessing.active_children()) - but)


def _end(processes: Iterable[Any]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()


class Workers:
    """`worker_class` envs in a pufferlib.vector backend, started at once.

    Args: options: the workers' keyword arguments; shared: name -> dtype and shape of one env's part. Each name is an
    attribute of the workers that is shared after every reset and step.
    Raises: DeviceError if PufferLib cannot count this machine's cores; ConfigError if the processes cannot start.
    """

    def __init__(
        self,
        worker_class: type[PyBoyWorker],
        rom: Rom,
        split: Split,
        seed: int | None,
        first_env: int,
        options: Mapping[str, Any],
        shared: Mapping[str, tuple[Any, Sequence[int]]],
    ) -> None:
        self.split, self._closed = split, False
        count, each = split.num_workers, split.envs_per_worker
        own_processes = split.backend != "serial"
        arrays = {name: SharedArray((split.num_envs, *shape), dtype) for name, (dtype, shape) in shared.items()}
        self.shared = {name: array.numpy() for name, array in arrays.items()}
        pipes: list[Any] = [multiprocessing.Pipe() if own_processes else (None, None) for _ in range(count)]
        self._pipes = [pipe[0] for pipe in pipes]
        self._processes: list[Any] = []
        self.vec: Any
        keywords = []
        for index in range(count):
            slot = Slot(index, first_env + index * each, seed, arrays, pipes[index][1])
            keywords.append({**options, "rom": rom, "num_envs": each, "slot": slot})
        creators, arguments = [worker_class] * count, [[]] * count
        if not own_processes:
            self.vec = pufferlib.vector.make(creators, arguments, keywords, pufferlib.vector.Serial, count)
            return
        if psutil.cpu_count(logical=False) is None:
            raise DeviceError("the machine does not report its number of cores, which PufferLib needs: use 'serial'")
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # to become a worker, it runs the script
            sys.exit(UNGUARDED)
        others = set(multiprocessing.active_children())
        try:
            with _interrupts_wait():
                self.vec = pufferlib.vector.make(
                    creators, arguments, keywords, pufferlib.vector.Multiprocessing, count,
                    num_workers=count, batch_size=split.workers_per_batch, overwork=True,
                )  # fmt: skip
        except (ConnectionError, EOFError):
            end_children(others)
            raise ConfigError(f"PyBoy's processes could not start: {UNGUARDED}") from None
        except BaseException:
            end_children(others)
            raise
        self._processes = self.vec.processes
        # At exit, Python waits for all child processes: these end before that, even if nobody has called `close`.
        self._end = multiprocessing.util.Finalize(self, _end, (self._processes,), exitpriority=0)

    def pids(self) -> list[int]:
        """Process ids; none for 'serial'."""
        return [process.pid for process in self._processes]

    def buffers(self) -> dict[str, np.ndarray]:
        """PufferLib's buffers of all envs by their names; the workers write into them."""
        names = ("observations", "rewards", "terminals", "truncations", "masks")
        if not self._processes:
            return {name: getattr(self.vec, name) for name in (*names, "actions")}
        arrays = {**self.vec.buf, "actions": self.vec.actions}
        return {name: arrays[name].reshape(-1, *arrays[name].shape[2:]) for name in (*names, "actions")}

    def wait(self, every: bool = False) -> None:
        """Waits until the workers of the next batch, or all, have finished; sleeps, while PufferLib would spin.

        Raises: RuntimeError if a worker has died.
        """
        if not self._processes:
            return
        waiting = list(range(self.split.num_workers))
        if not every:
            waiting = self.vec.waiting_workers[: self.split.workers_per_batch]
        self._sleep_while(lambda: (self.vec.buf["semaphores"][waiting] < pufferlib.vector.MAIN).any())

    def call(self, method: str, *arguments: Sequence[object]) -> list[Any]:
        """The results of a method in each worker; an argument is a sequence with one value per worker.

        Raises: the method's errors; RuntimeError if a worker has died.
        """
        rows = [tuple(values) for values in zip(*arguments, strict=True)] or [()] * self.split.num_workers
        if not self._processes:
            return [getattr(env, method)(*row) for env, row in zip(self.vec.envs, rows, strict=True)]
        self.wait(every=True)
        # A worker lowers its flag after its answer to the last call, and would lower one that is raised before that.
        self._sleep_while(self.vec.buf["notify"].any)
        self.vec.notify()  # before the requests: a long request does not fit into a pipe that nobody reads
        answers = []
        for pipe, row in zip(self._pipes, rows, strict=True):
            pipe.send_bytes(pickle.dumps((method, row)))
        for pipe in self._pipes:
            while not pipe.poll(ALIVE_SECONDS):
                self._check_alive()
            answers.append(pickle.loads(pipe.recv_bytes()))
        for good, answer in answers:
            if not good:
                raise answer
        return [answer for _, answer in answers]

    def _sleep_while(self, condition: Callable[[], object]) -> None:
        """Raises: RuntimeError if a worker has died."""
        checked = time.monotonic()
        while condition():
            time.sleep(POLL_SECONDS)
            if time.monotonic() - checked > ALIVE_SECONDS:
                self._check_alive()
                checked = time.monotonic()

    def close(self) -> None:
        """Ends all workers and waits for their end."""
        if self._closed:
            return
        self._closed = True
        self.vec.close()
        if self._processes:
            self._end()

    def _check_alive(self) -> None:
        for index, process in enumerate(self._processes):
            if not process.is_alive():
                code = process.exitcode
                self.close()
                raise RuntimeError(f"PyBoy worker {index} has died (exit code {code}); its messages are above")
