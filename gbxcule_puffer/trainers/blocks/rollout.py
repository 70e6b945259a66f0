"""The rollout of an on-policy learner: its tensors, its minibatches and the memory they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gbxcule_puffer.errors import DeviceError
from gbxcule_puffer.tasks.observations import ObservationLayout, signed
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


def minibatches(parts: Mapping[str, Tensor], epochs: int, count: int) -> Iterator[dict[str, Tensor]]:
    """All steps of a rollout in a new random order each epoch, in `count` minibatches; `parts` are (num_steps,
    num_envs, ...), a minibatch's are (batch, ...)."""
    flat = {name: part.flatten(0, 1) for name, part in parts.items()}
    first = next(iter(flat.values()))
    for _ in range(epochs):
        for index in torch.randperm(len(first), device=first.device).chunk(count):
            yield {name: part[index] for name, part in flat.items()}


def rollout_memory(args: Any, more: Mapping[str, int], network: Any, targets: int) -> dict[str, int]:
    """Estimated bytes of the rollout with `targets` tensors that are computed of it, and of a minibatch: observations,
    activations of the network's trunk and their gradients. `network(layout, num_actions)` makes one."""
    layout = layout_of(args)
    rollout = allocate_rollout(args.num_steps, args.num_envs, layout, torch.device("meta"), **more)
    picture = torch.zeros(1, *layout.picture_shape)
    pixels = activations = picture.numel()
    for layer in network(layout, 8).trunk:
        picture = layer(picture)
        activations += picture.numel()
    steps = args.num_steps * args.num_envs
    minibatch = -(-steps // args.num_minibatches) * (pixels + 2 * 4 * activations)
    return {"rollout": sum(part.nbytes for part in rollout.values()) + targets * 4 * steps, "minibatch": minibatch}
