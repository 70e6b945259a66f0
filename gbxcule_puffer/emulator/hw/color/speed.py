"""STOP on a Game Boy Color: switches the CPU's speed. Pan Docs, "CGB Registers", KEY1; in PyBoy it takes no time."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import bus, model
from gbxcule_puffer.emulator.hw.lcd import ppu
from gbxcule_puffer.emulator.hw.sound import unit
from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def switch_speed(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Switch to the other speed; recompute the LCD's times, which are in T-cycles of the CPU."""
    ppu.settle(m, c)
    requested = c.interrupt_flag
    ppu.advance(m, c, c.now)
    c.interrupt_flag = requested  # PyBoy loses the interrupts that the LCD requests here
    if model.SOUND:
        unit.advance(c, c.now)
    clock = (c.now - c.lcd_zero) >> c.double_speed
    left = (c.lcd_target - c.now) >> c.double_speed
    c.double_speed = 1 - c.double_speed
    c.lcd_zero = c.now - (clock << c.double_speed)
    c.lcd_target = c.now + (left << c.double_speed)
    c.key1 = c.key1 ^ 0x81


@wp.func(inline=False)
def stop(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """STOP: switches the speed if KEY1 asks for it, and clears DIV."""
    if (c.key1 & 1) != 0:
        switch_speed(m, c)
    bus.write(m, c, hw.DIV, 0, c.now, 0)
