"""CUDA graphs: what the host would launch kernel by kernel, recorded once and replayed in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Replayed:
    """A function of tensors as a CUDA graph: its first calls run it as it is, then it is recorded and from there on
    replayed. What it returns is valid until the next call.

    It must work on tensors that stay where they are, and be called under a stream of one's own, not the default one.
    Inputs are copied to where the recorded function reads them; those of another shape than at first, as of a smaller
    last minibatch, are not replayed.

    unsettled: whether what the function launches may be about to change; as long as it does, the function runs as it
    is, and is then recorded again.
    """

    def __init__(
        self, function: Callable[..., Any], warm_up: int = 3, unsettled: Callable[[], bool] = lambda: False
    ) -> None:
        self.function, self.calls_left, self.unsettled = function, warm_up, unsettled
        self.graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[torch.Tensor] | None = None
        self._result: Any = None

    def __call__(self, *inputs: torch.Tensor) -> Any:
        if self.graph is not None and self.unsettled():
            torch.cuda.current_stream().synchronize()  # it may be running
            self.graph = None
        if self._inputs is None:
            self._inputs = [part.clone() for part in inputs]
        if any(part.shape != own.shape for part, own in zip(inputs, self._inputs, strict=True)):
            return self.function(*inputs)
        if self.graph is None and (self.calls_left or self.unsettled()):
            self.calls_left = max(0, self.calls_left - 1)
            return self.function(*inputs)
        for part, own in zip(inputs, self._inputs, strict=True):
            own.copy_(part)
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            stream = torch.cuda.current_stream()
            # thread_local: meanwhile another thread may wait for the device, as the wall's does.
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
                self._result = self.function(*self._inputs)
        self.graph.replay()
        return self._result
