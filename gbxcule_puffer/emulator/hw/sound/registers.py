"""FF10 to FF3F, PCM12 and PCM34: with SOUND as in PyBoy with sound_emulated=True, else 00 as in a muted PyBoy.

A read or write first brings the unit up to date (unit.py). Pan Docs, "Audio Registers".
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.hw.sound import hardware, levels, triggers, unit, words, writes
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def tone_register(c: wp.ref[Cpu], channel: int, number: int) -> int:
    """NRx0 to NRx4 of channel 1 or 2."""
    value = int(0xFF)
    if number == 0 and channel == words.SWEEP:
        value = load(c, words.SWEEP_CONTROL) | 0x80
    elif number == 1:
        duty = load(c, channel + words.DUTY)
        if load(c, channel + words.DUTY_UPDATE) != 0:
            duty = load(c, channel + words.PENDING_DUTY)
        value = (duty << 6) | 0x3F
    elif number == 2:
        value = load(c, channel + words.ENVELOPE)
    elif number == 4:
        value = (load(c, channel + words.LENGTH_ENABLE) << 6) | 0xBF
    return value


@wp.func
def other_register(c: wp.ref[Cpu], channel: int, number: int) -> int:
    """NRx0 to NRx4 of channel 3 or 4."""
    value = int(0xFF)
    if number == 4:
        value = (load(c, channel + words.LENGTH_ENABLE) << 6) | 0xBF
    elif channel == words.WAVE:
        if number == 0:
            value = (load(c, words.WAVE_DAC) << 7) | 0x7F
        elif number == 2:
            value = (load(c, words.WAVE_LEVEL) << 5) | 0x9F
    elif number == 2:
        value = load(c, channel + words.ENVELOPE)
    elif number == 3:
        value = load(c, words.NOISE_CONTROL)
    return value


@wp.func
def read_control(c: wp.ref[Cpu]) -> int:
    """NR52."""
    playing = load(c, words.SWEEP) | load(c, words.TONE) | load(c, words.WAVE) | load(c, words.NOISE)
    return 0x70 | (load(c, words.ON) << 7) | playing


@wp.func(inline=False)
def read_unit(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int) -> int:
    """FF10-FF3F."""
    unit.advance(c, t)
    value = int(0xFF)
    offset = address - hw.NR10
    if address < hw.NR50:
        channel = triggers.channel_at(offset)
        if offset < 10:
            value = tone_register(c, channel, offset % 5)
        else:
            value = other_register(c, channel, offset % 5)
    elif address == hw.NR50:
        value = load(c, words.NR50)
    elif address == hw.NR51:
        value = load(c, words.PANNING)
    elif address == hw.NR52:
        value = read_control(c)
    elif address >= hw.WAVE_RAM:
        found = writes.wave_address(m, c, address, t)
        if found != 0:
            value = row.load(c, found)
    return value


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int) -> int:
    """FF10-FF3F at time `t`."""
    if model.SAMPLES:
        if load(c, words.MUTED) != 0:
            return 0
    if model.SOUND:
        return read_unit(m, c, address, t)
    return hardware.read(c, address)


@wp.func(inline=False)
def write_unit(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """FF10-FF3F."""
    unit.advance(c, t)
    if address >= hw.WAVE_RAM:
        found = writes.wave_address(m, c, address, t)
        if found != 0:
            row.store(c, found, value)
    elif address == hw.NR52:
        writes.write_control(c, value, t)
    else:
        writes.write_register(c, address - hw.NR10, value)
        if address == hw.NR14:
            store(c, words.DIV_WRITTEN, 0)
    unit.update_exact(c)


@wp.func
def write(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int):
    """FF10-FF3F at time `t`."""
    if model.SOUND:
        write_unit(m, c, address, value, t)
    else:
        hardware.write(c, address, value)


@wp.func(inline=False)
def read_pcm_unit(c: wp.ref[Cpu], address: int, t: int) -> int:
    """PCM12 or PCM34."""
    unit.advance(c, t)
    if address == hw.PCM12:
        return levels.tone(c, words.SWEEP) | (levels.tone(c, words.TONE) << 4)
    return levels.wave(c) | (levels.noise(c) << 4)


@wp.func
def read_pcm(c: wp.ref[Cpu], address: int, t: int) -> int:
    """PCM12 or PCM34 at time `t`."""
    if model.SAMPLES:
        if load(c, words.MUTED) != 0:
            return 0
    if model.SOUND:
        return read_pcm_unit(c, address, t)
    return 0
