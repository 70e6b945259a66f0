"""Snippets about the sound unit: registers, triggers, power, wave RAM, sweep, noise, and time for them to pass."""

from __future__ import annotations

from tests.fuzz.code import Code
from tests.fuzz.parts import DIV, HL_OPCODES, log

NR10, NR30, NR41, NR43, NR44, NR50, NR51, NR52, WAVE_RAM = 0x10, 0x1A, 0x20, 0x22, 0x23, 0x24, 0x25, 0x26, 0x30
PCM12, PCM34 = 0x76, 0x77
CHANNELS = (0x10, 0x15, 0x1A, 0x1F)  # NRx0
VALUES = {
    NR10: (0x00, 0x08, 0x10, 0x11, 0x19, 0x17, 0x22, 0x70, 0x78, 0x79, 0x1F, 0x01),
    NR43: (0x00, 0x08, 0x01, 0x11, 0x12, 0x02, 0x10, 0x1A, 0x27, 0x33, 0xD0, 0xF0, 0xE8),
    NR52: (0x00, 0x80, 0x80, 0x80, 0x8F, 0x7F),
}  # fmt: skip
LENGTHS = (0xFF, 0xFE, 0xFD, 0x3F, 0x7F, 0xBE, 0x00, 0xF0)
ENVELOPES = (0xF0, 0xF3, 0x08, 0x09, 0x0F, 0xF8, 0xF1, 0x81, 0x10, 0x00, 0x07, 0xA7, 0x8A)
PERIODS = (0x00, 0x01, 0x7F, 0xFE, 0xFF, 0xFF, 0xF8, 0x80)
TRIGGERS = (0x80, 0x87, 0xC0, 0xC7, 0xC7, 0x84, 0x40, 0x47, 0x00, 0x07)


def _value(code: Code, register: int) -> int:
    """A telling value for a register, or any."""
    random, number = code.random, (register - NR10) % 5
    if random.chance(0.1) or (register >= NR50 and register not in VALUES):
        return random.byte()
    if register in VALUES:
        return random.choice(VALUES[register])
    if register == NR30:
        return random.choice((0x80, 0x80, 0x80, 0x00))
    if number == 2 and register != 0x1C:
        return random.choice(ENVELOPES)
    return random.choice((LENGTHS, LENGTHS, LENGTHS, PERIODS, TRIGGERS)[number])


def _read(code: Code) -> None:
    """Read something and keep it."""
    random = code.random
    register = random.choice((NR52, NR52, NR52, PCM12, PCM34, random.integer(NR10, 0x3F), random.integer(NR10, 0x3F)))
    if random.chance(0.7):
        code.emit(0xF0, register)
    else:
        code.word(0x21, 0xFF00 | register)
        code.emit(random.choice((0x7E, 0x2A, 0x3A)))
    log(code)


def registers(code: Code) -> None:
    """Registers written and read."""
    random = code.random
    for _ in range(random.integer(1, 8)):
        register = random.integer(NR10, NR52)
        if random.chance(0.7):
            code.store(register, _value(code, register))
        else:
            _read(code)
        code.nops(3)


def sound(code: Code) -> None:
    """A sound, begun once or several times, and its end."""
    random = code.random
    base = random.choice(CHANNELS)
    if random.chance(0.2):
        code.store(NR51, random.byte())
    for number in range(4):
        if random.chance(0.85):
            code.store(base + number, _value(code, base + number))
    for _ in range(random.integer(1, 3)):
        code.store(base + 4, random.choice((0x80, 0xC0, 0xC7, 0x87, 0xC7)))
        if random.chance(0.5):
            time(code)
        _read(code)
        if random.chance(0.3):
            code.store(base + random.integer(0, 3), random.byte())


def time(code: Code) -> None:
    """Up to some periods of the frame sequencer."""
    random = code.random
    way = random.integer(0, 4)
    if way == 0:
        code.nops(8)
    elif way <= 2:
        code.delay(random.choice((3, 40, 255)))
    elif way == 3:
        code.word(0x01, random.choice((50, 290, 293, 400, 900)))
        code.emit(0x0B, 0x78, 0xB1, 0x20, 0xFB)  # dec bc / ld a,b / or c / jr nz
    else:
        code.emit(0xFB, 0x76, 0x00)
    code.nops(3)


def power(code: Code) -> None:
    """The unit off and on, around writes to DIV."""
    random = code.random
    for _ in range(random.integer(2, 6)):
        way = random.integer(0, 6)
        if way <= 1:
            code.store(NR52, 0x00)
        elif way <= 3:
            code.store(NR52, random.choice((0x80, 0x80, 0xFF)))
        elif way == 4:
            code.store(DIV, random.byte())
        elif way == 5:
            code.store(random.choice(CHANNELS) + random.choice((1, 1, 2, 4)), random.byte())
        else:
            code.emit(0xF0, random.choice((DIV, 0x05, NR52)))
            log(code)
        time(code)
    if random.chance(0.8):
        code.store(NR52, 0x80)
        code.store(NR51, random.byte())


def wave(code: Code) -> None:
    """Channel 3 with a short period, and accesses to wave RAM while it plays."""
    random = code.random
    code.store(NR30, 0x80)
    code.store(0x1C, random.choice((0x20, 0x40, 0x60, 0x00)))
    code.store(0x1D, random.choice((0xFF, 0xFE, 0xFD, 0xF8, 0xE1, 0x00, random.byte())))
    code.store(0x1E, random.choice((0x87, 0x87, 0x87, 0x86, 0xC7)))
    code.word(0x21, 0xFF30 | random.integer(0, 15))
    for _ in range(random.integer(2, 12)):
        way = random.integer(0, 6)
        if way <= 2:
            code.emit(random.choice(HL_OPCODES))
            code.word(0x21, 0xFF30 | random.integer(0, 15))
        elif way == 3:
            code.emit(0xF0, WAVE_RAM + random.integer(0, 15))
            log(code)
        elif way == 4:
            code.emit(0x3E, random.byte(), 0xE0, WAVE_RAM + random.integer(0, 15))
        elif way == 5:
            code.emit(0x3E, 0x87, 0xE0, 0x1E)
        else:
            code.emit(random.choice((0x7E, 0x77, 0x1A)))
            log(code)
        code.nops(5)
    if random.chance(0.4):
        code.store(NR30, 0x00)
        for offset in range(random.integer(1, 6)):
            code.emit(0x3E, random.byte(), 0xE0, WAVE_RAM + offset)


def sweep(code: Code) -> None:
    """Channel 1 with a sweep that overflows, subtracts or changes."""
    random = code.random
    code.store(0x12, random.choice((0xF0, 0xF8, 0x81)))
    code.store(NR10, _value(code, NR10))
    code.store(0x13, random.choice((0x00, 0xFF, 0x80, 0x55, 0xAA, random.byte())))
    code.store(0x14, random.choice((0x80, 0x84, 0x85, 0x86, 0x87, 0xC3)))
    for _ in range(random.integer(1, 4)):
        time(code)
        if random.chance(0.5):
            code.store(NR10, _value(code, NR10))
        if random.chance(0.2):
            code.store(0x14, random.choice((0x84, 0x87)))
        _read(code)


def noise(code: Code) -> None:
    """Channel 4 with other clocks and widths while it plays."""
    random = code.random
    code.store(0x21, random.choice((0xF0, 0xF8, 0xA1, 0x08)))
    code.store(NR43, _value(code, NR43))
    code.store(NR44, random.choice((0x80, 0xC0)))
    for _ in range(random.integer(1, 5)):
        if random.chance(0.5):
            time(code)
        code.store(NR43, _value(code, NR43))
        if random.chance(0.3):
            code.store(NR44, 0x80)
        code.emit(0xF0, random.choice((PCM34, NR52, NR43)))
        log(code)


def poll(code: Code) -> None:
    """The loop that waits for the end of a sound, whose length ends it."""
    random = code.random
    code.store(NR52, 0x80)
    code.store(0x17, 0xF0)
    code.store(0x16, random.choice((0x3F, 0x3E, 0x38)))
    code.store(0x19, 0xC0)
    code.emit(0xF0, NR52, 0xE6, 0x02, 0x20, 0xFA)  # ldh a,[NR52] / and 2 / jr nz
    log(code)


SNIPPETS = {registers: 4, sound: 6, power: 3, wave: 4, sweep: 4, noise: 3, time: 2, poll: 1}
