"""The four channels, each brought up to date by any number of T-cycles in which no register is written. As in PyBoy:
a Game Boy Color's tone channels stand still while they are off, a DMG's go on. `channel`: words.SWEEP to words.NOISE.
"""

import warp as wp

from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu

EXTRA_TICK = wp.constant(8)  # of ENVELOPE_TIMER


@wp.func
def samples(c: wp.ref[Cpu], channel: int, t_cycles: int) -> int:
    """Count the period timer down; returns how many samples have begun."""
    timer = load(c, channel + words.PERIOD_TIMER) - t_cycles
    count = int(0)
    if timer <= 0:
        period = load(c, channel + words.PERIOD)
        count = -timer // period + 1
        timer = timer + count * period
    store(c, channel + words.PERIOD_TIMER, timer)
    return count


@wp.func
def advance_tone(c: wp.ref[Cpu], channel: int, t_cycles: int):
    """Channel 1 or 2."""
    count = samples(c, channel, t_cycles)
    if count != 0:
        store(c, channel + words.FRAME, (load(c, channel + words.FRAME) + count) & 7)
        if model.COLOR:
            store(c, channel + words.SUPPRESSED, 0)
            if load(c, channel + words.DUTY_UPDATE) != 0:
                store(c, channel + words.DUTY, load(c, channel + words.PENDING_DUTY))
                store(c, channel + words.DUTY_UPDATE, 0)


@wp.func
def advance_wave(c: wp.ref[Cpu], t_cycles: int):
    """Channel 3. WAVE_ACCESS: its last sample began at most a T-cycle ago."""
    if load(c, words.WAVE) == 0:
        return
    count = samples(c, words.WAVE, t_cycles)
    is_new = int(0)
    if count != 0:
        frame = load(c, words.WAVE + words.FRAME)
        if load(c, words.WAVE_RESTART) != 0:
            frame = 0
            store(c, words.WAVE_RESTART, 0)
        frame = (frame + count) & 31
        store(c, words.WAVE + words.FRAME, frame)
        store(c, words.WAVE_SAMPLE_FRAME, frame)
        store(c, words.WAVE + words.SUPPRESSED, 0)
        age = load(c, words.WAVE + words.PERIOD) - load(c, words.WAVE + words.PERIOD_TIMER)
        is_new = wp.where(age <= 1, 1, 0)
    store(c, words.WAVE_ACCESS, is_new)


@wp.func
def divider_period(control: int) -> int:
    """T-cycles in which a Game Boy Color's noise divider counts once."""
    code = control & 7
    return wp.where(code == 0, 4, 8 * code)


@wp.func
def noise_period(control: int) -> int:
    """T-cycles of a step of the shift register, without NR43's special cases."""
    return (2 * divider_period(control)) << (control >> 4)


@wp.func
def rises(counter: int, count: int, bit: int) -> int:
    """Changes of a bit from 0 to 1 while a counter of 14 bits counts `count` times."""
    result = int(0)
    if bit < 14:
        half = 1 << bit
        result = ((counter + count + half) >> (bit + 1)) - ((counter + half) >> (bit + 1))
    return result


@wp.func
def step_noise(c: wp.ref[Cpu], count: int):
    """Steps of the shift register, made when somebody looks at it (lfsr.py)."""
    store(c, words.NOISE_STEPS, load(c, words.NOISE_STEPS) + count)


@wp.func
def advance_divider(c: wp.ref[Cpu], t_cycles: int):
    """A Game Boy Color's divider of channel 4. PyBoy's alignment loses an odd T-cycle each time that it is looked at
    (unit.end_batch)."""
    store(c, words.NOISE_ALIGNMENT, (load(c, words.NOISE_ALIGNMENT) + (t_cycles >> 1)) & 3)
    if load(c, words.NOISE_RUNNING) == 0:
        return
    control = load(c, words.NOISE_CONTROL)
    period = divider_period(control)
    left = load(c, words.NOISE_COUNTDOWN)
    if left == 0:
        left = period
    left = left - t_cycles
    if left <= 0:
        count = -left // period + 1
        left = left + count * period
        counter = load(c, words.NOISE_COUNTER)
        if load(c, words.NOISE) != 0:
            step_noise(c, rises(counter, count, control >> 4))
        store(c, words.NOISE_COUNTER, (counter + count) & 0x3FFF)
    store(c, words.NOISE_COUNTDOWN, left)


@wp.func
def advance_noise(c: wp.ref[Cpu], t_cycles: int):
    """Channel 4."""
    if model.COLOR:
        advance_divider(c, t_cycles)
    else:
        step_noise(c, samples(c, words.NOISE, t_cycles))


@wp.func
def tick_length(c: wp.ref[Cpu], channel: int):
    """Count the length down; at 0 the channel stops."""
    length = load(c, channel + words.LENGTH)
    if load(c, channel + words.LENGTH_ENABLE) != 0 and length > 0:
        store(c, channel + words.LENGTH, length - 1)
        if length == 1:
            store(c, channel, 0)


@wp.func
def next_volume(c: wp.ref[Cpu], channel: int) -> int:
    """The volume after a step of the envelope, which may be -1 or 16."""
    return load(c, channel + words.VOLUME) + wp.where((load(c, channel + words.ENVELOPE) & 8) != 0, 1, -1)


@wp.func
def tick_envelope(c: wp.ref[Cpu], channel: int):
    """Count the envelope's timer down; at 0 the volume changes, or the envelope stops."""
    timer = load(c, channel + words.ENVELOPE_TIMER)
    if timer != 0:
        timer = timer - 1
        if timer == 0:
            volume = next_volume(c, channel)
            if volume >= 0 and volume <= 15:
                timer = load(c, channel + words.ENVELOPE) & 7
                store(c, channel + words.VOLUME, volume)
        store(c, channel + words.ENVELOPE_TIMER, timer)


@wp.func
def tick_envelope_extra(c: wp.ref[Cpu], channel: int):
    """The step of the envelope that a write to NRx2 causes on a Game Boy Color."""
    timer = load(c, channel + words.ENVELOPE_TIMER)
    if (timer & EXTRA_TICK) != 0:
        store(c, channel + words.ENVELOPE_TIMER, timer & 7)
        volume = next_volume(c, channel)
        if volume >= 0 and volume <= 15:
            store(c, channel + words.VOLUME, volume)
