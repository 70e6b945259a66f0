"""The rollout of an on-policy learner: its tensors, its minibatches and the memory they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gbxcule_puffer.errors import DeviceError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.envs import layout_of

MOST = 2**36  # steps of all Game Boys
KINDS = {"actions": torch.int64, "terminals": torch.bool, "truncations": torch.bool}  # the others are float32


def allocate_rollout(
    num_steps: int, num_envs: int, layout: ObservationLayout, device: torch.device, **more: int
) -> dict[str, Tensor]:
    """Zeros (num_steps, num_envs), obs with the layout's shape behind: observations, actions, rewards and ends, and
    float32 tensors of the names in `more`, of so many steps more.

    Raises: DeviceError for more steps than can be counted in bytes.
    """
    if num_steps * num_envs > MOST:
        raise DeviceError(
            f"a rollout of {num_steps:,} steps of {num_envs:,} Game Boys fits into no memory: lower --num-envs or "
            "--num-steps"
        )
    rollout = {"obs": torch.zeros((num_steps, num_envs, *layout.shape), dtype=layout.kept_dtype, device=device)}
    for name in ("actions", "rewards", "terminals", "truncations", *more):
        kind = KINDS.get(name, torch.float32)
        rollout[name] = torch.zeros((num_steps + more.get(name, 0), num_envs), dtype=kind, device=device)
    return rollout


def store(rollout: Mapping[str, Tensor], step: int, **parts: Tensor) -> None:
    """Copies what belongs to a step, (num_envs, ...) each, into the rollout."""
    for name, part in parts.items():
        rollout[name][step] = signed(part)


class Minibatches:
    """`count` minibatches of a rollout, and the gradients of the `loss` of each.

    parts: tensors (num_steps, num_envs, ...) that keep their place; loss(batch) of a minibatch, the parts as
    (batch, ...), is what the optimizer is to lower, and figures to report. as_graph: on a GPU, from the fourth on, what
    a minibatch takes is replayed as a CUDA graph; a smaller last one is not.
    """

    def __init__(
        self,
        parts: Mapping[str, Tensor],
        count: int,
        loss: Callable[[Mapping[str, Tensor]], tuple[Tensor, Tensor]],
        optimizer: torch.optim.Optimizer,
        as_graph: bool = False,
    ) -> None:
        self._flat = {name: part.flatten(0, 1) for name, part in parts.items()}
        first = next(iter(self._flat.values()))
        self._count, self._loss, self._optimizer = count, loss, optimizer
        self._index = torch.arange(-(-len(first) // count), device=first.device)
        self._figures: Tensor | None = None
        self._replayed = Replayed(self._record) if as_graph else None

    def gradients(self, epochs: int) -> Iterator[Tensor]:
        """All steps in a new random order each epoch; of each minibatch the figures, once its gradients are there;
        both are valid until the next one."""
        steps = len(next(iter(self._flat.values())))
        for _ in range(epochs):
            for index in torch.randperm(steps, device=self._index.device).chunk(self._count):
                if self._replayed is None or len(index) < len(self._index):
                    yield self._backward(index)
                    continue
                self._index.copy_(index)
                self._replayed()
                assert self._figures is not None
                yield self._figures

    def _record(self) -> None:
        figures = self._backward(self._index)
        self._figures = torch.empty_like(figures) if self._figures is None else self._figures
        self._figures.copy_(figures)

    def _backward(self, index: Tensor) -> Tensor:
        loss, figures = self._loss({name: part[index] for name, part in self._flat.items()})
        self._optimizer.zero_grad(set_to_none=self._replayed is None)  # a graph adds to the same tensors
        loss.backward()
        return figures.detach()


def rollout_memory(args: Any, more: Mapping[str, int], network: Any) -> dict[str, int]:
    """Estimated bytes of the rollout, and of a minibatch: observations, activations of the network's trunk and their
    gradients. `network(layout, num_actions)` makes one."""
    layout = layout_of(args)
    rollout = allocate_rollout(args.num_steps, args.num_envs, layout, torch.device("meta"), **more)
    picture = torch.zeros(1, *layout.picture_shape)
    pixels = activations = picture.numel()
    for layer in network(layout, 8).trunk:
        picture = layer(picture)
        activations += picture.numel()
    steps = args.num_steps * args.num_envs
    minibatch = -(-steps // args.num_minibatches) * (pixels + 2 * 4 * activations)
    return {"rollout": sum(part.nbytes for part in rollout.values()), "minibatch": minibatch}
