"""P1: worked out when it is written; a read gives the stored value (PyBoy: a later button is not seen until then)."""

import warp as wp

from gbxcule_puffer import hardware as hw
from gbxcule_puffer.state import Cpu


@wp.func
def write(c: wp.ref[Cpu], value: int):
    """Select a row: bit 4 low the directions, bit 5 low the other buttons. Both or neither read CF."""
    row = 0
    if (value & 0x30) == 0x20:
        row = c.buttons & 0x0F
    elif (value & 0x30) == 0x10:
        row = (c.buttons >> 4) & 0x0F
    c.p1 = 0xCF & ~row


@wp.func
def press(c: wp.ref[Cpu], buttons: int):
    """Press buttons; one that was not held requests the joypad interrupt whatever row is selected."""
    if (buttons & ~c.buttons) != 0:
        c.interrupt_flag = c.interrupt_flag | hw.INT_JOYPAD
    c.buttons = c.buttons | buttons | (buttons << 8)


@wp.func
def release(c: wp.ref[Cpu]):
    """Release the buttons that this step pressed; one that a loaded state holds otherwise stays held, as in PyBoy."""
    c.buttons = c.buttons & ~(c.buttons >> 8) & 0xFF
