"""The output of each channel now, 0 to 15: for PCM12, PCM34 and samples. Call it after unit.advance."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import row
from gbxcule_puffer.emulator.hw.sound import lfsr, words
from gbxcule_puffer.emulator.hw.sound.words import load
from gbxcule_puffer.emulator.state import Cpu

DUTIES = wp.constant(0x7E_E1_81_80)  # a byte for each duty cycle, a bit for each sample, the first one lowest


@wp.func
def tone(c: wp.ref[Cpu], channel: int) -> int:
    """The output of channel 1 or 2, 0 to 15."""
    bit = (DUTIES >> (8 * load(c, channel + words.DUTY) + load(c, channel + words.FRAME))) & 1
    is_heard = load(c, channel) != 0 and load(c, channel + words.SUPPRESSED) == 0
    return wp.where(is_heard, load(c, channel + words.VOLUME) * bit, 0)


@wp.func
def wave(c: wp.ref[Cpu]) -> int:
    """The output of channel 3, 0 to 15."""
    frame = load(c, words.WAVE_SAMPLE_FRAME)
    pair = row.load(c, hw.WAVE_RAM + (frame >> 1))
    level = wp.where((frame & 1) == 0, pair >> 4, pair & 15) >> load(c, words.WAVE_SHIFT)
    is_heard = load(c, words.WAVE) != 0 and load(c, words.WAVE_DAC) != 0 and load(c, words.WAVE + words.SUPPRESSED) == 0
    return wp.where(is_heard, level, 0)


@wp.func
def noise(c: wp.ref[Cpu]) -> int:
    """The output of channel 4, 0 to 15."""
    level = int(0)
    if load(c, words.NOISE) != 0 and (lfsr.make_steps(c) & 1) == 0:
        level = load(c, words.NOISE + words.VOLUME)
    return level
