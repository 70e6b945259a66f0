"""Ends of PyBoy's batches that ours pass over: a DMG's channel 3 notices them (sound/writes.py).

PyBoy ends a batch with the instruction during which the LCD's next change falls due, and with one that writes a
register. Our batch passes over such ends, if nothing else can notice them. They follow from the LCD's state and from
when the last two instructions began (Cpu.previous, Cpu.before).
"""

import warp as wp

from gbxcule_puffer.emulator.hw.lcd import clock, events, ppu
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.hw.sound.words import load
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func(inline=False)
def has_just_ended(m: wp.ref[Machine], c: wp.ref[Cpu]) -> bool:
    """True if a batch of PyBoy's ended with the last instruction, on a DMG."""
    if load(c, words.BATCH) == c.now or load(c, words.BAIL) == c.previous + 1:
        return True
    if not events.has_known_events(c):  # all batches end where PyBoy's end
        return False
    ppu.settle(m, c)
    phase = clock.phase_of(c)
    begin = c.lcd_target - clock.length_of(phase, c.mode3_extra)
    # Where both LY's increase and mode 2 fall due during one instruction, PyBoy makes the second after the next.
    is_second = phase == clock.MODE2 and c.ly != 0 and begin <= c.previous and c.before < begin - clock.EARLY_DOTS
    is_second = is_second and load(c, words.EARLY_LY) != c.before + 1
    return begin > c.previous or is_second
