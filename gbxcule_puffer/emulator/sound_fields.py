"""The sound unit's state, with `sound=True`: 32-bit words in the hole of the memory row, declared once.

The names are those of PyBoy's .state files (saves/pyboy_layout.py). Counters count T-cycles of the sound unit, which
double speed does not make faster, and are as of the time of the last access (`sound_last`). Wave RAM is in the row at
its own addresses. A muted env has none of these words.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import Field, fields_of

UNIT = """
sound_on bit: NR52 bit 7
sound_panning byte: NR51
nr50 byte: NR50
sound_div 0..7: step of the frame sequencer
sound_div_counter 0..3: 2 and 1 before edges that the sequencer passes over, 3 after them, 0 without them
sound_div_written bit: 1 after a write to DIV that was an edge, until PyBoy forgets it
sound_sequencer 1..8192?: T-cycles until the sequencer's next edge, NEVER where a muted PyBoy saved the state
sound_since_div 0..0x10000: T-cycles since a write to DIV that was an edge, at most 65,536
sound_since_off 0..0x10000: T-cycles since the unit was switched off, at most 65,536
sound_exact 0..3: bit 0 while batches end where PyBoy's end, bit 1 while each end is an access
sound_exact_from near?: when bit 1 may come next by itself, NEVER if that is not in sight
sound_last past: when the counters were last brought up to date
sound_batch past: when PyBoy's batch began, while sound_exact is not 0; on a DMG, when the last of ours began
sound_timer past: when the timer was last accessed, while sound_exact is not 0
sound_bail zero: 1 + when the DMG's instruction began that last ended PyBoy's batch by a write
sound_early_ly zero: 1 + when the DMG's instruction began in which an access last made LY increase
"""
CHANNEL = """
{0}_enable 0..8: its bit of NR52 while it plays (1 of channel 3, too, in a PyBoy that has loaded a state), else 0
{0}_length 0..256: length counter
{0}_length_enable bit: 1 while the length counter counts
{0}_suppressed bit: 1 from a trigger to the first sample
{0}_volume 0..15: volume now
{0}_envelope byte: NRx2
{0}_envelope_timer 0..15: edges until the volume changes, bit 3 if it changes at the next edge of a Game Boy Color
{0}_period 2..0x380000: T-cycles of a sample
{0}_period_timer 0..0x800000: T-cycles until the next sample
{0}_sound_period 0..0x7FF: period as written to NRx3 and NRx4
{0}_frame 0..31: number of the sample
"""
TONE = """
{0}_duty 0..3: duty cycle that is heard
{0}_pending_duty 0..3: duty cycle from the next sample on
{0}_duty_update bit: 1 if that one waits
"""
SWEEP = """
sweep_control byte: NR10
sweep_timer 0..8: edges until the next sweep
sweep_check 0..0x10000: T-cycles until a second check for overflow, 0 if none is due
sweep_calculation 0..4: T-cycles until the sweep that a Game Boy Color delays, 0 if none is due
sweep_hold 0..9: T-cycles in which an edge does not sweep
sweep_negated bit: 1 if a sweep has subtracted since the trigger
sweep_on bit: 1 while it sweeps
sweep_shadow 0..0x7FF: period that it sweeps
"""
WAVE = """
wave_dac bit: NR30 bit 7
wave_level 0..3: NR32 bits 5 and 6
wave_shift 0..4: by which samples are shifted
wave_restart bit: 1 from a trigger while it played to the next sample
wave_sample_frame 0..31: number of the sample that is heard
wave_access bit: 1 if it has just read wave RAM
"""
NOISE = """
noise_control byte: NR43
noise_register 0..0x7FFF: shift register before noise_steps
noise_steps count: steps of the shift register that are not made yet
noise_counter 0..0x3FFF: a Game Boy Color's divider
noise_countdown 0..0x1000: T-cycles until it counts
noise_alignment 0..3: phase of its clock
noise_running bit: 1 while it counts
"""
CHANNELS = ("sweep", "tone", "wave", "noise")
# The channels that have a part in common have it at the same distance (hw/sound/words.py)
_TONES = tuple(part.format(name) for name in CHANNELS[:2] for part in (CHANNEL, TONE))
_PARTS = (UNIT, *_TONES, CHANNEL.format("wave"), CHANNEL.format("noise"), SWEEP, WAVE, NOISE)
SOUND_FIELDS: tuple[Field, ...] = tuple(field for part in _PARTS for field in fields_of(part, hot=False))
AT: dict[str, int] = {field.name: hw.SOUND + 4 * index for index, field in enumerate(SOUND_FIELDS)}
"""Address of each word in the memory row."""
SAMPLES = hw.SOUND + 0x200
"""Where a HeardEmulator has its samples, after the words: four words, then two bytes of each sample."""
SAMPLES_HEAD = 16
MOST_SAMPLES = (hw.OAM - SAMPLES - SAMPLES_HEAD) // 2  # of a step; three frames have 2,412
LONG_AGO = 0x10000  # of sound_since_div and sound_since_off
NEUTRAL = {"sound_div": 3, "sound_sequencer": hw.NEVER, "sound_since_div": LONG_AGO, "sound_since_off": LONG_AGO,
            "sweep_length": 64, "tone_length": 64, "wave_length": 256, "noise_length": 64, "sweep_period": 4,
            "tone_period": 4, "wave_period": 4, "noise_period": 8, "noise_register": 1}  # fmt: skip
_BOOTED = {
    **NEUTRAL, "sound_on": 1, "sound_panning": 0xF3, "nr50": 0x77, "sound_div": 1, "sweep_duty": 2,
    "sweep_envelope": 0xF3, "sweep_sound_period": 0x770, "sweep_envelope_timer": 2, "sweep_period": 576,
    "sweep_volume": 6, "sweep_control": 0x13, "sweep_timer": 1, "sweep_on": 1, "sweep_shadow": 0x770,
}  # fmt: skip
_AFTER_BOOT = {
    "dmg": {"sweep_period_timer": 84, "sweep_frame": 7, "tone_period_timer": 4, "tone_frame": 3,
            "noise_period_timer": 8, "noise_register": 0x5F80},
    "cgb": {"sweep_period_timer": 36, "sweep_frame": 1, "noise_alignment": 2},
}  # fmt: skip
_HARDWARE_DMG = {"sweep_control": 0, "sweep_enable": 1}  # NR10 and NR52 (mooneye, boot_hwio-dmgABCmgb)
_FIRST_EDGE = 4_508_632  # of the frame sequencer after PC=0100, from power-on
_LOW, _HIGH = (np.array([getattr(field, end) for field in SOUND_FIELDS], np.int64) for end in ("low", "high"))
_MAY_BE_NEVER = np.array([field.may_be_never for field in SOUND_FIELDS])


def booted(model: str, cycles: int, accuracy: str = "pyboy") -> dict[str, int]:
    """The fields at PC=0100, `cycles` after power-on, as PyBoy's boot ROM leaves them, or as a real DMG's does."""
    fields = {**_BOOTED, **_AFTER_BOOT[model], "sound_sequencer": _FIRST_EDGE - cycles}
    return fields | _HARDWARE_DMG if (accuracy, model) == ("hardware", "dmg") else fields


def idle(divider: int) -> dict[str, int]:
    """The fields of a unit that is on and plays nothing; divider: the timer's T-cycles since DIV was written."""
    return {**NEUTRAL, "sound_on": 1, "sound_panning": 0xFF, "nr50": 0x77, "sound_sequencer": 8192 - (divider & 8191)}


def exact(fields: Mapping[str, int], model: str) -> int:
    """sound_exact of the other fields, where DIV and NR52 were written long ago (hw/sound/unit.py)."""
    if model == "dmg":
        is_open = fields["sound_div_written"] and not fields["sound_on"]
        return int(fields["sound_div_counter"] != 0 or fields["wave_enable"] != 0 or bool(is_open))
    due = fields["sweep_check"] or fields["sweep_calculation"]
    sweeps = fields["sweep_enable"] and (due or (fields["sweep_on"] and fields["sweep_control"] & 0x70))
    is_odd = fields["sound_sequencer"] != hw.NEVER and fields["sound_sequencer"] & 1
    return 3 if sweeps or is_odd else int(fields["sound_div_counter"] != 0)


def words_of(memory: np.ndarray) -> np.ndarray:
    """The words of memory rows (num_envs, row) uint8, shape (num_envs, fields), int32: a copy."""
    start = hw.SOUND - hw.ROW_BASE
    return np.ascontiguousarray(memory[:, start : start + 4 * len(SOUND_FIELDS)]).view("<i4")


def read(row: np.ndarray) -> dict[str, int]:
    """The fields of one memory row by name."""
    return {field.name: int(word) for field, word in zip(SOUND_FIELDS, words_of(row[None])[0], strict=True)}


def write(row: np.ndarray, fields: Mapping[str, int]) -> None:
    """Write fields into a memory row, in place."""
    for name, value in fields.items():
        row[AT[name] - hw.ROW_BASE :][:4] = np.array([value], "<i4").view(np.uint8)


def first_fault(memory: np.ndarray) -> str:
    """The first value in memory rows that no step leaves, in words; empty if there is none."""
    words = words_of(memory)
    wrong = ((words < _LOW) | (words > _HIGH)) & ~(_MAY_BE_NEVER & (words == hw.NEVER))
    if not wrong.any():
        return ""
    env, index = np.argwhere(wrong)[0]
    return f"{SOUND_FIELDS[index].name} of env {env} is {words[env, index]}"
