"""The interpreter's main loop: batches of instructions until the frames of a step are over.

The loop is a closure over the generated `execute` (build/interpreter.py), so that it is plain Python for an editor.
"""

from __future__ import annotations

import warp as wp

from gbxcule_puffer.emulator.cpu import fetch, pieces
from gbxcule_puffer.emulator.cpu.instruction import make_perform
from gbxcule_puffer.emulator.hw import counters, interrupts, model, step
from gbxcule_puffer.emulator.hw.lcd import drawing
from gbxcule_puffer.emulator.state import Cpu, Machine

USUAL_BLOCK = {"block_dim": 1}  # of its launches: Warp computes the digest of the device code for this one only


def make_kernel(execute: wp.Function, load: wp.Function, store: wp.Function) -> wp.Kernel:
    """The kernel of one step around generated functions: execute(m, c) does the instruction in c.code, load(m, c) and
    store(m, c) copy the hot fields of the state."""
    perform = make_perform(execute)

    @wp.func
    def run(m: wp.ref[Machine], c: wp.ref[Cpu]):
        """Run batches of instructions until the step's frames are over."""
        running = int(1)
        while running == 1:
            interrupts.begin_batch(m, c)
            while c.now < c.next_event:
                counters.begin_instruction(m, c)
                fetch.fetch(m, c)
                if c.code < 0:
                    pieces.run(m, c, m.native)
                if c.code >= 0:
                    perform(m, c)
                counters.end_instruction(m, c)
            interrupts.end_batch(m, c)
            if model.COLOR:
                drawing.draw_rest(m, c)
            if c.frame_done != 0 or c.locked != 0:
                running = step.end_frame(m, c)

    @wp.kernel(enable_backward=False, module="unique", module_options=USUAL_BLOCK)
    def kernel_step(
        machine: Machine, buttons: wp.array(dtype=wp.uint8), first_env: int, frames: int, release_after: int
    ):
        """One step of each env: hold the buttons, run `frames` frames, the last one drawn."""
        m = machine
        c = Cpu()
        c.env = first_env + wp.tid()
        load(m, c)
        if c.locked == 0:
            step.begin_step(m, c, int(buttons[c.env]), frames, release_after)
            run(m, c)
            step.end_step(m, c)
            m.skipped[c.env] = m.skipped[c.env] + c.skipped
            store(m, c)

    return kernel_step
