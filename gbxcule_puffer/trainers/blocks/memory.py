"""The memory of an agent: a GRU or an LSTM, step by step and along sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CELLS = {"gru": (nn.GRUCell, 1), "lstm": (nn.LSTMCell, 2)}  # and the tensors of its state


def state_size(kind: str, size: int) -> int:
    """Numbers of the state of a cell with `size` outputs."""
    return CELLS[kind][1] * size


class MemoryCell(nn.Module):
    """A `gru` or `lstm` with `size` outputs. Its state is one tensor (batch, state_size), of an lstm its outputs beside
    its cell, and zeros at the start of an episode."""

    def __init__(self, kind: str, inputs: int, size: int) -> None:
        super().__init__()
        self.kind, self.cell, self.state_size = kind, CELLS[kind][0](inputs, size), state_size(kind, size)

    def forward(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(outputs (batch, size), next state) of features (batch, inputs)."""
        if self.kind == "gru":
            return (self.cell(features, state),) * 2
        both = self.cell(features, state.chunk(2, 1))
        return both[0], torch.cat(both, 1)

    def unroll(self, features: Tensor, state: Tensor, ended: Tensor) -> Tensor:
        """Outputs (steps, batch, size) along sequences of features (steps, batch, inputs), from the state before their
        first step. Behind each step that `ended` (steps, batch) an episode, the state is cleared."""
        outputs = []
        for step in range(len(features)):
            output, state = self(features[step], state)
            outputs.append(output)
            state = state * ~ended[step][:, None]
        return torch.stack(outputs)
