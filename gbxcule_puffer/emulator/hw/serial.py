"""Serial port without a partner: SB reads FF, and a transfer on the internal clock ends after 1,024 T-cycles. On
hardware it takes 8 periods of the divider's bit 8, and SB reads the byte that was written."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model, row
from gbxcule_puffer.emulator.state import Cpu


@wp.func
def advance(c: wp.ref[Cpu], t: int):
    """End the transfer if it is over at time `t`."""
    if t >= c.serial_end:
        c.serial_control = c.serial_control & 0x7F
        c.serial_end = hw.NEVER
        c.interrupt_flag = c.interrupt_flag | hw.INT_SERIAL


@wp.func
def write_data(c: wp.ref[Cpu], value: int, t: int):
    """SB: nothing is sent; the byte is appended to the captured output (a ring in the memory row)."""
    advance(c, t)
    row.store(c, hw.ECHO + (c.serial_count & (hw.SERIAL_BUFFER_SIZE - 1)), value)
    c.serial_count = c.serial_count + 1
    if model.HARDWARE == 1:
        row.store(c, hw.SB, value)


@wp.func
def read_data(c: wp.ref[Cpu], t: int) -> int:
    """SB: FF; on hardware, a missing partner sends ones."""
    if model.HARDWARE == 1:
        advance(c, t)
        return row.load(c, hw.SB)
    return 0xFF


@wp.func
def read_control(c: wp.ref[Cpu], t: int) -> int:
    """SC."""
    advance(c, t)
    return c.serial_control


@wp.func
def write_control(c: wp.ref[Cpu], value: int, t: int):
    """SC: bit 7 with the internal clock (bit 0) starts a transfer; on the external clock it never ends."""
    advance(c, t)
    c.serial_control = value | 0x7E
    if model.COLOR:
        c.serial_control = value | wp.where(c.color_mode != 0, 0x7C, 0x7E)
    c.serial_end = hw.NEVER
    if (value & 0x81) == 0x81:
        c.serial_end = t + hw.SERIAL_TRANSFER_T_CYCLES
        if model.HARDWARE == 1:
            bit = (t - c.div_zero) & 0x1FF  # accesses are 4 T-cycles early (isa.py), ends of transfers are not
            c.serial_end = t + 4 - bit + 8 * 512
