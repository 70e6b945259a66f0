"""8- and 16-bit arithmetic with flags; templates call these functions by the names in isa.ALU and isa.ROTATES.

The flags (F) are in bits 7-4: Z N H C.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import Cpu


@wp.func
def zero_flag(value: int) -> int:
    """Z for an 8-bit result."""
    flag = 0
    if value == 0:
        flag = hw.FLAG_Z
    return flag


@wp.func
def alu_add(c: wp.ref[Cpu], value: int):
    """ADD. Flags: Z * N 0 H * C *"""
    total = c.a + value
    c.f = zero_flag(total & 0xFF) | (((c.a ^ value ^ total) & 0x10) << 1) | ((total & 0x100) >> 4)
    c.a = total & 0xFF


@wp.func
def alu_adc(c: wp.ref[Cpu], value: int):
    """ADC. Flags: Z * N 0 H * C *"""
    total = c.a + value + ((c.f >> 4) & 1)
    c.f = zero_flag(total & 0xFF) | (((c.a ^ value ^ total) & 0x10) << 1) | ((total & 0x100) >> 4)
    c.a = total & 0xFF


@wp.func
def alu_cp(c: wp.ref[Cpu], value: int):
    """CP. Flags: Z * N 1 H * C *"""
    total = c.a - value
    c.f = hw.FLAG_N | zero_flag(total & 0xFF) | (((c.a ^ value ^ total) & 0x10) << 1) | ((total & 0x100) >> 4)


@wp.func
def alu_sub(c: wp.ref[Cpu], value: int):
    """SUB. Flags: Z * N 1 H * C *"""
    alu_cp(c, value)
    c.a = (c.a - value) & 0xFF


@wp.func
def alu_sbc(c: wp.ref[Cpu], value: int):
    """SBC. Flags: Z * N 1 H * C *"""
    total = c.a - value - ((c.f >> 4) & 1)
    c.f = hw.FLAG_N | zero_flag(total & 0xFF) | (((c.a ^ value ^ total) & 0x10) << 1) | ((total & 0x100) >> 4)
    c.a = total & 0xFF


@wp.func
def alu_and(c: wp.ref[Cpu], value: int):
    """AND. Flags: Z * N 0 H 1 C 0"""
    c.a = c.a & value
    c.f = zero_flag(c.a) | hw.FLAG_H


@wp.func
def alu_xor(c: wp.ref[Cpu], value: int):
    """XOR. Flags: Z * N 0 H 0 C 0"""
    c.a = c.a ^ value
    c.f = zero_flag(c.a)


@wp.func
def alu_or(c: wp.ref[Cpu], value: int):
    """OR. Flags: Z * N 0 H 0 C 0"""
    c.a = c.a | value
    c.f = zero_flag(c.a)


@wp.func
def increment(c: wp.ref[Cpu], value: int) -> int:
    """INC. Flags: Z * N 0 H * C -"""
    result = (value + 1) & 0xFF
    c.f = (c.f & hw.FLAG_C) | zero_flag(result)
    if (result & 0x0F) == 0:
        c.f = c.f | hw.FLAG_H
    return result


@wp.func
def decrement(c: wp.ref[Cpu], value: int) -> int:
    """DEC. Flags: Z * N 1 H * C -"""
    result = (value - 1) & 0xFF
    c.f = (c.f & hw.FLAG_C) | hw.FLAG_N | zero_flag(result)
    if (result & 0x0F) == 0x0F:
        c.f = c.f | hw.FLAG_H
    return result


@wp.func
def shifted(c: wp.ref[Cpu], result: int, carry: int) -> int:
    """Result of a rotate or shift. Flags: Z * N 0 H 0 C *"""
    c.f = zero_flag(result & 0xFF) | (carry << 4)
    return result & 0xFF


@wp.func
def rotate_rlc(c: wp.ref[Cpu], value: int) -> int:
    """RLC: bit 7 to carry and bit 0."""
    return shifted(c, (value << 1) | (value >> 7), value >> 7)


@wp.func
def rotate_rrc(c: wp.ref[Cpu], value: int) -> int:
    """RRC: bit 0 to carry and bit 7."""
    return shifted(c, (value >> 1) | ((value & 1) << 7), value & 1)


@wp.func
def rotate_rl(c: wp.ref[Cpu], value: int) -> int:
    """RL: left through carry."""
    return shifted(c, (value << 1) | ((c.f >> 4) & 1), value >> 7)


@wp.func
def rotate_rr(c: wp.ref[Cpu], value: int) -> int:
    """RR: right through carry."""
    return shifted(c, (value >> 1) | ((c.f & hw.FLAG_C) << 3), value & 1)


@wp.func
def rotate_sla(c: wp.ref[Cpu], value: int) -> int:
    """SLA: 0 into bit 0."""
    return shifted(c, value << 1, value >> 7)


@wp.func
def rotate_sra(c: wp.ref[Cpu], value: int) -> int:
    """SRA: bit 7 stays."""
    return shifted(c, (value >> 1) | (value & 0x80), value & 1)


@wp.func
def rotate_swap(c: wp.ref[Cpu], value: int) -> int:
    """SWAP: exchange the nibbles; carry becomes 0."""
    return shifted(c, (value << 4) | (value >> 4), 0)


@wp.func
def rotate_srl(c: wp.ref[Cpu], value: int) -> int:
    """SRL: 0 into bit 7."""
    return shifted(c, value >> 1, value & 1)


@wp.func
def test_bit(c: wp.ref[Cpu], value: int, bit: int):
    """BIT. Flags: Z * N 0 H 1 C -"""
    c.f = (c.f & hw.FLAG_C) | hw.FLAG_H | zero_flag((value >> bit) & 1)


@wp.func
def decimal_adjust(c: wp.ref[Cpu]):
    """DAA. Flags: Z * N - H 0 C *"""
    adjust = int(0)
    carry = c.f & hw.FLAG_C
    if (c.f & hw.FLAG_H) != 0 or ((c.f & hw.FLAG_N) == 0 and (c.a & 0x0F) > 9):
        adjust = 6
    if carry != 0 or ((c.f & hw.FLAG_N) == 0 and c.a > 0x99):
        adjust = adjust | 0x60
        carry = hw.FLAG_C
    if (c.f & hw.FLAG_N) != 0:
        adjust = -adjust
    c.a = (c.a + adjust) & 0xFF
    c.f = zero_flag(c.a) | (c.f & hw.FLAG_N) | carry


@wp.func
def add_hl(c: wp.ref[Cpu], value: int):
    """ADD HL. Flags: Z - N 0 H * C *"""
    hl = (c.h << 8) | c.l
    total = hl + value
    c.f = (c.f & hw.FLAG_Z) | (((hl ^ value ^ total) & 0x1000) >> 7) | ((total & 0x10000) >> 12)
    set_hl(c, total)


@wp.func
def sp_plus(c: wp.ref[Cpu], offset: int) -> int:
    """SP + a signed byte. Flags: Z 0 N 0 H * C *, of the low byte's addition."""
    low = (c.sp & 0xFF) + offset
    c.f = (((c.sp ^ offset ^ low) & 0x10) << 1) | ((low & 0x100) >> 4)
    return (c.sp + (offset ^ 0x80) - 0x80) & 0xFFFF


@wp.func
def set_bc(c: wp.ref[Cpu], value: int):
    """BC = value."""
    c.b = (value >> 8) & 0xFF
    c.c = value & 0xFF


@wp.func
def set_de(c: wp.ref[Cpu], value: int):
    """DE = value."""
    c.d = (value >> 8) & 0xFF
    c.e = value & 0xFF


@wp.func
def set_hl(c: wp.ref[Cpu], value: int):
    """HL = value."""
    c.h = (value >> 8) & 0xFF
    c.l = value & 0xFF


@wp.func
def set_af(c: wp.ref[Cpu], value: int):
    """AF = value; the low four bits of F are always 0."""
    c.a = (value >> 8) & 0xFF
    c.f = value & 0xF0
