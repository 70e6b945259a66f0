"""One template per family of isa.py. build/splice.py fills the slots (names in capitals) for each opcode.

SRC and DST are operands: a register, pair or memory cell that is read or written. COND is a test of F, TARGET an
address, ALU and ROTATE functions of arithmetic.py, BIT a number, T0 and T1 the times of the data accesses, EXTRA the
T-cycles of a taken branch. When a template runs, PC already points to the next instruction; its fixed T-cycles are
added after it.
"""

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false
import warp as wp

from gbxcule_puffer.emulator.cpu import arithmetic
from gbxcule_puffer.emulator.hw import bus, interrupts
from gbxcule_puffer.emulator.hw.color import speed
from gbxcule_puffer.emulator.state import Cpu, Machine

m: wp.ref[Machine]
c: wp.ref[Cpu]


def nop():
    """NOP."""
    pass


def load8(DST, SRC):
    """LD r8. Flags: Z - N - H - C -"""
    DST = SRC


def load16(DST, SRC):
    """LD r16. Flags: Z - N - H - C -"""
    DST = SRC


def store_sp(SRC, T0, T1):
    """LD [imm16],SP. Flags: Z - N - H - C -"""
    bus.write(m, c, SRC, c.sp & 0xFF, c.now + T0, 0)
    bus.write(m, c, (SRC + 1) & 0xFFFF, c.sp >> 8, c.now + T1, 0)


def inc16(DST):
    """INC r16. Flags: Z - N - H - C -"""
    DST = (DST + 1) & 0xFFFF


def dec16(DST):
    """DEC r16. Flags: Z - N - H - C -"""
    DST = (DST - 1) & 0xFFFF


def inc8(DST):
    """INC r8. Flags: Z * N 0 H * C -"""
    DST = arithmetic.increment(c, DST)


def dec8(DST):
    """DEC r8. Flags: Z * N 1 H * C -"""
    DST = arithmetic.decrement(c, DST)


def alu8(ALU, SRC):
    """ADD ADC SUB SBC AND XOR OR CP. Flags: as the function says"""
    ALU(c, SRC)


def add16(SRC):
    """ADD HL,r16. Flags: Z - N 0 H * C *"""
    arithmetic.add_hl(c, SRC)


def add_sp(DST, SRC):
    """ADD SP,e8 and LD HL,SP+e8. Flags: Z 0 N 0 H * C *"""
    DST = arithmetic.sp_plus(c, SRC)


def rotate(ROTATE, DST):
    """CB rotates and shifts. Flags: Z * N 0 H 0 C *"""
    DST = ROTATE(c, DST)


def rotate_a(ROTATE, DST):
    """RLCA RRCA RLA RRA. Flags: Z 0 N 0 H 0 C *"""
    DST = ROTATE(c, DST)
    c.f = c.f & 0x10


def bit(BIT, SRC):
    """BIT. Flags: Z * N 0 H 1 C -"""
    arithmetic.test_bit(c, SRC, BIT)


def res(BIT, DST):
    """RES. Flags: Z - N - H - C -"""
    DST = DST & ~(1 << BIT)


def set(BIT, DST):
    """SET. Flags: Z - N - H - C -"""
    DST = DST | (1 << BIT)


def daa():
    """DAA. Flags: Z * N - H 0 C *"""
    arithmetic.decimal_adjust(c)


def cpl():
    """CPL. Flags: Z - N 1 H 1 C -"""
    c.a = c.a ^ 0xFF
    c.f = c.f | 0x60


def scf():
    """SCF. Flags: Z - N 0 H 0 C 1"""
    c.f = (c.f & 0x80) | 0x10


def ccf():
    """CCF. Flags: Z - N 0 H 0 C *"""
    c.f = (c.f & 0x90) ^ 0x10


def jump(COND, TARGET, EXTRA):
    """JP. Flags: Z - N - H - C -"""
    if COND:
        c.pc = TARGET
        c.now = c.now + EXTRA


def jump_relative(COND, SRC, EXTRA):
    """JR. Flags: Z - N - H - C -"""
    if COND:
        c.pc = (c.pc + (SRC ^ 0x80) - 0x80) & 0xFFFF
        c.now = c.now + EXTRA


def call(COND, TARGET, T0, T1, EXTRA):
    """CALL and RST. Flags: Z - N - H - C -"""
    if COND:
        bus.write(m, c, (c.sp - 1) & 0xFFFF, c.pc >> 8, c.now + T0, 0)
        bus.write(m, c, (c.sp - 2) & 0xFFFF, c.pc & 0xFF, c.now + T1, 0)
        c.sp = (c.sp - 2) & 0xFFFF
        c.pc = TARGET
        c.now = c.now + EXTRA


def ret(COND, T0, T1, EXTRA):
    """RET. Flags: Z - N - H - C -"""
    if COND:
        c.pc = bus.read(m, c, c.sp, c.now + T0, 0)
        c.pc = c.pc | (bus.read(m, c, (c.sp + 1) & 0xFFFF, c.now + T1, 0) << 8)
        c.sp = (c.sp + 2) & 0xFFFF
        c.now = c.now + EXTRA


def reti(T0, T1):
    """RETI. Flags: Z - N - H - C -; an interrupt that is pending ends the batch"""
    c.ime = 1
    c.ei_delay = 0
    if (c.interrupt_flag & c.interrupt_enable & 0x1F) != 0:
        c.next_event = c.now
    c.pc = bus.read(m, c, c.sp, c.now + T0, 0)
    c.pc = c.pc | (bus.read(m, c, (c.sp + 1) & 0xFFFF, c.now + T1, 0) << 8)
    c.sp = (c.sp + 2) & 0xFFFF


def push(SRC, T0, T1):
    """PUSH. Flags: Z - N - H - C -"""
    bus.write(m, c, (c.sp - 1) & 0xFFFF, SRC >> 8, c.now + T0, 0)
    bus.write(m, c, (c.sp - 2) & 0xFFFF, SRC & 0xFF, c.now + T1, 0)
    c.sp = (c.sp - 2) & 0xFFFF


def pop(DST, T0, T1):
    """POP. Flags: Z - N - H - C -, all for AF"""
    DST = bus.read(m, c, c.sp, c.now + T0, 0) | (bus.read(m, c, (c.sp + 1) & 0xFFFF, c.now + T1, 0) << 8)
    c.sp = (c.sp + 2) & 0xFFFF


def di():
    """DI."""
    c.ime = 0
    c.ei_delay = 0


def ei():
    """EI: takes effect after the next instruction."""
    if c.ei_delay == 0:
        c.ei_delay = 2
    if c.settle_from <= c.now and c.dma_active == 0:  # otherwise this batch has an exact end
        c.next_event = c.now


def halt():
    """HALT: PC stays on it until an interrupt is pending."""
    interrupts.halt(c)


def stop():
    """STOP: skips 2 bytes, as PyBoy does on a DMG."""
    pass


def stop_of_color():
    """STOP of a Game Boy Color."""
    speed.stop(m, c)
