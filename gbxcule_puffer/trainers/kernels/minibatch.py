"""The gradients of a minibatch of ppo_lite.py without autograd, by few kernels: bfloat16, on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gbxcule_puffer.trainers.blocks.rollout import rows
from gbxcule_puffer.trainers.kernels import convolutions
from gbxcule_puffer.trainers.kernels.fast import FastConvolutions
from gbxcule_puffer.trainers.kernels.heads import FIGURES, FIGURES_FILLED, heads, outputs_of

MOST_OUTPUTS = 32  # of policy and value together
ALIGNED = 64  # values between the beginnings of two gradients: Triton reads aligned memory faster


class FusedGradients:
    """`backward` of ppo_lite.py for its network with FastConvolutions: fused_gradients(index) leaves the gradients of
    the samples `index` in the parameters, and returns the first six of LOSSES, (6,).

    The formulas and their precision are those of autograd: products in bfloat16, heads and losses in float32. What
    autograd would copy, cast and add in 130 kernels is read where it is, and added in registers.
    """

    def __init__(self, model: Any, rollout: Mapping[str, Tensor], args: Any) -> None:
        self.layout, self.args = model.layout, args
        self.first, self.second, self.hidden = model.convolutions[1], model.convolutions[3], model.hidden[0]
        self.most, self.policy, self.value = model.layout.kind.most, model.policy, model.value
        self.rollout = {name: part.flatten(0, 1) for name, part in rollout.items()}
        obs = self.rollout["obs"]
        in_place = self.layout.pixels(first := obs[:1]) is first and obs.numel() // 4 <= convolutions.MOST_ELEMENTS
        self.in_place = in_place  # pixels are read where the rollout has them
        device = self.policy.weight.device
        self.moments = torch.tensor([0.0, 1.0], device=device)
        self._lay_out(list(model.parameters()), device)

    @staticmethod
    def can_do(model: Any, samples: int) -> bool:
        """True for networks with kernels for their layers, of pictures alone, and minibatches of up to `samples`."""
        fast, weight = model.convolutions, model.policy.weight
        if not isinstance(fast, FastConvolutions) or len(fast) > 6 or model.layout.vector_size or not weight.is_cuda:
            return False
        (outputs, hidden), (_, rows, columns) = weight.shape, model.layout.picture_shape
        if samples * (rows // 4) * (columns // 4) * model.convolutions[3].out_channels > convolutions.MOST_ELEMENTS:
            return False
        if outputs >= MOST_OUTPUTS or hidden.bit_count() != 1 or not 16 <= hidden <= 256:
            return False
        return convolutions.has_kernels(weight.device, rows, columns)

    def _lay_out(self, parameters: list[nn.Parameter], device: torch.device) -> None:
        """All gradients in one tensor; where each column of the kernels' sums belongs there, and its factor."""
        starts, size = {}, 0
        for parameter in parameters:
            starts[parameter] = size
            size += -(-parameter.numel() // ALIGNED) * ALIGNED
        flat = torch.zeros(size + FIGURES + 1, device=device)
        places = torch.arange(len(flat), dtype=torch.int32, device=device)

        def part(whole: Tensor, parameter: nn.Parameter) -> Tensor:
            return whole.as_strided(parameter.shape, parameter.stride(), starts[parameter])

        for parameter in parameters:
            parameter.grad = part(flat, parameter)
        self.flat, self.figures = flat, flat[size : size + FIGURES]
        nowhere = places[-1:]  # for columns that only fill up
        width, actions = self.hidden.out_features, self.policy.out_features
        unused = outputs_of(actions) - actions - 1
        first, second, heads = (
            [convolutions.by_word(part(places, self.first.weight)), part(places, self.first.bias)],
            [convolutions.by_place(part(places, self.second.weight)), part(places, self.second.bias)],
            [
                *(part(places, layer.weight) for layer in (self.policy, self.value)),
                nowhere.expand(unused * width),
                *(part(places, layer.bias) for layer in (self.policy, self.value)),
                nowhere.expand(unused),
                part(places, self.hidden.bias),
                places[size : size + FIGURES],
                nowhere.expand(FIGURES_FILLED - FIGURES),
            ],
        )
        self.targets = [torch.cat([one.flatten() for one in columns]) for columns in (first, second, heads)]
        self.scales = [torch.ones(len(target), device=device) for target in self.targets]
        self.scales[0][: self.first.weight.numel()] /= self.most  # the kernel has pixels from 0 to `most`

    @torch.no_grad()
    def __call__(self, index: Tensor) -> Tensor:
        obs = self.rollout["obs"]
        pixels, named = (obs, index) if self.in_place else (self.layout.pixels(rows(obs, index)).contiguous(), None)
        seen = convolutions.pixels_forward(pixels, self.first.weight / self.most, self.first.bias, named)
        output = convolutions.on_features(seen, self.second.weight, self.second.bias)
        features = output.flatten(1)
        weight, bias = self.hidden.weight.to(torch.bfloat16), self.hidden.bias.to(torch.bfloat16)
        before_relu = torch.addmm(bias, features, weight.t())
        of_hidden, of_heads = heads(
            before_relu, (self.policy, self.value), self.rollout, index, self.moments, self.args
        )
        torch.mm(of_hidden.t(), features, out_dtype=torch.float32, out=self.hidden.weight.grad)
        of_output = torch.mm(of_hidden, weight).view_as(output)
        of_seen, of_second = convolutions.features_backward(seen, self.second.weight, output, of_output)
        of_first = convolutions.pixels_backward(pixels, seen, of_seen, named)
        for partials, target, scales in zip((of_first, of_second, of_heads), self.targets, self.scales, strict=True):
            convolutions.column_sums(partials, self.flat, target, scales)
        return self.figures
