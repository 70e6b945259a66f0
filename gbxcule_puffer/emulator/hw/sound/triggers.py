"""Triggers: bit 7 of NRx4 begins a sound. `is_active`: not 0 if the channel was playing."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.hw.sound import channels, sweep, words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu

WAVE_DELAY_T_CYCLES = wp.constant(5)  # from a trigger to channel 3's first sample, more than its period
HOLD_T_CYCLES = wp.constant(9)  # of a Game Boy Color's sweep
CHECK_DELAY_T_CYCLES = wp.constant(8)  # by which a trigger delays a check that is due


@wp.func
def channel_at(offset: int) -> int:
    """The channel of a register, by its distance from NR10."""
    number = offset // 5
    return wp.where(
        number < 2, wp.where(number == 0, words.SWEEP, words.TONE), wp.where(number == 2, words.WAVE, words.NOISE)
    )


@wp.func
def full_length(channel: int) -> int:
    """The value from which a length counter counts."""
    return wp.where(channel == words.WAVE, 256, 64)


@wp.func
def refill_length(c: wp.ref[Cpu], channel: int):
    """A length counter at 0 starts again."""
    if load(c, channel + words.LENGTH) == 0:
        store(c, channel + words.LENGTH, full_length(channel))


@wp.func
def is_dac_on(c: wp.ref[Cpu], channel: int) -> int:
    """1 if the channel, not 3, has a volume or an envelope that makes one."""
    return wp.where((load(c, channel + words.ENVELOPE) & 0xF8) != 0, 1, 0)


@wp.func
def begin(c: wp.ref[Cpu], channel: int, bit: int):
    """The part that channels 1, 2 and 4 have in common; bit: of NR52."""
    envelope = load(c, channel + words.ENVELOPE)
    refill_length(c, channel)
    store(c, channel, is_dac_on(c, channel) * bit)
    store(c, channel + words.PERIOD_TIMER, load(c, channel + words.PERIOD))
    store(c, channel + words.ENVELOPE_TIMER, envelope & 7)
    store(c, channel + words.VOLUME, envelope >> 4)


@wp.func
def trigger_sweep(c: wp.ref[Cpu], is_active: int):
    """Channel 1."""
    begin(c, words.SWEEP, words.SWEEP_BIT)
    control = load(c, words.SWEEP_CONTROL)
    check = load(c, words.SWEEP_CHECK)
    store(c, words.SWEEP_SHADOW, load(c, words.SWEEP + words.SOUND_PERIOD))
    store(c, words.SWEEP_TIMER, wp.where(sweep.pace(control) != 0, sweep.pace(control), 8))
    store(c, words.SWEEP_CALCULATION, 0)
    if model.COLOR:
        store(c, words.SWEEP_HOLD, wp.where(is_active != 0 and (control & 7) == 0, HOLD_T_CYCLES, 0))
    store(c, words.SWEEP_CHECK, wp.where(check != 0, check + CHECK_DELAY_T_CYCLES, 0))
    store(c, words.SWEEP_NEGATED, 0)
    store(c, words.SWEEP_ON, wp.where((control & 0x77) != 0, 1, 0))
    if (control & 7) != 0 and check == 0:
        sweep.sweep(c, 0)


@wp.func
def corrupt_wave_ram(c: wp.ref[Cpu]):
    """A DMG's trigger just before channel 3 reads a byte: that byte, or the four around it, become the first ones."""
    offset = ((load(c, words.WAVE + words.FRAME) + 1) // 2) & 15
    if offset < 4:
        row.store(c, hw.WAVE_RAM, row.load(c, hw.WAVE_RAM + offset))
    else:
        for i in range(4):
            row.store(c, hw.WAVE_RAM + i, row.load(c, hw.WAVE_RAM + (offset & 12) + i))


@wp.func
def trigger_wave(c: wp.ref[Cpu], is_active: int):
    """Channel 3."""
    restarts = int(0)
    if model.COLOR:
        restarts = wp.where(is_active != 0, 1, 0)
    elif is_active != 0 and load(c, words.WAVE + words.PERIOD_TIMER) == 1:
        corrupt_wave_ram(c)
    refill_length(c, words.WAVE)
    store(c, words.WAVE, load(c, words.WAVE_DAC) * words.WAVE_BIT)
    store(c, words.WAVE + words.PERIOD_TIMER, load(c, words.WAVE + words.PERIOD) + WAVE_DELAY_T_CYCLES)
    if restarts != 0:
        store(c, words.WAVE_SAMPLE_FRAME, load(c, words.WAVE + words.FRAME))
    else:
        store(c, words.WAVE_SAMPLE_FRAME, 0)
        store(c, words.WAVE + words.SUPPRESSED, 1)
    store(c, words.WAVE + words.FRAME, 0)
    store(c, words.WAVE_RESTART, restarts)
    store(c, words.WAVE_ACCESS, 0)
    if model.COLOR:
        return
    store(c, words.WAVE + words.SUPPRESSED, 0)


@wp.func
def first_count(control: int, alignment: int) -> int:
    """T-cycles until a Game Boy Color's noise divider first counts after a trigger."""
    code = control & 7
    count = 4 * code + 6
    if (alignment & 1) != 0:
        count = count + wp.where(code == 0, 1, -1)
        if code != 0 and (alignment & 2) != 0:
            count = count - 2
    elif code != 0:
        count = count - wp.where((alignment & 2) != 0, 2, wp.where(code > 1, 4, 0))
    return 2 * count


@wp.func
def trigger_noise(c: wp.ref[Cpu], is_active: int):
    """Channel 4."""
    begin(c, words.NOISE, words.NOISE_BIT)
    store(c, words.NOISE_REGISTER, 0x7FFF)
    store(c, words.NOISE_STEPS, 0)
    if model.COLOR:
        control = load(c, words.NOISE_CONTROL)
        if is_active == 0:
            store(c, words.NOISE_COUNTER, 0)
            store(c, words.NOISE_RUNNING, 1)
            store(c, words.NOISE_COUNTDOWN, first_count(control, load(c, words.NOISE_ALIGNMENT)))
        else:
            period = channels.divider_period(control)
            store(c, words.NOISE_COUNTDOWN, load(c, words.NOISE_COUNTDOWN) + period + 2)
