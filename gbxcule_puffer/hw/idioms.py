"""Loops whose iterations are skipped at once, leaving registers, flags and time as the plain loop would.

A skip stops before the loop's last iteration and before the next event, so that nothing can tell.
"""

import warp as wp

from gbxcule_puffer import hardware as hw
from gbxcule_puffer.ops import arithmetic
from gbxcule_puffer.state import Cpu, Machine

DEC_A = wp.constant(0x3D)
DEC_B = wp.constant(0x05)
DEC_C = wp.constant(0x0D)
ITERATION_T_CYCLES = wp.constant(16)  # DEC r, JR NZ taken


@wp.func
def skip_wait_loop(m: wp.ref[Machine], c: wp.ref[Cpu]):
    """`wait: dec r / jr nz,wait` in WRAM or HRAM, with which games sit out an OAM DMA."""
    place = c.pc - hw.ROW_BASE
    in_row = c.pc < hw.ECHO or (c.pc >= hw.HRAM and c.pc < hw.IE - 3)
    if c.ei_delay == 0 and in_row and int(m.memory[c.env, place + 1]) == 0x20:
        opcode = int(m.memory[c.env, place])
        if int(m.memory[c.env, place + 2]) == 0xFD and (opcode == DEC_A or opcode == DEC_B or opcode == DEC_C):
            value = c.a
            if opcode == DEC_B:
                value = c.b
            elif opcode == DEC_C:
                value = c.c
            left = ((value - 1) & 0xFF) + 1  # iterations
            count = wp.min(left - 1, (c.next_event - 1 - c.now) // ITERATION_T_CYCLES)
            if count > 0:
                value = arithmetic.decrement(c, (value - count + 1) & 0xFF)
                if opcode == DEC_A:
                    c.a = value
                elif opcode == DEC_B:
                    c.b = value
                else:
                    c.c = value
                c.now = c.now + count * ITERATION_T_CYCLES
                c.previous = c.now - 12
                c.executed = c.executed + 2 * count
