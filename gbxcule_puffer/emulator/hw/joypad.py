"""P1. A write computes it; a read returns the stored value, so a later button is not seen until the next write (as in
PyBoy). On hardware, P1 follows the buttons, and only those of a selected row request the interrupt."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.state import Cpu


@wp.func
def select(c: wp.ref[Cpu], rows: int) -> int:
    """P1 of hardware: both rows can be selected at once, bits 5-4 read as written."""
    pressed = 0
    if (rows & 0x10) == 0:
        pressed = c.buttons & 0x0F
    if (rows & 0x20) == 0:
        pressed = pressed | ((c.buttons >> 4) & 0x0F)
    return (0xCF | (rows & 0x30)) & ~pressed


@wp.func
def write(c: wp.ref[Cpu], value: int):
    """Select a row: bit 4 low selects the directions, bit 5 low the other buttons. Both or neither read CF."""
    rows = value & 0x30
    pressed = wp.where(rows == 0x20, c.buttons, wp.where(rows == 0x10, c.buttons >> 4, 0))
    c.p1 = 0xCF & ~(pressed & 0x0F)
    if model.HARDWARE == 1:
        c.p1 = select(c, value)
    row.store(c, hw.P1, c.p1)  # for the data path


@wp.func
def press(c: wp.ref[Cpu], buttons: int, only: bool):
    """Press buttons; one that was not held requests the joypad interrupt whatever row is selected. `only`: release all
    others before, and leave these to the steps that follow."""
    c.buttons = wp.where(only, c.buttons & buttons, c.buttons)
    if model.HARDWARE == 1 and only:
        c.p1 = select(c, c.p1)
    if model.HARDWARE == 0 and (buttons & ~c.buttons) != 0:
        c.interrupt_flag = c.interrupt_flag | hw.INT_JOYPAD
    c.buttons = c.buttons | buttons | wp.where(only, 0, buttons << 8)
    if model.HARDWARE == 1:
        before = c.p1
        c.p1 = select(c, before)
        if (before & ~c.p1 & 0x0F) != 0:
            c.interrupt_flag = c.interrupt_flag | hw.INT_JOYPAD


@wp.func
def release(c: wp.ref[Cpu]):
    """Release the buttons that this step pressed; one that a loaded state holds otherwise stays held, as in PyBoy."""
    c.buttons = c.buttons & ~(c.buttons >> 8) & 0xFF
    if model.HARDWARE == 1:
        c.p1 = select(c, c.p1)
