"""Steps on a CPU: the kernel's launches, each thread with its share of the envs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import warp as wp

from gbxcule_puffer.device import default_threads


class CpuSteps:
    """Launches steps of `num_envs` envs. num_threads: all usable cores by default; it changes no result."""

    def __init__(self, num_envs: int, num_threads: int | None = None) -> None:
        threads = max(1, min(default_threads() if num_threads is None else num_threads, num_envs))
        self.num_threads = threads
        bounds = [num_envs * thread // threads for thread in range(threads + 1)]
        self._shares = list(itertools.pairwise(bounds))
        self._executor = ThreadPoolExecutor(threads) if threads > 1 else None
        self._commands: dict[tuple[object, ...], list[Any]] = {}

    def launch(
        self, kernel: Callable[[], wp.Kernel], frames: int, release_after: int, inputs: Callable[[int], list[object]]
    ) -> None:
        """One step; inputs: the arguments of the share that begins with an env."""
        key = (frames, release_after)
        if key not in self._commands:
            self._commands[key] = [
                wp.launch(kernel(), dim=end - begin, inputs=inputs(begin), device="cpu", record_cmd=True)
                for begin, end in self._shares
            ]
        commands = self._commands[key]
        if self._executor is None:
            commands[0].launch()
        else:  # the kernel runs outside of the GIL
            done, _ = wait([self._executor.submit(command.launch) for command in commands])
            for future in done:
                future.result()  # its exception, if there was one

    def forget(self) -> None:
        """Forget the recorded launches, because the kernel or its arguments have changed."""
        self._commands.clear()

    def close(self) -> None:
        """Stop the threads."""
        self._commands.clear()
        if self._executor is not None:
            self._executor.shutdown()
