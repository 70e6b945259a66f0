"""The rows and the memory of a learner's rollout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gbxcule_puffer.errors import ConfigError, DeviceError
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.trainers.envs import layout_of

MOST = 2**36  # steps of all Game Boys
WORD = 8  # bytes


def rows(values: Tensor, index: Tensor) -> Tensor:
    """values[index], (len(index), ...), of contiguous `values`. Rows of whole words are copied by words: values[index]
    copies value by value, which takes 20 times as long for the pictures of a minibatch on a CPU."""
    flat = values.flatten(1) if values.ndim > 1 else values[:, None]
    if flat.shape[1] * flat.element_size() % WORD:
        return values.index_select(0, index)
    found = flat.view(torch.int64).index_select(0, index).view(values.dtype)
    return found.view(len(index), *values.shape[1:])


def rollout_memory(
    args: Any,  # RunFlags with num_steps and num_minibatches
    empty_rollout: Callable[[Any, ObservationLayout, torch.device], Mapping[str, Tensor]],
    network: Callable[[ObservationLayout, int], nn.Module],
    least: int = 1,
) -> dict[str, int]:
    """Estimated bytes of the rollout, and of a minibatch: its observations, the outputs of each layer of the network,
    and their gradients.

    Raises: ConfigError for minibatches of fewer than `least` steps; DeviceError for more steps than bytes can count.
    """
    steps, count = args.num_steps * args.num_envs, args.num_minibatches
    if steps < least * count:
        raise ConfigError(f"--num-minibatches {count} leaves minibatches of under {least} of {steps} steps: give fewer")
    if steps > MOST:
        text = f"a rollout of {args.num_steps:,} steps of {args.num_envs:,} Game Boys fits into no memory"
        raise DeviceError(f"{text}: lower --num-envs or --num-steps")
    layout = layout_of(args)
    rollout = empty_rollout(args, layout, torch.device("meta"))
    sizes: list[int] = []

    def count_outputs(layer: nn.Module, inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        sizes.extend(part.numel() for part in (output if isinstance(output, tuple) else (output,)))

    model = network(layout, 8)
    for layer in model.modules():
        if not list(layer.children()):
            layer.register_forward_hook(count_outputs)
    memory = [torch.zeros(1, size)] if (size := getattr(model, "state_size", 0)) else []
    model(torch.zeros(1, *layout.shape, dtype=layout.kept_dtype), *memory)
    pixels = layout.picture_shape[0] * layout.picture_shape[1] * layout.picture_shape[2]
    minibatch = -(-steps // count) * (pixels + 2 * 4 * (pixels + sum(sizes)))
    return {"rollout": sum(part.nbytes for part in rollout.values()), "minibatch": minibatch}
