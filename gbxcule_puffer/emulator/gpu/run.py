"""The data path's main loop: a warp steps its envs together, and calls the interpreter for rare cases.

The functions are closures over the generated `execute` (build/interpreter.py), so that they are plain Python for an
editor: `between` calls the interpreter, `run_datapath` is the loop of a warp, `kernel_step` is a step of each env.
"""

from __future__ import annotations

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cpu import fetch
from gbxcule_puffer.emulator.cpu.instruction import make_perform
from gbxcule_puffer.emulator.gpu import datapath, lane_state, operations, slow_path, stop_counters
from gbxcule_puffer.emulator.gpu import descriptors as ds
from gbxcule_puffer.emulator.hw import counters, interrupts, intrinsics, step
from gbxcule_puffer.emulator.hw.lcd import drawing
from gbxcule_puffer.emulator.state import Cpu, Machine

RAM_INSTRUCTIONS = wp.constant(16)  # instructions of code in RAM that a lane executes while the others wait
NO_MARKS = wp.constant(~(ds.LOOP | ds.WAIT | ds.HALT | ds.EI))  # these bits would be JR's condition on the common path
PATH_FACTOR = wp.constant(16_777_619)  # a prime, for a hash
USUAL_BLOCK = {"block_dim": 32}  # of its launches: Warp computes the digest of the device code for this one only
SOON_T_CYCLES = wp.constant(24)  # a lane this close to its next event stays in the interpreter


def make_between(execute: wp.Function) -> wp.Function:
    """The function that calls the interpreter for a lane."""
    perform = make_perform(execute)

    @wp.func(inline=False)
    def between(m: wp.ref[Machine], c: wp.ref[Cpu]) -> int:
        """Do the work that the data path leaves: ends of batches, rare instructions, code in RAM. Returns 1 if the step
        goes on."""
        counters.add(m, counters.CAUSES, counters.ROUNDS, 1)
        running = int(1)
        count = int(0)
        while running == 1 and (
            count == 0
            or c.now + SOON_T_CYCLES >= c.next_event
            or c.ei_delay != 0
            or c.halted != 0
            or c.overrun != 0
            or (c.pc >= hw.VRAM and count < RAM_INSTRUCTIONS)
        ):
            count = count + 1
            if c.now >= c.next_event:
                frames = c.frames_left
                running = step.pass_event(m, c)
                if c.frames_left != frames:
                    path = operations.multiply(m.path[c.env], PATH_FACTOR) ^ (c.executed - c.skipped)
                    m.path[c.env] = operations.multiply(path, PATH_FACTOR) ^ (c.sp * 65_536 + c.pc)
            else:
                fetch.fetch(m, c)
                perform(m, c)
        return running

    return between


def make_loop(between: wp.Function) -> wp.Function:
    """The loop of a warp around `between`, in which it makes its turns."""

    @wp.func
    def run_datapath(
        m: wp.ref[Machine],
        c: wp.ref[Cpu],
        used: int,
        patience: int,
        table: wp.uint64,
        rom: wp.uint64,
        areas: wp.uint64,
    ):
        """The loop: every lane of the warp stays in it until all have finished the step.

        Lanes that need the interpreter sleep until it is called for all of them together. Lanes in HALT, or in a
        skipped loop that waits, sleep until no lane is far behind them in time (Lane.lead). So all of them go through
        VBlank, its interrupt and the OAM DMA routine at once. `patience`: the most turns that a lane sleeps.
        """
        r = datapath.Fast()
        i = datapath.Turn()
        fixed = datapath.Fixed()
        lane = datapath.Lane()
        lane.running = used
        begin = intrinsics.clock()
        lane.singles = table + wp.uint64(16 * (m.descriptors.shape[0] // 2))
        r.row = c.row
        if used == 1:
            interrupts.begin_batch(m, c)
            lane_state.from_cpu(m, c, r)
        else:
            r.row = rom
            lane_state.idle(m, r)
        datapath.fetch(r, table, datapath.table_index(r, r.pc))
        while intrinsics.any_lane(lane.running != 0):
            left = patience
            while left > 0:
                datapath.begin_turn(r, i, fixed, rom, areas)
                attention = datapath.needs_attention(r, i, fixed)
                if intrinsics.any_lane(attention):
                    i.special = datapath.special(fixed.plain, i.d3)
                    attention = slow_path.glance(c, r, i, attention)
                    if attention and (i.d1 | fixed.d0) < 0 and slow_path.is_before_event(r):  # a group
                        attention = slow_path.part(r, i, fixed, lane, rom, areas)
                    cause = stop_counters.cause(m, c, r, i, attention)
                    if intrinsics.any_lane(attention):
                        if attention:
                            kind = slow_path.kind_to_prepare(r, i)
                            if kind != 0:
                                slow_path.prepare(m, c, r, i, kind)
                            else:
                                done = int(0)
                                if r.now < r.wake:
                                    done = slow_path.do_at_once(m, c, r, i)
                                if done == 0:
                                    slow_path.visit(m, c, r, i, lane)
                            stop_counters.count(m, c, cause, int(lane.running == lane_state.ASLEEP))
                            i.d2 = i.d2 & NO_MARKS
                        intrinsics.converge()
                        if not intrinsics.any_lane((lane.running & 1) != 0):  # nothing to wait for
                            break
                datapath.end_turn(r, i, fixed, table)
                left = left - 1
            behind = intrinsics.least(lane_state.time_reached(c, r, lane))
            if lane.running == lane_state.ASLEEP and lane.until - lane.lead <= behind:
                lane_state.wake_up(m, c, r, lane, between(m, c))
                if lane.running == 0:
                    m.took[c.env] = m.took[c.env] + intrinsics.clock() - begin
            # Also for lanes that stay asleep: their last turn may not have ended
            datapath.fetch(r, table, datapath.table_index(r, r.pc))

    return run_datapath


def make_kernel(execute: wp.Function, load: wp.Function, store: wp.Function) -> wp.Kernel:
    """The kernel around generated functions: execute(m, c) does the instruction in c.code, load(m, c) and store(m, c)
    copy the hot fields of the state."""
    run_datapath = make_loop(make_between(execute))

    # Not grid_stride=False: without that loop the compiler assumes that all lanes of a warp are converged at each vote.
    # After divergent calls they are not. It then keeps one value for all lanes, and instructions were counted twice.
    # For the same reason lanes may leave run_datapath in groups, so no vote or other collective may follow it.
    @wp.kernel(enable_backward=False, module="unique", module_options=USUAL_BLOCK)
    def kernel_step(
        machine: Machine,
        buttons: wp.array(dtype=wp.uint8),
        first_env: int,
        frames: int,
        release_after: int,
        patience: int,
        resume: int,
    ):
        """One step of each env, in Machine.order.

        With draw_later the step stops at the VBlank of the frame that is drawn. A second launch with `resume` continues
        there.
        """
        thread = wp.tid()
        m = machine
        c = Cpu()
        used = int(0)
        c.env = m.order[first_env + thread]
        if c.env >= 0:
            load(m, c)
            if c.locked == 0 and resume == c.drawing:
                used = 1
                if resume != 0:
                    drawing.end_drawing(c)
                    c.previous = c.now
                else:
                    m.took[c.env] = 0
                    m.path[c.env] = 0
                    step.begin_step(m, c, int(buttons[c.env]), frames, release_after)
        table = intrinsics.address_of_words(machine.descriptors)
        areas = intrinsics.address_of_bytes(machine.areas)
        run_datapath(m, c, used, patience, table, intrinsics.address_of_bytes(machine.rom), areas)
        if used == 1:
            if c.drawing == 0:
                step.end_step(m, c)
            m.skipped[c.env] = m.skipped[c.env] + c.skipped
            store(m, c)

    return kernel_step
