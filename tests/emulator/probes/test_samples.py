"""Samples of HeardEmulator beside PyBoy's sound buffer, and steps that are played frame by frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.probes.samples import SAMPLES_A_SECOND, HeardEmulator
from gbxcule_puffer.emulator.sound_fields import SAMPLES
from tests.conformance.test_sound import rom_of
from tests.support.sound import emulator_sound

# All four channels play, each on other sides; the sweep rises, the envelopes fall. Then on and on, a byte of wave RAM
# aside: the periods, volumes and panning follow DIV, and each turn triggers the channels again.
BAND = """F3 3E 80 E0 26 3E 77 E0 24  21 30 FF 0E 10 7D 07 07 07 A9 22 0D 20 F8
          3E 80 E0 1A 3E 20 E0 1C  3E 15 E0 10 3E 80 E0 11 3E 40 E0 16
          F0 04 E0 25 E0 13 E0 18 E0 1D  F6 80 E0 12 E0 17 E0 21 E0 22
          3E 86 E0 14 E0 19 E0 1E E0 23  01 00 05 0B 78 B1 20 FB 18 DC"""
FRAMES = 60
LOUDEST = 60  # of a sample: four channels of 15
PER_STEP = {"instructions", "release_at"}  # registers that count within a step


def spectrum(played: np.ndarray) -> np.ndarray:
    """The strengths of all frequencies of both sides."""
    return np.abs(np.fft.rfft(played.astype(float), axis=0)).ravel()


@pytest.mark.parametrize(("model", "most"), [("dmg", 0), pytest.param("cgb", 0.005, marks=pytest.mark.long)])
def test_samples_are_pyboy_s(model: str, most: float) -> None:
    """All of a DMG's. With samples, PyBoy's batches are shorter: a Game Boy Color's noise loses T-cycles in each."""
    rom = rom_of(bytes.fromhex(BAND))
    ours = HeardEmulator(rom, model=model, frames_per_step=1, release_after_frames=1, num_threads=1)
    theirs = PyBoyMachine(rom, 1, 1, model=model, sound=True)
    heard, expected = [], []
    for _ in range(FRAMES):
        ours.step(torch.zeros(1, dtype=torch.uint8))
        theirs.pyboy.tick(1, True, True)
        heard.append(ours.take_samples())
        expected.append(theirs.pyboy.sound.ndarray.copy())
        assert len(heard[-1]) == len(expected[-1])
    theirs.close()
    played, wanted = np.concatenate(heard), np.concatenate(expected)
    assert (played != wanted).any(axis=1).mean() <= most
    assert played.mean() == pytest.approx(wanted.mean(), rel=0.001)
    assert np.corrcoef(spectrum(played), spectrum(wanted))[0, 1] > 0.999
    assert abs(len(played) - SAMPLES_A_SECOND * FRAMES * 70_224 / 4_194_304) < 2 * SAMPLES_A_SECOND / 59
    assert 15 < played.max() <= LOUDEST and len(np.unique(played)) > 15  # more than one channel
    assert (played[:, 0] != played[:, 1]).any()


@pytest.mark.parametrize("release_after", [1, 3, 8])
def test_a_step_frame_by_frame(release_after: int) -> None:
    """Is the step, bit for bit, and leaves no sound in the states."""
    rom, buttons = rom_of(bytes.fromhex(BAND)), torch.tensor([0x91], dtype=torch.uint8)
    whole = Emulator(
        rom, frames_per_step=8, release_after_frames=release_after, num_threads=1, sound=True, kernel="interpreter"
    )
    heard = HeardEmulator(rom, num_threads=1)
    for _ in range(3):
        whole.step(buttons)
        lengths = []
        for _number in heard.frames_of_step(buttons, 8, release_after, release_after == 8):
            lengths.append(len(heard.take_samples()))
        assert all(lengths) and len(lengths) == 8 and not len(heard.take_samples())
        assert not heard.memory[:, SAMPLES - hw.ROW_BASE : hw.OAM - hw.ROW_BASE].any()
        np.testing.assert_array_equal(whole.screen, heard.screen)
        found, expected = heard.registers(), whole.registers()
        assert {name: found[name] for name in found if found[name] != expected[name]}.keys() <= PER_STEP
        first, second = (one.memory[0].numpy().copy() for one in (whole, heard))
        # Noise may have made its steps, or not
        np.testing.assert_equal(emulator_sound(first, "dmg"), emulator_sound(second, "dmg"))
        for row in (first, second):
            row[hw.SOUND - hw.ROW_BASE : hw.OAM - hw.ROW_BASE] = 0
        np.testing.assert_array_equal(first, second)
