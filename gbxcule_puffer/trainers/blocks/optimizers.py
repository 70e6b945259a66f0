"""Torch's optimizers without their first call's import of torch.compile's machinery, which none of the trainers uses.

Torch wraps methods of its optimizers for torch.compile, and the wrappers import torch._dynamo with SymPy and 1,000 more
modules: a third of what a short run's start takes. The methods inside of the wrappers do the work.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim.optimizer import ParamsT

WRAPPED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


class _Unwrapped(torch.optim.Optimizer):
    """The methods of an optimizer, as they are without torch.compile."""

    def __init_subclass__(cls) -> None:
        for name in WRAPPED:
            setattr(cls, name, inspect.unwrap(getattr(cls, name)))
        step = inspect.unwrap(cls.step)

        def step_without_gradients(self: torch.optim.Optimizer, *args: object) -> float | None:
            with torch.no_grad():
                return step(self, *args)

        cls.step = step_without_gradients  # type: ignore[method-assign]


class Adam(_Unwrapped, torch.optim.Adam):
    """torch.optim.Adam as one kernel: on a CPU a step of the scripts' networks takes a ninth of the time.

    A CUDA graph may record its step: all that changes from step to step is on the weights' device. That includes the
    learning rate, param_groups[...]["lr"], a tensor (); in a state_dict it is a number.
    """

    def __init__(self, params: ParamsT, **settings: Any) -> None:
        settings |= {"fused": True, "capturable": True}
        super().__init__(params, **settings)
        self._warned_capturable_if_run_uncaptured = True  # torch's warning: as one kernel it is as fast without a graph
        self._rates = [_on_device(group["lr"], group["params"][0]) for group in self.param_groups]
        self._set_rates()
        self.register_state_dict_post_hook(_with_numbers)
        self.register_load_state_dict_post_hook(lambda _: self._set_rates())

    def _set_rates(self) -> None:
        """Fills the tensors of the learning rates with the groups' numbers, and puts them in their stead."""
        for group, rate in zip(self.param_groups, self._rates, strict=True):
            rate.fill_(group["lr"])
            group["lr"] = rate


def _on_device(number: float, weight: torch.Tensor) -> torch.Tensor:
    """A tensor of the type that torch's kernel reads: on a CPU as exact as a number."""
    return torch.tensor(number, dtype=torch.float32 if weight.is_cuda else torch.float64, device=weight.device)


def _with_numbers(_: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Makes the learning rates of a state_dict numbers."""
    for group in state["param_groups"]:
        group["lr"] = float(group["lr"])


class RAdam(_Unwrapped, torch.optim.RAdam):
    """torch.optim.RAdam with an operation for all weights at once: on a CPU a step takes two fifths of the time."""

    def __init__(self, params: ParamsT, **settings: Any) -> None:
        settings["foreach"] = True
        super().__init__(params, **settings)
