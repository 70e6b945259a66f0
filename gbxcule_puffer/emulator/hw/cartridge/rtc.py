"""MBC3's real-time clock: counts emulated T-cycles. Pan Docs, "MBC3", The Clock Counter Registers.

It is deterministic. PyBoy adds host time if two reads are in the same cycle; here no time passes then.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import INDEX, Cpu, Machine

LAST = wp.constant(INDEX["rtc_last"])
T_CYCLES = wp.constant(INDEX["rtc_t_cycles"])
SECONDS = wp.constant(INDEX["rtc_seconds"])
MINUTES = wp.constant(INDEX["rtc_minutes"])
HOURS = wp.constant(INDEX["rtc_hours"])
DAY_LOW = wp.constant(INDEX["rtc_day_low"])
DAY_HIGH = wp.constant(INDEX["rtc_day_high"])
HALT = wp.constant(INDEX["rtc_halt"])
DAY_CARRY = wp.constant(INDEX["rtc_day_carry"])
LATCHED = wp.constant(INDEX["rtc_latched"])
LATCH_SECONDS = wp.constant(INDEX["rtc_latch_seconds"])


@wp.func
def next_value(value: int, last: int, mask: int) -> int:
    """A counter's next value: 0 after `last`, and after the register's highest value."""
    result = value + 1
    if value == last or value == mask:
        result = 0
    return result


@wp.func
def add_second(m: wp.ref[Machine], env: int):
    """Count one second; a counter that was set beyond its range does not carry."""
    seconds = m.state[SECONDS, env]
    minutes = m.state[MINUTES, env]
    hours = m.state[HOURS, env]
    m.state[SECONDS, env] = next_value(seconds, 59, 0x3F)
    if seconds == 59:
        m.state[MINUTES, env] = next_value(minutes, 59, 0x3F)
        if minutes == 59:
            m.state[HOURS, env] = next_value(hours, 23, 0x1F)
            if hours == 23:
                day = ((m.state[DAY_HIGH, env] << 8) | m.state[DAY_LOW, env]) + 1
                if day > 0x1FF:
                    m.state[DAY_CARRY, env] = 1
                m.state[DAY_LOW, env] = day & 0xFF
                m.state[DAY_HIGH, env] = (day >> 8) & 1


@wp.func
def advance(m: wp.ref[Machine], c: wp.ref[Cpu], t: int):
    """Bring the clock up to time `t`."""
    elapsed = t - m.state[LAST, c.env]
    m.state[LAST, c.env] = t
    if m.state[HALT, c.env] == 0:
        total = m.state[T_CYCLES, c.env] + elapsed
        while total >= hw.CLOCK_HZ:
            total = total - hw.CLOCK_HZ
            add_second(m, c.env)
        m.state[T_CYCLES, c.env] = total


@wp.func
def latch(m: wp.ref[Machine], c: wp.ref[Cpu], value: int):
    """Writing 0 and then 1 copies the counters to the latch that reads return."""
    if value == 0:
        m.state[LATCHED, c.env] = 0
    elif value == 1:
        if m.state[LATCHED, c.env] == 0:
            for index in range(5):
                m.state[LATCH_SECONDS + index, c.env] = m.state[SECONDS + index, c.env]
        m.state[LATCHED, c.env] = 1


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
    """The selected latched register."""
    value = m.state[LATCH_SECONDS + c.ram_bank - 8, c.env]
    if c.ram_bank == 0x0C:
        value = value | (m.state[HALT, c.env] << 6) | (m.state[DAY_CARRY, c.env] << 7)
    return value


@wp.func
def write(m: wp.ref[Machine], c: wp.ref[Cpu], value: int):
    """Set the selected counter; writing the seconds restarts the second."""
    if c.ram_bank == 0x08:
        m.state[SECONDS, c.env] = value & 0x3F
        m.state[T_CYCLES, c.env] = 0
    elif c.ram_bank == 0x09:
        m.state[MINUTES, c.env] = value & 0x3F
    elif c.ram_bank == 0x0A:
        m.state[HOURS, c.env] = value & 0x1F
    elif c.ram_bank == 0x0B:
        m.state[DAY_LOW, c.env] = value
    else:
        m.state[DAY_HIGH, c.env] = value & 1
        m.state[HALT, c.env] = (value >> 6) & 1
        m.state[DAY_CARRY, c.env] = (value >> 7) & 1
