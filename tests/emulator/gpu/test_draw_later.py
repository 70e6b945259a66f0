"""The launches of a GPU's step, on the CPU: up to VBlank, the picture by a kernel of its own, the rest."""

from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.build.variant import build
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PATIENCE
from gbxcule_puffer.emulator.state import INDEX
from tests.conformance.test_game_boy_color import picture_rom, rom_of
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import random_buttons


class DrawsLater(Emulator):
    """An emulator on the CPU that draws as on a GPU; held_up: times that an env has waited for its picture."""

    held_up = 0

    def _allocate(self) -> None:
        super()._allocate()
        self.machine.draw_later = 1

    def _run(self, frames: int, release_after: int) -> None:
        inputs, dim = [*self._arguments(0, frames, release_after), PATIENCE, 0], self.num_envs
        wp.launch(self._kernel(), dim, inputs, device="cpu")
        waits = self._state[INDEX["drawing"]] != 0
        self.held_up += int(waits.sum())
        assert (self._state[INDEX["frames_left"]][waits] > 0).all(), "an env whose step is over would never come back"
        wp.launch(build("datapath", self._variant).draw, self.num_envs, [self.machine, 1], device="cpu")
        inputs[-1] = 1
        wp.launch(self._kernel(), dim, inputs, device="cpu")


def assert_equal(rom: bytes, steps: int, **options: Any) -> int:
    """Runs both; returns how often one of two envs was held up."""
    options |= {"kernel": "datapath", "num_threads": 1}
    plain, later = Emulator(rom, 2, **options), DrawsLater(rom, 2, **options)
    for row in torch.from_numpy(random_buttons(3, steps, 2)):
        plain.step(row)
        later.step(row)
        np.testing.assert_array_equal(later.state_hash(), plain.state_hash())
    return later.held_up


@pytest.mark.parametrize("screen", ["half", "full"])
@pytest.mark.parametrize("flag", [0xC0, 0x00])
def test_pictures_in_colour(flag: int, screen: str) -> None:
    for seed in range(2):
        options = {"model": "cgb", "screen": screen, "frames_per_step": 3, "release_after_frames": 2}
        assert assert_equal(picture_rom(seed, flag), 12, **options) > 2


@pytest.mark.parametrize(("model", "kind", "seeds"), [("dmg", "program", (0, 2)), ("cgb", "color", (2, 3))])
def test_random_programs(model: str, kind: str, seeds: tuple[int, ...]) -> None:
    """Seeds by which envs are held up."""
    options = {"model": model, "frames_per_step": 3, "release_after_frames": 2}
    assert sum(assert_equal(make_rom(seed, kind).data, 10, **options) for seed in seeds) > 10


# Switches the LCD off in each 2nd frame, 4 T-cycles later from time to time, from line 143 into VBlank: wait for line
# 144, then 143; n + 1 times 16 T-cycles and 0 to 3 NOPs, n and these from a byte that counts up.
SWITCHES_OFF = """
    F3 AF EA00C0  F044 FE90 20FA F044 FE8F 20FA  FA00C0 3C EA00C0 57 CB3F CB3F 3C 3D 20FD
    7A E603 5F 3E03 93 5F 1600 218001 19 E9 000000  3E11 E040 0680 05 20FD 3E91 E040 C35501
"""


@pytest.mark.parametrize("model", ["dmg", "cgb"])
def test_the_lcd_is_switched_off_as_vblank_begins(model: str) -> None:
    """The instruction that does it ends the frame and the step, with the picture about to be drawn."""
    options = {"model": model, "frames_per_step": 1, "release_after_frames": 1}
    assert assert_equal(rom_of(SWITCHES_OFF, 0xC0 if model == "cgb" else 0x00), 420, **options) > 100
