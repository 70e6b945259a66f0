"""Registers in packed form, as the data path keeps them (gpu/descriptors.py). Loops are skipped on them.

Registers are numbered in the order b c d e h l a, pairs in the order bc de hl.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model
from gbxcule_puffer.emulator.state import Cpu

# Bits of the flag word: half carry, subtraction, carry, not zero, and the bit that is always set
H, N, C, NZ, ONE = 1 << 19, 1 << 20, 1 << 23, 1 << 27, 1 << 24
POSITIONS = 0x6452301  # indices of b c d e h l a among the bytes of lo and hi


@wp.struct
class Registers:
    """lo = C | B<<8 | E<<16 | D<<24, hi = L | H<<8 | A<<16, the flag word, the current time and that of the last
    instruction."""

    lo: wp.int32
    hi: wp.int32
    flags: wp.int32
    sp: wp.int32
    pc: wp.int32
    now: wp.int32
    previous: wp.int32


@wp.func
def pack_flags(f: int) -> int:
    """The register F as a flag word."""
    return wp.where((f & hw.FLAG_Z) == 0, NZ, 0) | ((f & 0x60) << 14) | ((f & 0x10) << 19) | ONE


@wp.func
def pack(c: wp.ref[Cpu]) -> Registers:
    """The interpreter's registers in packed form."""
    r = Registers()
    r.lo = c.c | (c.b << 8) | (c.e << 16) | (c.d << 24)
    r.hi = c.l | (c.h << 8) | (c.a << 16)
    r.flags = pack_flags(c.f)
    r.sp = c.sp
    r.pc = c.pc
    r.now = c.now
    r.previous = c.previous
    return r


@wp.func
def unpack(c: wp.ref[Cpu], r: wp.ref[Registers]):
    """Give the registers back to the interpreter."""
    c.c = r.lo & 0xFF
    c.b = (r.lo >> 8) & 0xFF
    c.e = (r.lo >> 16) & 0xFF
    c.d = (r.lo >> 24) & 0xFF
    c.l = r.hi & 0xFF
    c.h = (r.hi >> 8) & 0xFF
    c.a = (r.hi >> 16) & 0xFF
    c.f = intrinsics.flags_byte(r.flags)
    c.sp = r.sp
    c.pc = r.pc
    if model.SOUND:
        c.before = wp.where(r.now != c.now, r.previous, c.before)  # after a skip: the last two instructions were short
    c.now = r.now
    c.previous = r.previous


@wp.func
def byte(r: wp.ref[Registers], number: int) -> int:
    """A register."""
    position = (POSITIONS >> (4 * number)) & 7
    return (wp.where(position < 4, r.lo, r.hi) >> (8 * (position & 3))) & 0xFF


@wp.func
def set_byte(r: wp.ref[Registers], number: int, value: int):
    """Set a register."""
    position = (POSITIONS >> (4 * number)) & 7
    changed = (byte(r, number) ^ value) << (8 * (position & 3))
    r.lo = r.lo ^ wp.where(position < 4, changed, 0)
    r.hi = r.hi ^ wp.where(position < 4, 0, changed)


@wp.func
def pair(r: wp.ref[Registers], number: int) -> int:
    """A pair."""
    return wp.where(number == 0, r.lo, wp.where(number == 1, r.lo >> 16, r.hi)) & 0xFFFF


@wp.func
def set_pair(r: wp.ref[Registers], number: int, value: int):
    """Set a pair."""
    changed = pair(r, number) ^ value
    r.lo = r.lo ^ wp.where(number == 0, changed, wp.where(number == 1, changed << 16, 0))
    r.hi = r.hi ^ wp.where(number == 2, changed, 0)


@wp.func
def set_a(r: wp.ref[Registers], value: int):
    """Set A."""
    r.hi = (r.hi & 0xFFFF) | (value << 16)
