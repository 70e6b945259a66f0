"""The sound unit's words in the memory row (sound_fields.py): their addresses, and access to them."""

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.hw import intrinsics, model, row
from gbxcule_puffer.emulator.sound_fields import AT, SAMPLES
from gbxcule_puffer.emulator.sound_fields import LONG_AGO as MOST_AGE
from gbxcule_puffer.emulator.state import Cpu

# Each channel by the address of its first word
SWEEP, TONE, WAVE, NOISE = (wp.constant(AT[f"{name}_enable"]) for name in ("sweep", "tone", "wave", "noise"))

SWEEP_BIT, TONE_BIT, WAVE_BIT, NOISE_BIT = (wp.constant(1 << number) for number in range(4))  # of NR52


def _offset(name: str) -> int:
    """The distance of a word from the first of its channel."""
    return AT[f"sweep_{name}"] - AT["sweep_enable"]


LENGTH, LENGTH_ENABLE = wp.constant(_offset("length")), wp.constant(_offset("length_enable"))
SUPPRESSED, VOLUME = wp.constant(_offset("suppressed")), wp.constant(_offset("volume"))
ENVELOPE, ENVELOPE_TIMER = wp.constant(_offset("envelope")), wp.constant(_offset("envelope_timer"))
PERIOD, PERIOD_TIMER = wp.constant(_offset("period")), wp.constant(_offset("period_timer"))
SOUND_PERIOD, FRAME = wp.constant(_offset("sound_period")), wp.constant(_offset("frame"))
DUTY, PENDING_DUTY = wp.constant(_offset("duty")), wp.constant(_offset("pending_duty"))
DUTY_UPDATE = wp.constant(_offset("duty_update"))

ON, PANNING, NR50 = wp.constant(AT["sound_on"]), wp.constant(AT["sound_panning"]), wp.constant(AT["nr50"])
DIV, DIV_COUNTER = wp.constant(AT["sound_div"]), wp.constant(AT["sound_div_counter"])
DIV_WRITTEN, SEQUENCER = wp.constant(AT["sound_div_written"]), wp.constant(AT["sound_sequencer"])
SINCE_DIV, SINCE_OFF = wp.constant(AT["sound_since_div"]), wp.constant(AT["sound_since_off"])
EXACT, LAST = wp.constant(AT["sound_exact"]), wp.constant(AT["sound_last"])
BAIL, EARLY_LY = wp.constant(AT["sound_bail"]), wp.constant(AT["sound_early_ly"])
EXACT_FROM = wp.constant(AT["sound_exact_from"])
BATCH, TIMER = wp.constant(AT["sound_batch"]), wp.constant(AT["sound_timer"])

SWEEP_CONTROL, SWEEP_TIMER = wp.constant(AT["sweep_control"]), wp.constant(AT["sweep_timer"])
SWEEP_CHECK, SWEEP_CALCULATION = wp.constant(AT["sweep_check"]), wp.constant(AT["sweep_calculation"])
SWEEP_HOLD, SWEEP_NEGATED = wp.constant(AT["sweep_hold"]), wp.constant(AT["sweep_negated"])
SWEEP_ON, SWEEP_SHADOW = wp.constant(AT["sweep_on"]), wp.constant(AT["sweep_shadow"])
WAVE_DAC, WAVE_LEVEL, WAVE_SHIFT = (wp.constant(AT[f"wave_{name}"]) for name in ("dac", "level", "shift"))
WAVE_RESTART, WAVE_SAMPLE_FRAME = wp.constant(AT["wave_restart"]), wp.constant(AT["wave_sample_frame"])
WAVE_ACCESS = wp.constant(AT["wave_access"])
NOISE_CONTROL, NOISE_REGISTER = wp.constant(AT["noise_control"]), wp.constant(AT["noise_register"])
NOISE_STEPS, NOISE_COUNTER = wp.constant(AT["noise_steps"]), wp.constant(AT["noise_counter"])
NOISE_COUNTDOWN, NOISE_ALIGNMENT = wp.constant(AT["noise_countdown"]), wp.constant(AT["noise_alignment"])
NOISE_RUNNING = wp.constant(AT["noise_running"])

MUTED = wp.constant(SAMPLES + 12)  # with samples: 1 if the game reads 00 from the registers

EDGE_T_CYCLES = wp.constant(8192)  # between two edges of the frame sequencer, 512 Hz
LONG_AGO = wp.constant(MOST_AGE)  # of SINCE_DIV and SINCE_OFF


@wp.func
def load(c: wp.ref[Cpu], at: int) -> int:
    """A word."""
    return row.load_word(c, at)


@wp.func
def store(c: wp.ref[Cpu], at: int, value: int):
    """Store a word."""
    intrinsics.store_word(c.row, at, value)


@wp.func
def speed(c: wp.ref[Cpu]) -> int:
    """1 at double speed, else 0."""
    if model.COLOR:
        return c.double_speed
    return 0


@wp.func
def is_exact(c: wp.ref[Cpu]) -> bool:
    """True while batches have to end where PyBoy's end."""
    if model.SAMPLES:
        if load(c, MUTED) != 0:
            return False
    return load(c, EXACT) != 0


@wp.func
def is_exact_batch(c: wp.ref[Cpu], is_halt: bool) -> bool:
    """is_exact for the batch that begins. In HALT nothing looks at PyBoy's batches, and HALT itself ends with one:
    only where each end is an access do those on the way matter."""
    return is_exact(c) and (load(c, EXACT) > 1 or not is_halt)


@wp.func
def exact_from(c: wp.ref[Cpu]) -> int:
    """The time from which a Game Boy Color's batches have to end where PyBoy's end, NEVER if that is not in sight."""
    if model.SAMPLES:
        if load(c, MUTED) != 0:
            return hw.NEVER
    return load(c, EXACT_FROM)


@wp.func
def note_bail(c: wp.ref[Cpu], begin: int):
    """Note that PyBoy ends its batch with the instruction that began at `begin`, which writes a register, though ours
    may go on. Not with the instruction after EI, whose end forgets it. A Game Boy Color needs no such note."""
    if model.COLOR:
        return
    store(c, BAIL, wp.where(c.ei_delay == 0, begin + 1, 0))


@wp.func
def access_timer(c: wp.ref[Cpu], t: int):
    """Note that PyBoy brings its timer up to date at time `t`."""
    store(c, TIMER, t)
