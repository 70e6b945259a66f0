"""The gradients of a minibatch of ppo_lite.py without autograd, by few kernels: bfloat16, on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers.blocks.rollout import rows
from gbxcule_puffer.trainers.kernels import convolutions
from gbxcule_puffer.trainers.kernels.fast import FastConvolutions
from gbxcule_puffer.trainers.kernels.heads import FIGURES, FIGURES_FILLED, LossFlags, heads, outputs_of

MOST_OUTPUTS = 32  # of policy and value together
ALIGNED = 64  # values between the beginnings of two gradients: Triton reads aligned memory faster


class Network(Protocol):
    """The parts of ppo_lite.py's network."""

    layout: ObservationLayout
    hidden: nn.Sequential
    policy: nn.Linear
    value: nn.Linear

    @property
    def convolutions(self) -> nn.Module: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


class FusedGradients:
    """`backward` of ppo_lite.py for its network with FastConvolutions: fused_gradients(index) leaves the gradients of
    the samples `index` in the parameters, and returns the first six of LOSSES, (6,).

    The formulas and their precision are those of autograd: products in bfloat16, heads and losses in float32. What
    autograd would copy, cast and add in 130 kernels is read where it is, and added in registers.
    """

    def __init__(self, model: Network, rollout: Mapping[str, Tensor], args: LossFlags) -> None:
        self.layout, self.args, self.most = model.layout, args, model.layout.kind.most
        layers = (*_convolutions(model), model.hidden[0], model.policy, model.value)
        self.first, self.second, self.hidden, self.policy, self.value = (tuple(layer.parameters()) for layer in layers)
        self.rollout = {name: part.flatten(0, 1) for name, part in rollout.items()}
        obs = self.rollout["obs"]
        in_place = self.layout.pixels(first := obs[:1]) is first and obs.numel() // 4 <= convolutions.MOST_ELEMENTS
        self.in_place = in_place  # pixels are read where the rollout has them
        device = obs.device
        self.moments = torch.tensor([0.0, 1.0], device=device)
        self._lay_out(list(model.parameters()), device)

    @staticmethod
    def can_do(model: Network, samples: int) -> bool:
        """True for networks with kernels for their layers, of pictures alone, and minibatches of up to `samples`."""
        fast, weight = model.convolutions, model.policy.weight
        if not isinstance(fast, FastConvolutions) or model.layout.vector_size or not weight.is_cuda:
            return False
        (outputs, hidden), (_, rows, columns) = weight.shape, model.layout.picture_shape
        if outputs >= MOST_OUTPUTS or hidden.bit_count() != 1 or not 16 <= hidden <= 256:
            return False
        channels = max(layer.out_channels for layer in _convolutions(model))
        if samples * (rows // 4) * (columns // 4) * channels > convolutions.MOST_ELEMENTS:
            return False
        return convolutions.has_kernels(weight.device, rows, columns)

    def _lay_out(self, parameters: list[nn.Parameter], device: torch.device) -> None:
        """All gradients in one tensor; the index there of each column of the kernels' sums, and its factor."""
        starts, size = {}, 0
        for parameter in parameters:
            starts[parameter] = size
            size += -(-parameter.numel() // ALIGNED) * ALIGNED
        flat = torch.zeros(size + FIGURES + 1, device=device)
        indices = torch.arange(len(flat), dtype=torch.int32, device=device)

        def part(whole: Tensor, parameter: nn.Parameter) -> Tensor:
            return whole.as_strided(parameter.shape, parameter.stride(), starts[parameter])

        for parameter in parameters:
            parameter.grad = part(flat, parameter)
        self.flat, self.figures = flat, flat[size : size + FIGURES]
        nowhere = indices[-1:]  # for columns that only fill up
        (actions, width), nothing = self.policy[0].shape, nowhere.expand
        unused = outputs_of(actions) - actions - 1
        (of_policy, policy_bias), (of_value, value_bias), (_, hidden_bias), first, second = (
            [part(indices, parameter) for parameter in layer]
            for layer in (self.policy, self.value, self.hidden, self.first, self.second)
        )
        heads = [of_policy, of_value, nothing(unused * width), policy_bias, value_bias, nothing(unused), hidden_bias]
        heads += [indices[size : size + FIGURES], nothing(FIGURES_FILLED - FIGURES)]
        first[0], second[0] = convolutions.by_word(first[0]), convolutions.by_place(second[0])
        self.targets = [torch.cat([one.flatten() for one in columns]) for columns in (first, second, heads)]
        self.scales = [torch.ones(len(target), device=device) for target in self.targets]
        self.scales[0][: self.first[0].numel()] /= self.most  # the kernel has pixels from 0 to `most`

    @torch.no_grad()
    def __call__(self, index: Tensor) -> Tensor:
        obs = self.rollout["obs"]
        pixels, named = (obs, index) if self.in_place else (self.layout.pixels(rows(obs, index)).contiguous(), None)
        (first, first_bias), (second, second_bias), hidden = self.first, self.second, self.hidden
        seen = convolutions.pixels_forward(pixels, first / self.most, first_bias, named)
        output = convolutions.on_features(seen, second, second_bias)
        features, (weight, bias) = output.flatten(1), (part.to(torch.bfloat16) for part in hidden)
        before_relu = torch.addmm(bias, features, weight.t())
        weights = (*self.policy, *self.value)
        of_hidden, of_heads = heads(before_relu, weights, self.rollout, index, self.moments, self.args)
        torch.mm(of_hidden.t(), features, out_dtype=torch.float32, out=hidden[0].grad)
        of_output = torch.mm(of_hidden, weight).view_as(output)
        of_seen, of_second = convolutions.features_backward(seen, second, output, of_output)
        of_first = convolutions.pixels_backward(pixels, seen, of_seen, named)
        for partials, target, scales in zip((of_first, of_second, of_heads), self.targets, self.scales, strict=True):
            convolutions.column_sums(partials, self.flat, target, scales)
        return self.figures


def _convolutions(model: Network) -> tuple[nn.Conv2d, nn.Conv2d]:
    """The two of a network with FastConvolutions."""
    _, first, _, second, *_ = model.convolutions.children()
    assert isinstance(first, nn.Conv2d) and isinstance(second, nn.Conv2d)
    return first, second
