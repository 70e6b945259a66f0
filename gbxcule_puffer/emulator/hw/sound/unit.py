"""The sound unit's clock: brings all channels up to date at an access, through the edges of the frame sequencer.

Nothing is ticked. But PyBoy brings its sound unit up to date at the end of each batch, too, and some of what it does
depends on when that was:

- wave RAM of a DMG is only open to an access if channel 3 has read it since that time, which hw/batches.py finds out;
- switching the unit on looks at PyBoy's DIV, which is as old as that, where a write to DIV or to NR52 was shortly
  before or where the sequencer passes over an edge;
- an overflow of a Game Boy Color's sweep that is found after an edge stops channel 1's samples at that time;
- a Game Boy Color's noise channel, and at double speed all of them, lose an odd T-cycle each time; after a HALT or a
  block of VRAM DMA of an odd length, so they do at each edge of the frame sequencer.

Of the last three, while a game can notice it (words.EXACT), batches end where PyBoy's end (hw/interrupts.py). Before a
sweep's overflow that is so from words.EXACT_FROM on. A batch of ours ends then, too, which no other device notices.
"""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.sound import channels, lfsr, samples, sweep, words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu

EXACT_BATCHES, EXACT_ACCESSES = wp.constant(1), wp.constant(2)  # of words.EXACT
LEAD_T_CYCLES = wp.constant(64)  # more than the instruction in which words.EXACT_FROM comes, and a dispatch


@wp.func
def advance_channels(c: wp.ref[Cpu], t_cycles: int):
    """All channels by `t_cycles`, in which the frame sequencer has no edge."""
    if model.COLOR:
        if load(c, words.SWEEP) != 0:
            channels.advance_tone(c, words.SWEEP, t_cycles)
            sweep.advance(c, t_cycles)
        if load(c, words.TONE) != 0:
            channels.advance_tone(c, words.TONE, t_cycles)
    else:
        channels.advance_tone(c, words.SWEEP, t_cycles)
        sweep.advance(c, t_cycles)
        channels.advance_tone(c, words.TONE, t_cycles)
    channels.advance_wave(c, t_cycles)
    channels.advance_noise(c, t_cycles)


@wp.func
def tick_lengths(c: wp.ref[Cpu]):
    """The length counters."""
    channels.tick_length(c, words.SWEEP)
    channels.tick_length(c, words.TONE)
    channels.tick_length(c, words.WAVE)
    channels.tick_length(c, words.NOISE)


@wp.func
def tick_envelopes(c: wp.ref[Cpu]):
    """The envelopes."""
    channels.tick_envelope(c, words.SWEEP)
    channels.tick_envelope(c, words.TONE)
    channels.tick_envelope(c, words.NOISE)


@wp.func
def tick_sequencer(c: wp.ref[Cpu]):
    """An edge of the frame sequencer."""
    counter = load(c, words.DIV_COUNTER)
    if counter == 2:
        store(c, words.DIV_COUNTER, 1)
        return
    step = load(c, words.DIV)
    if counter == 1:
        store(c, words.DIV_COUNTER, 3)
    else:
        step = (step + 1) & 7
        store(c, words.DIV, step)
    if load(c, words.ON) == 0:
        return
    envelope_step = int(7)
    if model.COLOR:
        envelope_step = 0
        if (step & 1) == 0:
            channels.tick_envelope_extra(c, words.SWEEP)
            channels.tick_envelope_extra(c, words.TONE)
            channels.tick_envelope_extra(c, words.NOISE)
    if (step & 1) == 1:
        tick_lengths(c)
    if (step & 3) == 3:
        sweep.tick(c)
    if step == envelope_step:
        tick_envelopes(c)


@wp.func(inline=False)
def pass_time(c: wp.ref[Cpu], t_cycles: int):
    """Let `t_cycles` pass."""
    store(c, words.SINCE_DIV, wp.min(load(c, words.SINCE_DIV) + t_cycles, words.LONG_AGO))
    store(c, words.SINCE_OFF, wp.min(load(c, words.SINCE_OFF) + t_cycles, words.LONG_AGO))
    left = int(t_cycles)
    while left > 0:
        edge = load(c, words.SEQUENCER)
        passed = wp.min(left, edge)
        if load(c, words.ON) != 0:
            advance_channels(c, passed)
        left = left - passed
        if passed == edge:
            tick_sequencer(c)
            store(c, words.SEQUENCER, words.EDGE_T_CYCLES)
        elif edge != hw.NEVER:
            store(c, words.SEQUENCER, edge - passed)


@wp.func
def bring_up(c: wp.ref[Cpu], t: int):
    """Bring the unit up to date with time `t`, without samples."""
    t_cycles = (t - load(c, words.LAST)) >> words.speed(c)
    store(c, words.LAST, t)
    store(c, words.WAVE_ACCESS, 0)
    if t_cycles > 0:
        pass_time(c, t_cycles)


@wp.func
def advance(c: wp.ref[Cpu], t: int):
    """Bring the unit up to date with time `t`."""
    if model.SAMPLES:
        while load(c, samples.DUE) <= t:
            bring_up(c, load(c, samples.DUE))
            samples.take(c)
    bring_up(c, t)


@wp.func
def late_stop(c: wp.ref[Cpu]) -> int:
    """The time from which batches have to end where PyBoy's end, because a Game Boy Color's channel 1 may stop by an
    overflow at the end of one; NEVER if it cannot."""
    if load(c, words.SWEEP) == 0:
        return hw.NEVER
    if (load(c, words.SWEEP_CHECK) | load(c, words.SWEEP_CALCULATION)) != 0:
        return load(c, words.LAST)
    edges = sweep.edges_to_late_stop(c)
    sequencer = load(c, words.SEQUENCER)
    if edges == 0 or sequencer == hw.NEVER:
        return hw.NEVER
    t_cycles = sequencer + (edges - 1) * words.EDGE_T_CYCLES
    return load(c, words.LAST) + (t_cycles << words.speed(c)) - LEAD_T_CYCLES


@wp.func
def update_exact(c: wp.ref[Cpu]):
    """Find out whether batches have to end where PyBoy's end, and when that may come by itself."""
    exact = wp.where(load(c, words.DIV_COUNTER) != 0, EXACT_BATCHES, 0)
    if model.COLOR:
        since = wp.min(load(c, words.SINCE_DIV), load(c, words.SINCE_OFF))
        exact = exact | wp.where(load(c, words.ON) == 0 and since < words.EDGE_T_CYCLES, EXACT_BATCHES, 0)
        left = load(c, words.SEQUENCER)
        stop = late_stop(c)
        is_near = stop <= load(c, words.LAST)
        is_each_seen = wp.where(is_near or (left != hw.NEVER and (left & 1) != 0), 1, 0)
        store(c, words.EXACT_FROM, wp.where(is_near, hw.NEVER, stop))
        exact = exact | (is_each_seen * (EXACT_BATCHES | EXACT_ACCESSES))
    else:
        exact = exact | wp.where(load(c, words.ON) == 0 and load(c, words.DIV_WRITTEN) != 0, EXACT_BATCHES, 0)
    store(c, words.EXACT, exact)


@wp.func
def note_end(c: wp.ref[Cpu]):
    """Note the end of a batch that is one of PyBoy's, too, before devices are brought up to date."""
    if model.COLOR:
        is_theirs = load(c, words.EXACT) != 0
    else:  # EI ends ours where PyBoy's may go on
        is_event = c.now >= wp.min(c.serial_end, c.timer_next) or c.settle_from > c.previous
        is_theirs = load(c, words.EXACT) != 0 or c.ei_delay == 0 or is_event
    if is_theirs:
        store(c, words.BATCH, c.now)


@wp.func(inline=False)
def end_batch(c: wp.ref[Cpu], next_t_cycles: int):
    """The end of a batch that is one of PyBoy's, too; next_t_cycles: of the next batch, where it is not made of
    instructions, else 0."""
    if model.COLOR:
        exact = load(c, words.EXACT)
        odd = ((c.now - load(c, words.LAST)) | next_t_cycles) & 3
        is_old = exact != 0 and c.now - load(c, words.LAST) >= words.EDGE_T_CYCLES  # exact may have come to its end
        if odd != 0 or (exact & EXACT_ACCESSES) != 0 or c.now >= load(c, words.EXACT_FROM) or is_old:
            advance(c, c.now)
            update_exact(c)


@wp.func
def end_step(c: wp.ref[Cpu]):
    """Bring the unit up to date with the end of a step, before all times are made relative to it."""
    advance(c, c.now)
    if load(c, words.NOISE_STEPS) >= lfsr.MANY_STEPS:
        lfsr.make_steps(c)
    store(c, words.LAST, 0)
    update_exact(c)
    store(c, words.BATCH, 0)
    store(c, words.TIMER, 0)
    store(c, words.BAIL, 0)
    store(c, words.EARLY_LY, 0)


@wp.func(inline=False)
def write_div(c: wp.ref[Cpu], t: int):
    """A write to DIV at time `t`, before it clears DIV: an edge of the frame sequencer if its bit of DIV is set."""
    advance(c, t)
    if (((t - c.div_zero) >> 8) & (16 << words.speed(c))) != 0:
        store(c, words.DIV_WRITTEN, 1)
        store(c, words.SINCE_DIV, 0)
        tick_sequencer(c)
    store(c, words.SEQUENCER, words.EDGE_T_CYCLES)
    update_exact(c)
