"""Policy, value and PPO's losses of a minibatch, with their gradients, as one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from gbxcule_puffer.trainers.kernels import convolutions

HEADS = 32, 64, 4  # samples of a program, columns at a time, warps
MOMENTS = 4096, 16  # samples of a block, warps
FIGURES, FIGURES_FILLED = 6, 8  # of LOSSES in ppo_lite.py, and columns for them


class LossFlags(Protocol):
    """Those of ppo_lite.py that its losses depend on."""

    norm_adv: bool
    clip_coef: float
    value_clip: float | None
    value_coef: float
    entropy_coef: float


def outputs_of(num_actions: int) -> int:
    """Outputs of policy and value, filled up to what tensor cores multiply."""
    return max(16, 1 << num_actions.bit_length())


def heads(
    hidden: Tensor,
    weights: Sequence[Tensor],
    rollout: Mapping[str, Tensor],
    index: Tensor,
    moments: Tensor,
    args: LossFlags,
) -> tuple[Tensor, Tensor]:
    """(gradient of `hidden`, the hidden layer's output before its ReLU, (n, width); partial sums of the gradients of
    the `weights`, those and the biases of policy and value, and of the hidden layer's bias, and of the figures).

    rollout: its parts, (steps, ...), of which `index` (n,) names the samples; moments (2,): where the mean of their
    advantages and its deviation are written; args: PPO's flags."""
    (count, width), actions, kernels = hidden.shape, len(weights[0]), convolutions.learning_kernels()
    if args.norm_adv:
        block, warps = MOMENTS
        kernels.advantage_moments[(1,)](rollout["advantages"], index, moments, count, block, num_warps=warps)
    block, part, warps = HEADS
    programs, outputs = -(-count // block), outputs_of(actions)
    of_hidden = torch.empty_like(hidden)
    partials = torch.empty((programs, outputs * (width + 1) + width + FIGURES_FILLED), device=hidden.device)
    kept = (rollout[name] for name in ("actions", "logprobs", "values", "advantages", "returns"))
    flags = (args.clip_coef, args.value_clip or 0.0, args.value_coef, args.entropy_coef)
    sizes = (args.value_clip is not None, width, outputs, block, min(part, width))
    tensors = (hidden, *weights, index, *kept, moments, of_hidden, partials)
    kernels.ppo_heads[(programs,)](*tensors, count, actions, *flags, *sizes, num_warps=warps)
    return of_hidden, partials
