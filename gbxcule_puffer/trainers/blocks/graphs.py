"""CUDA graphs: work that the host would launch kernel by kernel, recorded once and replayed at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

Result = TypeVar("Result")


class Replayed(Generic[Result]):
    """A function of tensors as a CUDA graph: the first calls run it directly, then it is recorded, and later calls
    replay it. Its result is valid until the next call.

    It must work on tensors that keep their addresses, and be called on a stream other than the default one. Inputs are
    copied to the addresses that the recorded function reads. Inputs of another shape than at first (such as a smaller
    last minibatch) are not replayed.

    unsettled: True while the launches of the function may still change. Then the function runs directly, and is
    recorded again afterwards.
    """

    def __init__(
        self, function: Callable[..., Result], warm_up: int = 3, unsettled: Callable[[], bool] = lambda: False
    ) -> None:
        self.function, self.calls_left, self.unsettled = function, warm_up, unsettled
        self.graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[torch.Tensor] | None = None
        self._result: Any = None

    def __call__(self, *inputs: torch.Tensor) -> Result:
        if self.graph is not None and self.unsettled():
            torch.cuda.current_stream().synchronize()  # the graph may be running
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
            # thread_local: another thread, such as the wall's, may wait for the device meanwhile.
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
                self._result = self.function(*self._inputs)
        self.graph.replay()
        return self._result
