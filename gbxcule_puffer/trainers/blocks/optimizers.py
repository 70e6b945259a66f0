"""Torch's Adam and RAdam, to the bit, without torch._dynamo, which each start would spend a second on importing.

Their methods are decorated for torch.compile, and the decorators import torch._dynamo at the first call. The trainers
compile models and losses, never an optimizer, so the methods are taken as they are beneath.
"""

from __future__ import annotations

import inspect

import torch


class _Plain(torch.optim.Optimizer):
    """An optimizer's methods without their decorators."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)


class Adam(_Plain, torch.optim.Adam):
    """torch.optim.Adam."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class RAdam(_Plain, torch.optim.RAdam):
    """torch.optim.RAdam."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.RAdam.step))
