"""64 KiB of plain RAM in place of the bus: what single-instruction test cases assume."""

import warp as wp

from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def read(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, t: int, lookahead: int) -> int:
    """The byte at `address`."""
    return int(m.memory[c.env, address])


@wp.func
def write(m: wp.ref[Machine], c: wp.ref[Cpu], address: int, value: int, t: int, lookahead: int):
    """Store a byte."""
    m.memory[c.env, address] = wp.uint8(value)


@wp.func
def fetch(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """Opcode and immediates."""
    c.code = int(m.memory[c.env, c.pc])
    c.code = c.code | (int(m.memory[c.env, (c.pc + 1) & 0xFFFF]) << 8)
    c.code = c.code | (int(m.memory[c.env, (c.pc + 2) & 0xFFFF]) << 16)
