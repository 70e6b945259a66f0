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
        row = c.buttons >> 4
    c.p1 = 0xCF & ~row


@wp.func
def hold(c: wp.ref[Cpu], buttons: int):
    """Hold exactly these buttons; a new press requests the joypad interrupt whatever row is selected."""
    if (buttons & ~c.buttons) != 0:
        c.interrupt_flag = c.interrupt_flag | hw.INT_JOYPAD
    c.buttons = buttons
