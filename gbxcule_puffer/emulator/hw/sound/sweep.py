"""Channel 1's sweep. Pan Docs, "Audio details", "Pulse channel with sweep"."""

import warp as wp

from gbxcule_puffer.emulator.hw import model
from gbxcule_puffer.emulator.hw.sound import words
from gbxcule_puffer.emulator.hw.sound.words import load, store
from gbxcule_puffer.emulator.state import Cpu

CHECK_T_CYCLES = wp.constant(32)  # from a period of 7FF to the second check
CALCULATION_T_CYCLES = wp.constant(4)  # by which a Game Boy Color's sweep by 0 bits follows the edge

MOST_EDGES = wp.constant(32)  # that edges_to_late_stop looks ahead


@wp.func
def pace(control: int) -> int:
    """NR10 bits 4 to 6: edges of a sweep, 0 for none."""
    return (control >> 4) & 7


@wp.func
def set_period(c: wp.ref[Cpu], channel: int, sound_period: int):
    """The period of a tone channel, as in NRx3 and NRx4."""
    store(c, channel + words.SOUND_PERIOD, sound_period)
    store(c, channel + words.PERIOD, 4 * (0x800 - sound_period))


@wp.func
def sweep(c: wp.ref[Cpu], is_kept: int) -> int:
    """Compute the next period; an overflow switches the channel off. 1 if the period has changed."""
    control = load(c, words.SWEEP_CONTROL)
    bits = control & 7
    shadow = load(c, words.SWEEP_SHADOW)
    new = shadow + (shadow >> bits)
    if (control & 8) != 0:
        store(c, words.SWEEP_NEGATED, 1)
        new = shadow - (shadow >> bits)
    changed = int(0)
    if new > 0x7FF:
        store(c, words.SWEEP, 0)
    elif is_kept != 0 and bits != 0:
        store(c, words.SWEEP_SHADOW, new)
        if new == 0x7FF:
            store(c, words.SWEEP_CHECK, CHECK_T_CYCLES)
        set_period(c, words.SWEEP, new)
        changed = 1
    return changed


@wp.func
def sweep_and_check(c: wp.ref[Cpu]):
    """Sweep, and check the period after the next for overflow."""
    if sweep(c, 1) != 0 and load(c, words.SWEEP_CHECK) == 0:
        sweep(c, 0)


@wp.func
def edges_to_late_stop(c: wp.ref[Cpu]) -> int:
    """The frame sequencer's edges until a Game Boy Color's sweep may find an overflow some T-cycles after an edge, or
    until it has to be asked again; 0 if it will not. Other overflows are found at an edge."""
    control = load(c, words.SWEEP_CONTROL)
    bits = control & 7
    shadow = load(c, words.SWEEP_SHADOW)
    if load(c, words.SWEEP_ON) == 0 or pace(control) == 0 or (control & 8) != 0 or (bits == 0 and shadow < 0x400):
        return 0
    edges = ((2 - load(c, words.DIV)) & 3) + 1 + 4 * (wp.max(load(c, words.SWEEP_TIMER), 1) - 1)
    if bits != 0:
        new = shadow + (shadow >> bits)
        while new < 0x7FF and new != shadow and edges < MOST_EDGES:
            edges = edges + 4 * pace(control)
            shadow = new
            new = shadow + (shadow >> bits)
        if new > 0x7FF or new == shadow:
            edges = 0
    return edges


@wp.func
def tick(c: wp.ref[Cpu]):
    """An edge of the frame sequencer at which channel 1 sweeps."""
    if load(c, words.SWEEP_HOLD) != 0:
        return
    if load(c, words.SWEEP_ON) != 0 and load(c, words.SWEEP) != 0:
        timer = load(c, words.SWEEP_TIMER) - 1
        if timer <= 0:
            control = load(c, words.SWEEP_CONTROL)
            timer = wp.where(pace(control) != 0, pace(control), 8)
            if pace(control) != 0:
                is_delayed = int(0)
                if model.COLOR:
                    is_delayed = wp.where((control & 7) == 0, 1, 0)
                if is_delayed != 0:
                    store(c, words.SWEEP_CALCULATION, CALCULATION_T_CYCLES)
                else:
                    sweep_and_check(c)
        store(c, words.SWEEP_TIMER, timer)


@wp.func
def advance(c: wp.ref[Cpu], t_cycles: int):
    """Pass T-cycles, after which some effects of an edge come: in PyBoy, at a batch's end (unit.end_batch)."""
    hold = load(c, words.SWEEP_HOLD)
    if hold != 0:
        store(c, words.SWEEP_HOLD, wp.max(hold - t_cycles, 0))
    calculation = load(c, words.SWEEP_CALCULATION)
    check = load(c, words.SWEEP_CHECK)
    if calculation != 0:
        store(c, words.SWEEP_CALCULATION, wp.max(calculation - t_cycles, 0))
        if calculation <= t_cycles and pace(load(c, words.SWEEP_CONTROL)) != 0:
            sweep_and_check(c)
    elif check != 0:
        store(c, words.SWEEP_CHECK, wp.max(check - t_cycles, 0))
        if check <= t_cycles and (load(c, words.SWEEP_CONTROL) & 7) != 0:
            sweep(c, 0)
