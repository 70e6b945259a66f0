"""An emulator that can be heard: each step leaves its samples in the memory rows (hw/sound/samples.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import sound_fields
from gbxcule_puffer.emulator.build.variant import Variant
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.emulator.emulator import Emulator
from gbxcule_puffer.emulator.sound_fields import MOST_SAMPLES, SAMPLES, SAMPLES_HEAD

SAMPLES_A_SECOND = 48_000
START = SAMPLES - hw.ROW_BASE
MUTED = START + 12  # the last of the words
FIRST = START + SAMPLES_HEAD
UNIT, WAVE_RAM = slice(hw.SOUND - hw.ROW_BASE, START), slice(hw.WAVE_RAM - hw.ROW_BASE, hw.WAVE_RAM_END - hw.ROW_BASE)


class HeardEmulator(Emulator):
    """An Emulator with sound=True whose sound can be taken after each step; with the slower kernel.

    Args: as of Emulator, without kernel and sound.
    """

    def __init__(self, rom: Rom, num_envs: int = 1, device: str = "cpu", **options: Any) -> None:
        super().__init__(rom, num_envs, device, kernel="interpreter", sound=True, **options)

    @property
    def _variant(self) -> Variant:
        return replace(super()._variant, samples=True)

    def take_samples(self, env: int = 0) -> np.ndarray:
        """The sound of the last step, shape (samples, 2), uint8: 48,000 samples a second, left and right, as PyBoy's,
        0 to 60. They are taken: a second call returns none. Of a step of four frames and more, only the beginning."""
        row = self._memory[env]
        count = int(row[START : START + 4].cpu().numpy().view("<i4")[0])
        assert 0 <= count <= MOST_SAMPLES
        found = row[FIRST : FIRST + 2 * count].cpu().numpy().reshape(-1, 2).copy()
        row[START:MUTED] = 0
        row[FIRST : FIRST + 2 * count] = 0
        return found

    def follow(self, source: Emulator, anew: bool) -> None:
        """Take over the machines of another emulator. If it is muted, the game goes on reading 00 from the sound
        registers, but what it writes is heard: by the unit so far or, if `anew`, by that of a machine that has just
        been switched on; where the other was not, by one that is on and plays nothing."""
        if anew:
            self.reset()
            for env in range(self.num_envs):
                registers = source.registers(env)
                if _age(registers) != _age(self.registers(env)):
                    self._silence(env, -registers["div_zero"])
        own = self.memory_without_colors
        unit, wave_ram = own[:, UNIT].clone(), own[:, WAVE_RAM].clone()
        wp.to_torch(self.machine.state).copy_(wp.to_torch(source.machine.state))
        own.copy_(source.memory_without_colors)
        own[:, START:FIRST] = 0
        if not source.sound:
            own[:, UNIT], own[:, WAVE_RAM] = unit, wave_ram
            own[:, MUTED] = 1

    def _silence(self, env: int, divider: int) -> None:
        """Give an env a sound unit that is on and plays nothing; divider: the timer's."""
        row = np.zeros(hw.ROW_SIZE, np.uint8)
        sound_fields.write(row, sound_fields.idle(divider))
        self._memory[env, UNIT] = torch.from_numpy(row[UNIT]).to(self.device)

    def frames_of_step(self, buttons: torch.Tensor, frames: int, release_after: int, holds: bool) -> Iterator[int]:
        """Play a step of `frames` frames one by one, which gives the state of the whole step; yields their numbers.
        buttons: (num_envs,) uint8; holds: the step releases none at its end."""
        own = torch.ones(self.num_envs, dtype=torch.int32, device=self.device)
        for number in range(1, frames + 1):
            # A release after 2 frames of 1 is left to the frame whose number is given
            self.frames_per_step, self.release_after_frames = (1, 1) if holds else (1, 2)
            pressed = buttons if number <= release_after else torch.zeros_like(buttons)
            self.step(pressed, None if holds or number < release_after else own)
            yield number


def _age(registers: dict[str, int]) -> tuple[int, int]:
    """T-cycles since a machine was switched on."""
    return registers["cycles_high"], registers["cycles_low"]
