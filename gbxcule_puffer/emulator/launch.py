"""Warp launches on torch's current CUDA stream, so that both stay in order and in one CUDA graph."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import torch
import warp as wp

from gbxcule_puffer.device import start_warp

Struct = TypeVar("Struct")
CUDA_LANES = 32  # threads that share one env's picture on a CUDA device
# Torch's streams as Warp's, each made once: Warp adds them to a list, which two threads must not do at the same time.
_streams: dict[tuple[int, int], wp.Stream] = {}
_streams_lock = threading.Lock()


class Launcher:
    """Launches kernels over tensors that keep their addresses, and remembers each launch: packing the arguments takes
    Python longer than a small kernel takes to run."""

    def __init__(self, device: torch.device) -> None:
        start_warp()
        self.device = device
        self.lanes = lanes_of(device)
        self._commands: dict[tuple[Any, ...], Any] = {}

    def __call__(self, kernel: object, dim: int | tuple[int, ...], *inputs: object) -> None:
        """Runs `kernel` over `dim` threads; tensors among `inputs` are passed without a copy, and kept alive.

        No host synchronisation and, except for the first launch with these inputs, no allocation.
        """
        key = (kernel, dim, *(_identity(value) for value in inputs))
        command: Any = self._commands.get(key)
        if command is None:
            arguments = [wp.from_torch(value) if isinstance(value, torch.Tensor) else value for value in inputs]
            command = wp.launch(kernel, dim, arguments, device=str(self.device), record_cmd=True)
            self._commands[key] = command
        command.launch(current_stream(self.device))


class AddressLauncher:
    """Launches a kernel over different tensors each time: its arguments are addresses and numbers."""

    def __init__(self, kernel: object, dim: int | tuple[int, ...], device: torch.device, arguments: int) -> None:
        start_warp()
        self.device, self._lock = device, threading.Lock()
        self._command: Any = wp.launch(kernel, dim, [0] * arguments, device=str(device), record_cmd=True)

    def __call__(self, *arguments: int) -> None:
        """Runs the kernel. No host synchronisation and no allocation."""
        with self._lock:  # the arguments belong to the command, which other threads may use
            for index, argument in enumerate(arguments):
                self._command.set_param_at_index_from_ctype(index, argument)
            self._command.launch(current_stream(self.device))


def lanes_of(device: torch.device) -> int:
    """Threads that share an env."""
    return 1 if device.type == "cpu" else CUDA_LANES


def current_stream(device: torch.device) -> wp.Stream | None:
    """Torch's current CUDA stream of this thread, for Warp's launches; None on a CPU."""
    return None if device.type == "cpu" else warp_stream(torch.cuda.current_stream(device))


def warp_stream(stream: torch.cuda.Stream) -> wp.Stream:
    """A torch stream as Warp's."""
    key = (stream.device_index, stream.cuda_stream)
    if key not in _streams:
        with _streams_lock:
            if key not in _streams:
                _streams[key] = wp.stream_from_torch(stream)
    return _streams[key]


def fill(struct: Struct, **members: object) -> Struct:
    """Sets members of a Warp struct, tensors without a copy, and returns it; it keeps the tensors alive."""
    for name, value in members.items():
        setattr(struct, name, wp.from_torch(value) if isinstance(value, torch.Tensor) else value)
    return struct


def words(array: torch.Tensor) -> torch.Tensor:
    """Bytes (n, ...) as 32-bit words (n, bytes / 4), without a copy; the bytes of a row must be a multiple of 4."""
    return array.view(array.shape[0], -1).view(torch.int32)


def _identity(value: object) -> object:
    return (value.data_ptr(), value.shape) if isinstance(value, torch.Tensor) else value
