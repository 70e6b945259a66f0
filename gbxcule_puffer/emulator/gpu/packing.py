"""The registers of the interpreter's struct as the words that the data path keeps, and back."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.gpu.datapath import Fast
from gbxcule_puffer.emulator.hw import intrinsics
from gbxcule_puffer.emulator.state import Cpu

FLAG_NZ = wp.constant(ds.MASK_NZ)
FLAG_ONE = wp.constant(1 << 24)


@wp.func
def pack_flags(f: int) -> int:
    """The register F as a flag word."""
    nonzero = wp.where((f & hw.FLAG_Z) == 0, FLAG_NZ, 0)
    return nonzero | ((f & 0x60) << 14) | ((f & 0x10) << 19) | FLAG_ONE


@wp.func
def pack_registers(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """A to L, flags and time from the interpreter's struct."""
    r.lo = c.c | (c.b << 8) | (c.e << 16) | (c.d << 24)
    r.hi = c.l | (c.h << 8) | (c.a << 16)
    r.flags = pack_flags(c.f)
    r.now = c.now
    r.previous = c.previous


@wp.func
def to_cpu(c: wp.ref[Cpu], r: wp.ref[Fast]):
    """Registers into the interpreter's struct."""
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
    c.now = r.now
    c.previous = r.previous
