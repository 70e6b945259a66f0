"""Pieces of a ROM as native code: of a ROM's own kernel this module is generated (pieces/source.py); here are none."""

import warp as wp

from gbxcule_puffer.emulator.state import Cpu, Machine


@wp.func
def run(m: wp.ref[Machine], c: wp.ref[Cpu], index: int):
    """Run the piece that begins at PC, `index` of the ROM, if no event comes before its end; else load the instruction
    at PC into c.code."""
