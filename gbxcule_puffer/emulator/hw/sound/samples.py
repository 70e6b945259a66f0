"""Samples, 48,000 a second: PyBoy's sums of the channels that NR51 gives to each side, 0 to 60, without NR50's volume.

They are made where the unit is brought up to date (unit.advance), and lie in the hole of the memory row until the host
takes them (probes/samples.py). A sample is taken every 32768/375 T-cycles, counted from power-on, rounded up.
"""

import warp as wp

from gbxcule_puffer.emulator.hw import row
from gbxcule_puffer.emulator.hw.sound import levels, words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.sound_fields import MOST_SAMPLES, SAMPLES, SAMPLES_HEAD
from gbxcule_puffer.emulator.state import Cpu

COUNT, DUE, REST = (wp.constant(SAMPLES + 4 * index) for index in range(3))
"""Words: samples since the step began, the time of the next, and by how many 375ths of a T-cycle that is rounded up."""
FIRST = wp.constant(SAMPLES + SAMPLES_HEAD)
MOST = wp.constant(MOST_SAMPLES)
PERIOD, PARTS = wp.constant(32_768), wp.constant(375)  # the period in 375ths of a T-cycle
WHOLE = wp.constant(87)  # T-cycles in it


@wp.func
def begin(c: wp.ref[Cpu], cycles: int):
    """Begin a step, `cycles` T-cycles of the CPU after power-on, modulo 65,536."""
    passed = cycles >> words.speed(c)
    number = passed * PARTS // PERIOD + 1
    due = (number * PERIOD + PARTS - 1) // PARTS
    store(c, COUNT, 0)
    store(c, DUE, (due << words.speed(c)) - cycles)
    store(c, REST, due * PARTS - number * PERIOD)


@wp.func
def next_due(c: wp.ref[Cpu]):
    """Find the time of the next sample."""
    rest = load(c, REST) - (PERIOD - WHOLE * PARTS)
    more = wp.where(rest < 0, 1, 0)
    store(c, REST, rest + more * PARTS)
    store(c, DUE, load(c, DUE) + ((WHOLE + more) << words.speed(c)))


@wp.func
def side(c: wp.ref[Cpu], panning: int) -> int:
    """The sum of the channels of one side."""
    total = wp.where((panning & 1) != 0, levels.tone(c, words.SWEEP), 0)
    total = total + wp.where((panning & 2) != 0, levels.tone(c, words.TONE), 0)
    total = total + wp.where((panning & 4) != 0, levels.wave(c), 0)
    return total + wp.where((panning & 8) != 0, levels.noise(c), 0)


@wp.func
def take(c: wp.ref[Cpu]):
    """Take a sample of the unit as it is now: a byte of the left side, then one of the right."""
    count = load(c, COUNT)
    if count < MOST:
        panning = load(c, words.PANNING) * load(c, words.ON)
        row.store(c, FIRST + 2 * count, side(c, panning >> 4))
        row.store(c, FIRST + 2 * count + 1, side(c, panning & 15))
        store(c, COUNT, count + 1)
    next_due(c)
