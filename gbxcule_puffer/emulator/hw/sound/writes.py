"""Writes to the sound registers, after unit.advance. Pan Docs, "Audio details", for the quirks of triggers, lengths and
envelopes; as in PyBoy."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import batches, model
from gbxcule_puffer.emulator.hw.sound import channels, lfsr, sweep, triggers, words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu, Machine

REGISTERS = wp.constant(22)  # NR10 to NR51, which switching off clears


@wp.func
def wave_address(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int) -> int:
    """The address that an access to wave RAM meets, 0 if none. While channel 3 plays, that is the byte that it reads;
    on a DMG only at most a T-cycle after it has read it, and after PyBoy last brought the unit up to date: not at the
    start of an instruction with which a batch of PyBoy's begins."""
    if load(c, words.WAVE) == 0:
        return address
    found = hw.WAVE_RAM + (load(c, words.WAVE + words.FRAME) >> 1)
    if model.COLOR:
        return found
    if load(c, words.WAVE_ACCESS) == 0:
        return 0
    if t == c.now:
        if batches.has_just_ended(m, c):
            return 0
    return found


@wp.func
def glitch(c: wp.ref[Cpu], channel: int, value: int):
    """A write to NRx2 while the channel plays changes its volume, on a Game Boy Color."""
    if load(c, channel) == 0 or (value & 0xF8) == 0:
        return
    before = load(c, channel + words.ENVELOPE)
    volume = load(c, channel + words.VOLUME)
    ticks = ((value & 7) != 0 and (before & 7) == 0) or ((value & 15) == 8 and (before & 15) == 8)
    if ((value ^ before) & 8) != 0:
        if (value & 8) != 0:
            volume = wp.where((before & 7) == 0, volume ^ 15, 14 - volume)
            ticks = False
        else:
            volume = 16 - volume
    if ticks:
        volume = (volume & 15) + wp.where((value & 8) != 0, 1, -1)
    store(c, channel + words.VOLUME, volume & 15)
    if (value & 7) == 0:
        store(c, channel + words.ENVELOPE_TIMER, 0)
    elif (before & 7) == 0:
        store(c, channel + words.ENVELOPE_TIMER, (value & 7) | channels.EXTRA_TICK)


@wp.func
def write_envelope(c: wp.ref[Cpu], channel: int, value: int):
    """NRx2 of channel 1, 2 or 4."""
    if model.COLOR:
        glitch(c, channel, value)
    store(c, channel + words.ENVELOPE, value)
    if (value & 0xF8) == 0:
        store(c, channel, 0)


@wp.func
def write_duty(c: wp.ref[Cpu], channel: int, value: int):
    """Bits 6 and 7 of NRx1. While a Game Boy Color's channel plays, they count from its next sample on."""
    if model.COLOR:
        store(c, channel + words.DUTY_UPDATE, wp.where(load(c, channel) != 0, 1, 0))
        if load(c, channel) != 0:
            store(c, channel + words.PENDING_DUTY, value >> 6)
        else:
            store(c, channel + words.DUTY, value >> 6)
    elif load(c, words.ON) != 0:
        store(c, channel + words.DUTY, value >> 6)


@wp.func
def write_sweep(c: wp.ref[Cpu], value: int):
    """NR10; to add again after a subtraction stops the channel."""
    before = load(c, words.SWEEP_CONTROL)
    store(c, words.SWEEP_CONTROL, value & 0x7F)
    if (before & ~value & 8) != 0 and load(c, words.SWEEP_NEGATED) != 0:
        store(c, words.SWEEP, 0)


@wp.func
def delay_timer(c: wp.ref[Cpu], channel: int, t_cycles: int):
    """Delay the next sample."""
    store(c, channel + words.PERIOD_TIMER, load(c, channel + words.PERIOD_TIMER) + t_cycles)


@wp.func
def delay_sweep(c: wp.ref[Cpu], was_active: int, was_check: int):
    """A Game Boy Color's delay from a trigger of channel 1 to its first sample."""
    if was_active != 0:
        delay_timer(c, words.SWEEP, wp.where(load(c, words.SWEEP_ON) != 0 and was_check == 0, 6, 2))
    else:
        store(c, words.SWEEP + words.SUPPRESSED, 1)
        delay_timer(c, words.SWEEP, 8)


@wp.func
def align_sweep(c: wp.ref[Cpu]):
    """Its sample begins at a multiple of 4 T-cycles before the frame sequencer's next edge."""
    phase = (load(c, words.SWEEP + words.PERIOD_TIMER) - load(c, words.SEQUENCER)) & 3
    delay_timer(c, words.SWEEP, -phase & 3)


@wp.func
def delay_tone(c: wp.ref[Cpu], was_active: int):
    """A Game Boy Color's delay from a trigger of channel 2 to its first sample."""
    if was_active != 0:
        delay_timer(c, words.TONE, 2)
    else:
        store(c, words.TONE + words.SUPPRESSED, 1)
        delay_timer(c, words.TONE, 6 + 3 * words.speed(c))
        if words.speed(c) != 0 and load(c, words.TONE + words.PERIOD) == 4:
            delay_timer(c, words.TONE, (-load(c, words.SEQUENCER) & 3) - 2)


@wp.func
def trigger_tone(c: wp.ref[Cpu], channel: int):
    """NR14 or NR24 with bit 7."""
    was_active = load(c, channel)
    if channel == words.SWEEP:
        was_check = load(c, words.SWEEP_CHECK)
        triggers.trigger_sweep(c, was_active)
        if model.COLOR:
            delay_sweep(c, was_active, was_check)
    else:
        triggers.begin(c, words.TONE, words.TONE_BIT)
        if model.COLOR:
            delay_tone(c, was_active)


@wp.func
def write_tone(c: wp.ref[Cpu], channel: int, number: int, value: int):
    """NRx0 to NRx4 of channel 1 or 2."""
    sound_period = load(c, channel + words.SOUND_PERIOD)
    if number == 0:
        if channel == words.SWEEP:
            write_sweep(c, value)
    elif number == 1:
        write_duty(c, channel, value)
        store(c, channel + words.LENGTH, 64 - (value & 63))
    elif number == 2:
        write_envelope(c, channel, value)
    elif number == 3:
        sweep.set_period(c, channel, (sound_period & 0x700) | value)
    else:
        store(c, channel + words.LENGTH_ENABLE, (value >> 6) & 1)
        sweep.set_period(c, channel, ((value & 7) << 8) | (sound_period & 0xFF))
        if (value & 0x80) != 0:
            trigger_tone(c, channel)


@wp.func
def set_wave_period(c: wp.ref[Cpu], sound_period: int):
    """NR33 and NR34."""
    store(c, words.WAVE + words.SOUND_PERIOD, sound_period)
    store(c, words.WAVE + words.PERIOD, 2 * (0x800 - sound_period))


@wp.func
def write_wave(c: wp.ref[Cpu], number: int, value: int):
    """NR30 to NR34."""
    sound_period = load(c, words.WAVE + words.SOUND_PERIOD)
    if number == 0:
        store(c, words.WAVE_DAC, value >> 7)
        if value < 0x80:
            store(c, words.WAVE, 0)
            store(c, words.WAVE_RESTART, 0)
    elif number == 1:
        store(c, words.WAVE + words.LENGTH, 256 - value)
    elif number == 2:
        level = (value >> 5) & 3
        store(c, words.WAVE_LEVEL, level)
        store(c, words.WAVE_SHIFT, wp.where(level == 0, 4, level - 1))
    elif number == 3:
        set_wave_period(c, (sound_period & 0x700) | value)
    else:
        store(c, words.WAVE + words.LENGTH_ENABLE, (value >> 6) & 1)
        set_wave_period(c, ((value & 7) << 8) | (sound_period & 0xFF))
        if (value & 0x80) != 0:
            triggers.trigger_wave(c, load(c, words.WAVE))


@wp.func
def change_divider(c: wp.ref[Cpu], before: int, value: int):
    """NR43 of a Game Boy Color: the divider starts again, and the bit that is now selected may rise."""
    counter = load(c, words.NOISE_COUNTER)
    if load(c, words.NOISE_RUNNING) != 0 and ((before ^ value) & 7) != 0:
        left = channels.divider_period(value)
        if (value & 0xF7) == 0x12 and load(c, words.NOISE_ALIGNMENT) == 0:
            if (before & 7) == 0:
                left = left + 2
            elif (before & 7) == 1:
                left = load(c, words.NOISE_COUNTDOWN)
        store(c, words.NOISE_COUNTDOWN, left)
    rises = ((counter >> (before >> 4)) & 1) == 0 and ((counter >> (value >> 4)) & 1) != 0
    if load(c, words.NOISE) != 0 and rises:
        channels.step_noise(c, 1)


@wp.func
def write_noise(c: wp.ref[Cpu], number: int, value: int):
    """NR40 to NR44."""
    if number == 1:
        store(c, words.NOISE + words.LENGTH, 64 - (value & 63))
    elif number == 2:
        write_envelope(c, words.NOISE, value)
    elif number == 3:
        before = load(c, words.NOISE_CONTROL)
        if ((before ^ value) & lfsr.SHORT) != 0:
            lfsr.make_steps(c)
        store(c, words.NOISE_CONTROL, value)
        store(c, words.NOISE + words.PERIOD, channels.noise_period(value))
        if model.COLOR:
            change_divider(c, before, value)
    elif number == 4:
        store(c, words.NOISE + words.LENGTH_ENABLE, (value >> 6) & 1)
        if (value & 0x80) != 0:
            triggers.trigger_noise(c, load(c, words.NOISE))


@wp.func(inline=False)
def write_channel(c: wp.ref[Cpu], channel: int, number: int, value: int):
    """NRx0 to NRx4. In the second half of the length counters' period, NRx4 may count one down."""
    was_enabled = load(c, channel + words.LENGTH_ENABLE)
    length = load(c, channel + words.LENGTH)
    is_second_half = number == 4 and (load(c, words.DIV) & 1) != 0
    counts_first = is_second_half and (value & 0xC0) == 0xC0 and was_enabled == 0 and length > 0
    if counts_first:
        store(c, channel + words.LENGTH_ENABLE, 1)
        channels.tick_length(c, channel)
        store(c, channel + words.LENGTH_ENABLE, 0)
    if channel == words.WAVE:
        write_wave(c, number, value)
    elif channel == words.NOISE:
        write_noise(c, number, value)
    else:
        write_tone(c, channel, number, value)
    counts = (value & 0x40) != 0 and (was_enabled == 0 or length == 0)
    if counts_first:
        counts = length == 1
    if is_second_half and counts:
        channels.tick_length(c, channel)
    if model.COLOR:
        if channel == words.SWEEP and number == 4 and (value & 0x80) != 0:
            align_sweep(c)


@wp.func
def write_register(c: wp.ref[Cpu], offset: int, value: int):
    """NR10 to NR51, by their distance from NR10. Without power nothing changes but, on a DMG, the length counters."""
    is_open = load(c, words.ON) != 0
    if offset < 20:
        number = offset % 5
        if model.COLOR:
            is_open = is_open
        elif number == 1:
            is_open = True
        if is_open:
            write_channel(c, triggers.channel_at(offset), number, value)
    elif is_open:
        if offset == hw.NR50 - hw.NR10:
            store(c, words.NR50, value)
        elif offset == hw.NR51 - hw.NR10:
            store(c, words.PANNING, value)


@wp.func
def switch_off(c: wp.ref[Cpu]):
    """NR52 without bit 7: clear all registers."""
    sweep_length = load(c, words.SWEEP + words.LENGTH)
    tone_length = load(c, words.TONE + words.LENGTH)
    wave_length = load(c, words.WAVE + words.LENGTH)
    noise_length = load(c, words.NOISE + words.LENGTH)
    for offset in range(REGISTERS):
        write_register(c, offset, 0)
    if model.COLOR:
        for i in range(2):
            channel = wp.where(i == 0, words.SWEEP, words.TONE)
            store(c, channel + words.FRAME, 0)
            store(c, channel + words.DUTY, 0)
            store(c, channel + words.DUTY_UPDATE, 0)
            store(c, channel + words.SUPPRESSED, 0)
        store(c, words.SWEEP_HOLD, 0)
    else:
        store(c, words.SWEEP + words.LENGTH, sweep_length)
        store(c, words.TONE + words.LENGTH, tone_length)
        store(c, words.WAVE + words.LENGTH, wave_length)
        store(c, words.NOISE + words.LENGTH, noise_length)
    store(c, words.SWEEP_CHECK, 0)
    store(c, words.ON, 0)
    store(c, words.DIV_COUNTER, 0)
    store(c, words.NOISE_COUNTER, 0)
    store(c, words.NOISE_COUNTDOWN, 0)
    store(c, words.NOISE_ALIGNMENT, 0)
    store(c, words.NOISE_RUNNING, 0)
    store(c, words.SINCE_OFF, 0)


@wp.func
def switch_on(c: wp.ref[Cpu], divider: int):
    """NR52 with bit 7, after it was off; divider: the timer's, as PyBoy last saw it. While the bit of DIV whose fall is
    an edge is set, shortly after DIV or NR52 was written, the frame sequencer passes over its next edge."""
    if model.COLOR:
        is_near = load(c, words.SINCE_DIV) < words.EDGE_T_CYCLES
        store(c, words.DIV_WRITTEN, wp.where(is_near, 1, 0))
        is_near = is_near or load(c, words.SINCE_OFF) < words.EDGE_T_CYCLES
    else:
        is_near = load(c, words.DIV_WRITTEN) != 0
    is_high = (divider & (0x1000 << words.speed(c))) != 0
    store(c, words.DIV_COUNTER, wp.where(is_near and is_high, 2, 0))
    store(c, words.ON, 1)
    store(c, words.DIV, 0)
    store(c, words.SEQUENCER, words.EDGE_T_CYCLES)


@wp.func
def write_control(c: wp.ref[Cpu], value: int, t: int):
    """NR52."""
    if value < 0x80:
        switch_off(c)
        return
    divider = (wp.max(load(c, words.BATCH), load(c, words.TIMER)) - c.div_zero) & 0xFFFF
    if load(c, words.ON) == 0:
        switch_on(c, divider)
    if load(c, words.DIV_COUNTER) != 0:
        period = words.EDGE_T_CYCLES << words.speed(c)
        store(c, words.DIV, 1)
        store(c, words.SEQUENCER, (period - (divider & (period - 1))) >> words.speed(c))
