"""The launches of a step on a GPU: which lane runs which env, then the Game Boys, in the shape that is known to be the
fastest."""

from __future__ import annotations

from typing import Any

import torch
import warp as wp

from gbxcule_puffer.emulator.lanes import autotuner, launch_shape
from gbxcule_puffer.emulator.lanes.lane_order import LaneOrder
from gbxcule_puffer.emulator.launch import current_stream


class GpuSteps:
    """Launches steps of an emulator on torch's current stream.

    shape: of the next launch; it changes no result. begun: a CUDA event before the Game Boys of the last step, and
    behind the choice of their lanes. Whoever waits for it leaves them the whole GPU: their blocks all begin at once,
    and one that found no room would begin when another ends.
    """

    def __init__(self, buttons: torch.Tensor, lanes: LaneOrder | None, autotune: bool) -> None:
        """buttons: of the next step, shape (num_envs,); lanes: of the data path, None with the interpreter; autotune:
        find the fastest shape by trials on the steps."""
        self._buttons, self._lanes, self._device = buttons, lanes, buttons.device
        self.shape = launch_shape.best(len(buttons), torch.cuda.get_device_name(self._device))
        self._autotuner = autotuner.Autotuner(self.shape) if autotune and lanes is not None else None
        self.begun = torch.cuda.Event()

    @property
    def unsettled(self) -> bool:
        """True until the first trial has ended, and while a later one is under way: then steps may have another shape.
        What a CUDA graph records keeps its shape."""
        return self._autotuner is not None and self._autotuner.unsettled

    def launch(self, kernel: wp.Kernel, inputs: list[Any], drawing: wp.Kernel | None) -> None:
        """Runs one step of all envs.

        kernel: the step's; inputs: those that the data path and the interpreter have in common, a Machine first;
        drawing: the pictures' kernel where the step waits for it (Machine.draw_later). No host synchronisation.
        """
        if self._autotuner is None:
            return self._launch(kernel, inputs, drawing)
        with self._autotuner.step(torch.cuda.current_stream(self._device)) as self.shape:
            self._launch(kernel, inputs, drawing)

    def _launch(self, kernel: wp.Kernel, inputs: list[Any], drawing: wp.Kernel | None) -> None:
        num_envs, machine = len(self._buttons), inputs[0]
        stream, block_dim, dim = current_stream(self._device), self.shape.block_dim, num_envs
        if self._lanes is not None:
            inputs = [*inputs, self.shape.patience, 0]
            dim = launch_shape.WARP_SIZE * self._lanes.update(self._buttons, self.shape, stream)
        self.begun.record(torch.cuda.current_stream(self._device))
        wp.launch(kernel, dim, inputs, stream=stream, block_dim=block_dim)
        if drawing is not None:
            lanes = launch_shape.WARP_SIZE
            wp.launch(drawing, num_envs * lanes, [machine, lanes], stream=stream)
            inputs[-1] = 1  # resume
            wp.launch(kernel, dim, inputs, stream=stream, block_dim=block_dim)
