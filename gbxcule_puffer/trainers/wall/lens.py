"""The state of one Game Boy before a step, and the buttons of the step. Its whole picture follows from them."""

from __future__ import annotations

from dataclasses import astuple

import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.trainers.wall.whole_picture import NO_FRAMES, Machine


class Lens:
    """Keeps one Game Boy of an emulator as it was before the emulator's newest step.

    data: uint8 on the device: the state, the step's buttons and frames as int32, then the memory row without the
    picture in colour, whose size depends on the resolution. A copy that is recorded in a CUDA graph keeps up to date
    with each replay.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.machine = Machine(
            emulator.cartridge,
            emulator.frames_per_step,
            emulator.release_after_frames,
            emulator.accuracy,
            emulator.instruction_budget,
            tuple(astuple(test) for test in emulator.until),
        )
        self._state = wp.to_torch(emulator.machine.state)
        self._memory = emulator.memory_without_colors
        fields, row = len(self._state), self._memory.shape[1]
        self.data = torch.zeros(4 * (fields + 2) + row, dtype=torch.uint8, device=emulator.device)
        numbers = self.data[: 4 * (fields + 2)].view(torch.int32)
        self._own_state, self._pressed, self._frames = numbers[:fields].view(-1, 1), numbers[fields:-1], numbers[-1:]
        self._own_row = self.data[4 * (fields + 2) :].view(1, -1)
        self._env = torch.zeros(1, dtype=torch.int64, device=emulator.device)
        self.env = 0

    def point_at(self, env: int) -> None:
        """Has the next copies be of Game Boy number `env`."""
        if env != self.env:
            self.env = env
            self._env.fill_(env)

    def copy(self, buttons: torch.Tensor, frames: torch.Tensor | None) -> None:
        """Takes the Game Boy as it is now; buttons, frames: of the step that comes, as of Emulator.step."""
        torch.gather(self._state, 1, self._env.expand(len(self._state), 1), out=self._own_state)
        torch.gather(self._memory, 0, self._env.expand(1, self._memory.shape[1]), out=self._own_row)
        self._pressed.copy_(buttons.gather(0, self._env))
        if frames is None:
            self._frames.fill_(NO_FRAMES)
        else:
            self._frames.copy_(frames.gather(0, self._env))
