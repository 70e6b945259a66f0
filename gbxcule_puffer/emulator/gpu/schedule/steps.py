"""The launches of a step on a GPU: first the lanes are assigned, then the Game Boys run, in the fastest known launch
shape."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator.gpu.schedule import autotuner, launch_shape
from gbxcule_puffer.emulator.gpu.schedule.lane_order import LaneOrder
from gbxcule_puffer.emulator.launch import warp_stream


class GpuSteps:
    """Launches steps of an emulator on torch's current stream.

    shape: of the next launch; no result depends on it. begun: a CUDA event of the last step, between the assignment of
    lanes and the Game Boys. Work that waits for it leaves the whole GPU to them: all their blocks begin at once. A
    block without room would begin only when another one ends.
    """

    def __init__(self, buttons: torch.Tensor, lanes: LaneOrder | None, autotune: bool) -> None:
        """buttons: of the next step, shape (num_envs,); lanes: None with the interpreter; autotune: find the fastest
        shape by trials on the steps."""
        self._buttons, self._lanes, self._device = buttons, lanes, buttons.device
        self.shape = launch_shape.best(len(buttons), torch.cuda.get_device_name(self._device))
        self._autotuner = autotuner.Autotuner(self.shape) if autotune and lanes is not None else None
        self.begun = torch.cuda.Event()

    @property
    def unsettled(self) -> bool:
        """True until the first trial has ended, and during a later one: the shape may then change from step to step. A
        step in a CUDA graph keeps its shape."""
        return self._autotuner is not None and self._autotuner.unsettled

    def launch(self, kernel: wp.Kernel, inputs: list[Any], drawing: wp.Kernel | None) -> None:
        """Runs one step of all envs.

        kernel: the step's; inputs: the arguments that data path and interpreter share, a Machine first; drawing: the
        kernel of the pictures, if the step waits for it (Machine.draw_later). No host synchronisation.
        """
        current = torch.cuda.current_stream(self._device)
        stream, num_envs = warp_stream(current), len(self._buttons)
        with nullcontext(self.shape) if self._autotuner is None else self._autotuner.step(current) as self.shape:
            block_dim, dim = self.shape.block_dim, num_envs
            if self._lanes is not None:
                inputs = [*inputs, self.shape.patience, 0]
                dim = launch_shape.WARP_SIZE * self._lanes.update(self._buttons, self.shape, stream)
            self.begun.record(current)
            wp.launch(kernel, dim, inputs, stream=stream, block_dim=block_dim)
            if drawing is not None:
                lanes = launch_shape.WARP_SIZE
                wp.launch(drawing, num_envs * lanes, [inputs[0], lanes], stream=stream)
                inputs[-1] = 1  # resume
                wp.launch(kernel, dim, inputs, stream=stream, block_dim=block_dim)
