"""An instruction of the interpreter after its fetch, for the main loops of both kernels."""

from __future__ import annotations

import warp as wp

from gbxcule_puffer.emulator.hw import interrupts, model
from gbxcule_puffer.emulator.hw.color import hdma
from gbxcule_puffer.emulator.state import Cpu, Machine


def make_perform(execute: wp.Function) -> wp.Function:
    """The function around the generated `execute`, which does the instruction in c.code."""

    @wp.func(inline=True)
    def perform(m: wp.ref[Machine], c: wp.ref[Cpu]):
        """Do the instruction in c.code."""
        begin = c.now  # after what fetch may skip
        execute(m, c)
        if model.COLOR:
            if c.hdma_pending != 0:
                hdma.copy(m, c, begin)
        if model.SOUND:
            c.before = c.previous
        c.previous = begin
        interrupts.finish_instruction(c)

    return perform
