"""Several processes that learn together, as torchrun starts them: one GPU (NCCL) or CPU share (gloo) each.

Each process has its own environments and a copy of the model; gradients are averaged. Without torchrun there is one
process and nothing here costs anything.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from gbxcule_puffer.errors import ConfigError

Value = TypeVar("Value")


@dataclass(frozen=True)
class World:
    """This process among all: `rank` 0..size-1, `local_rank` on its own machine."""

    rank: int = 0
    local_rank: int = 0
    size: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> World:
        """The processes that torchrun's variables describe, or one process without torchrun.

        Raises: ConfigError if the variables are not numbers or contradict each other.
        """
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
        given = {name: environment[name] for name in names if name in environment}
        if "WORLD_SIZE" not in given:
            return cls()
        if len(given) < len(names) or not all(text.isdigit() for text in given.values()):
            raise ConfigError(f"{' '.join(names)} are {given or 'not set'}: start the processes with torchrun")
        rank, local_rank, size = (int(given[name]) for name in names)
        if rank >= size:
            raise ConfigError(f"RANK {rank} is not below WORLD_SIZE {size}: start the processes with torchrun")
        return cls(rank, local_rank, size)

    def join(self, device: str) -> bool:
        """Connects to the other processes, if there are any and it has not done so."""
        if self.size == 1 or dist.is_initialized():
            return False
        # Its functions keep the current group as a default argument when they are imported, and torch.compile imports
        # them. Imported after the group exists, they would keep its threads alive past `leave` until the process ends,
        # and a thread that then asks for the interpreter aborts the process.
        importlib.import_module("torch.distributed.nn.functional")
        if device.startswith("cuda"):
            torch.cuda.set_device(device)
            dist.init_process_group("nccl", device_id=torch.device(device))
        else:
            dist.init_process_group("gloo")
        return True

    def leave(self) -> None:
        """Ends what `join` began."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def tell(self, value: Value) -> Value:
        """The first process's `value`, in every process (any small picklable object)."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Value) -> list[Value]:
        """Every process's `value` in the order of ranks; an empty list in all processes but the first."""
        if self.size == 1:
            return [value]
        box: list[Any] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, box, dst=0)
        return box or []

    def gather_all(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Every process's `tensor` (equal shapes and types) in the order of ranks, in all processes."""
        if self.size == 1:
            return [tensor]
        found = [torch.zeros_like(tensor) for _ in range(self.size)]
        dist.all_gather(found, tensor.contiguous())
        return found

    def send(self, tensor: torch.Tensor, source: int) -> None:
        """Fills a contiguous `tensor` in every process with that of the process `source`."""
        if self.size > 1:
            dist.broadcast(tensor, src=source)

    def average(self, tensor: torch.Tensor) -> None:
        """Replaces a tensor by its mean over the processes, in place; the host does not wait."""
        if self.size > 1:
            dist.all_reduce(tensor)
            tensor.div_(self.size)

    def average_gradients(self, model: nn.Module) -> None:
        """Replaces the gradients by their means over the processes, in one message."""
        if self.size == 1:
            return
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.average(flat)
        parts = flat.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def share_weights(self, model: nn.Module) -> None:
        """Gives every process the weights and buffers of the first."""
        if self.size > 1:
            for tensor in model.state_dict().values():
                whole = tensor.contiguous()  # NCCL takes no other layout
                dist.broadcast(whole, src=0)
                tensor.copy_(whole)
