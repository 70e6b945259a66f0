"""CUDA graphs: what the host would launch kernel by kernel, recorded once and replayed in one go."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Replayed:
    """A function as a CUDA graph: its first calls run it as it is, then it is recorded and from there on replayed.

    unsettled: whether what the function launches may be about to change; as long as it does, the function runs as it
    is, and is then recorded again.

    It must work on tensors that keep their place, and be called under a stream of one's own, not the default one.
    """

    def __init__(
        self, function: Callable[[], None], warm_up: int = 3, unsettled: Callable[[], bool] = lambda: False
    ) -> None:
        self.function, self.calls_left, self.unsettled = function, warm_up, unsettled
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self.graph is not None and self.unsettled():
            torch.cuda.current_stream().synchronize()  # it may be running
            self.graph = None
        if self.graph is None and (self.calls_left or self.unsettled()):
            self.calls_left = max(0, self.calls_left - 1)
            self.function()
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            stream = torch.cuda.current_stream()
            # thread_local: meanwhile another thread may wait for the device, as the wall's does.
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
                self.function()
        self.graph.replay()
