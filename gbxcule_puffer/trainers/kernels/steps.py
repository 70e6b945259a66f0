"""Adam's step with clipped gradients as two kernels, for networks of any size on a GPU."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from gbxcule_puffer.trainers.blocks.optimizers import Adam
from gbxcule_puffer.trainers.kernels import convolutions

BLOCK, WARPS = 1024, 4  # values of a program


class ClippedAdam:
    """An `optimizer`'s step along the gradients, clipped to the norm `most_norm`: clipped_adam(losses) returns the
    `losses` (n,) with the norm before that behind them.

    The optimizer keeps its state and learning rate; the gradients must keep their addresses, and stay as they are.
    """

    def __init__(self, optimizer: Adam, most_norm: float) -> None:
        (group,) = optimizer.param_groups
        assert not (group["weight_decay"] or group["amsgrad"] or group["maximize"])
        self.lr, self.eps, self.most_norm, self.betas = group["lr"], group["eps"], most_norm, group["betas"]
        self.optimizer = optimizer  # it keeps the tensors whose addresses the kernels have
        weights: list[Tensor] = group["params"]
        device = weights[0].device
        parts, blocks = [], []
        for number, weight in enumerate(weights):
            assert weight.grad is not None and weight.grad.stride() == weight.stride()
            state = optimizer.state[weight]
            state.setdefault("step", torch.zeros((), device=device))
            for name in ("exp_avg", "exp_avg_sq"):
                moment = torch.zeros_like(weight)
                state[name] = moment.copy_(state[name]) if name in state else moment  # in the weight's layout
            tensors = (weight.grad, weight, state["exp_avg"], state["exp_avg_sq"], state["step"])
            parts.append([*(tensor.data_ptr() for tensor in tensors), weight.numel()])
            blocks += [[number, first] for first in range(0, weight.numel(), BLOCK)]
        self.tensors, self.blocks = torch.tensor(parts, device=device), torch.tensor(blocks, device=device)
        self.squares, self.norm = torch.empty(len(blocks), device=device), torch.empty((), device=device)

    @torch.no_grad()
    def __call__(self, losses: Tensor) -> Tensor:
        kernels, grid, tables = convolutions.learning_kernels(), (len(self.blocks),), (self.tensors, self.blocks)
        kernels.gradient_squares[grid](*tables, self.squares, BLOCK, num_warps=WARPS)
        moments = [number for beta in self.betas for number in (log(beta), 1 - beta)]
        tensors = (*tables, self.squares, self.lr, self.norm)
        kernels.clipped_adam[grid](*tensors, *grid, self.most_norm, *moments, self.eps, BLOCK, num_warps=WARPS)
        return torch.cat([losses, self.norm[None]])
