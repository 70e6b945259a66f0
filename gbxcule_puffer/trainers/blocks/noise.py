"""The gradient's noise: how many samples an optimizer step can use."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

MEMORY = 0.9  # of both moments, from measurement to measurement: single ones are noisy


class NoiseScale:
    """The simple noise scale of a module's gradient: the trace of the covariance of a sample's gradient, divided by the
    square of the mean gradient (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training",
    https://arxiv.org/abs/1812.06162).

    With a minibatch of this size, an optimizer step makes half of the progress that one with all samples would make;
    far larger ones hardly help. It grows as the policy improves.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        self.moments = torch.zeros(2, device=self.parameters[0].device)  # |G|^2 and tr(S)

    @property
    def value(self) -> float:
        """Samples; infinite where no gradient is left in the noise."""
        signal, noise = self.moments.tolist()
        return noise / signal if signal > 0 else float("inf")

    def measure(self, gradients: Callable[[Tensor], object], steps: int, minibatches: int) -> None:
        """Compares the gradients of two or more minibatches of a rollout's steps with that of all of them together.
        gradients(index): leaves those of the steps `index` in the parameters."""
        device = self.moments.device
        # A generator of its own: what is measured must not change what is learned.
        mixed = torch.randperm(steps, generator=torch.Generator(device).manual_seed(0), device=device)
        count, small = minibatches, steps // minibatches
        squares, total = torch.zeros((), device=device), None
        for index in mixed[: count * small].view(count, small):
            gradients(index)
            flat = torch.cat([part.grad.flatten() for part in self.parameters if part.grad is not None])
            squares += flat.square().sum() / count
            total = flat / count if total is None else total + flat / count
        assert total is not None
        both, large = total.square().sum(), small * count
        signal = (large * both - small * squares) / (large - small)
        noise = (squares - both) / (1 / small - 1 / large)
        self.moments.lerp_(torch.stack([signal, noise]), 1 - MEMORY)
