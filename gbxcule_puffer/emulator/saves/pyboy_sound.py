"""The sound unit's part of PyBoy's .state files, to and from the words of a memory row (sound_fields.py).

A file lacks when DIV and NR52 were last written: as in a PyBoy that loads it, long ago.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator import sound_fields
from gbxcule_puffer.emulator.hw.sound import lfsr
from gbxcule_puffer.emulator.saves.pyboy_layout import CYCLES_NEVER
from gbxcule_puffer.emulator.sound_fields import CHANNELS, LONG_AGO, SOUND_FIELDS, exact
from gbxcule_puffer.errors import StateError

WAVE_RAM = slice(hw.WAVE_RAM - hw.ROW_BASE, hw.WAVE_RAM_END - hw.ROW_BASE)
SAMPLE_T_CYCLES = hw.CLOCK_HZ / 48_000
CLOCK = 1 << 30  # a time in files, late enough that PyBoy's batches do not depend on it
SAME = tuple(
    field.name
    for field in SOUND_FIELDS
    if (
        field.name.partition("_")[0] in CHANNELS
        and not field.name.endswith(("_envelope", "_control", "_steps", "_access"))
    )
    or field.name in ("nr50", "sound_div_counter", "sound_div_written")
)
"""Fields that a file has under the same name with the same value. Not wave_access, which each access finds anew."""
FIRST_VERSION = 14  # whose files have the whole sound unit
NOISE_DIVIDERS = (8, 16, 32, 48, 64, 80, 96, 112)


def fill_row(row: np.ndarray, values: Mapping[str, Any], model: str, now: int, name: str) -> None:
    """Write the sound unit of a file, `name`, into a memory row.

    Raises: StateError for a file without one.
    """
    if values["version"] < FIRST_VERSION:
        raise StateError(
            f"{name}: a PyBoy state of version {values['version']}, which has no sound unit: leave sound out, or save "
            "it with PyBoy 2.8.1"
        )
    fields = fields_of(values, now, model)
    for field, value in fields.items():
        if not -(1 << 31) <= value < 1 << 31:
            raise StateError(f"{name}: damaged, {field} would be {value}")
    sound_fields.write(row, fields)
    row[WAVE_RAM] = np.frombuffer(values["wave_table"], np.uint8)


def fields_of(values: Mapping[str, Any], now: int, model: str) -> dict[str, int]:
    """The fields of a file; now: its CPU's clock."""
    fields = {name: int(values.get(name, _default(values, name))) for name in SAME}
    for name in ("sweep", "tone", "noise"):
        volume, direction, pace = values[f"{name}_envelope"].to_bytes(3, "little")
        fields[f"{name}_envelope"] = volume << 4 | direction << 3 | pace
    fields["sweep_control"] = values["sweep_pace"] << 4 | values["sweep_direction"] << 3 | values["sweep_magnitude"]
    fields["noise_control"] = values["noise_clock"] << 4 | values["noise_width"] << 3 | values["noise_divider"]
    left = _number(values["sound_sequencer"]) - values["sound_clock"]
    fields |= {"sound_on": values["sound_on"] >> 7, "sound_div": values["sound_div"] & 7}
    fields["sound_panning"] = sum(values["sound_panning"].to_bytes(8, "little"))
    fields["sound_sequencer"] = int(left) if 0 < left < LONG_AGO else hw.NEVER
    fields |= {"sound_since_div": LONG_AGO, "sound_since_off": LONG_AGO}
    fields["sound_last"] = values["sound_last"] - now
    return fields | {"sound_exact": exact(fields, model)}


def _default(values: Mapping[str, Any], name: str) -> int:
    """A value that only newer files have, as PyBoy fills it in."""
    if name.endswith("_pending_duty"):
        return values[f"{name.partition('_')[0]}_duty"]
    if name == "wave_sample_frame":
        return values["wave_frame"]
    if name == "noise_countdown":
        return NOISE_DIVIDERS[values["noise_divider"]] >> 1
    return int(name == "noise_running" and values["noise_enable"] != 0)


def settled(fields: Mapping[str, int]) -> dict[str, int]:
    """Fields after all steps of the shift register."""
    steps, is_short = fields["noise_steps"], fields["noise_control"] & lfsr.SHORT
    register = lfsr.after(fields["noise_register"], steps, is_short)
    return {**fields, "noise_register": register, "noise_steps": 0}


def comparable(fields: Mapping[str, int], model: str) -> dict[str, int]:
    """The fields that PyBoy's files have and that its next access does not compute anew, in one form."""
    left_out = {"sound_since_div", "sound_since_off", "sound_exact", "sound_exact_from", "wave_access"}
    left_out |= {"noise_period_timer"} if model == "cgb" else set()  # which a Game Boy Color does not use
    return {name: value for name, value in settled(fields).items() if name not in left_out}


def values_of(row: np.ndarray, now: int, speed: int) -> dict[str, Any]:
    """The values of a file, from a memory row; now: its CPU's clock; speed: 1 at double speed."""
    fields = settled(sound_fields.read(row))
    values: dict[str, Any] = {name: fields[name] for name in SAME} | {"wave_table": row[WAVE_RAM].tobytes()}
    for name in ("sweep", "tone", "noise"):
        byte = fields[f"{name}_envelope"]
        values[f"{name}_envelope"] = int.from_bytes(bytes([byte >> 4, byte >> 3 & 1, byte & 7]), "little")
    sweep, noise, panning = fields["sweep_control"], fields["noise_control"], fields["sound_panning"]
    values |= {"sweep_pace": sweep >> 4, "sweep_direction": sweep >> 3 & 1, "sweep_magnitude": sweep & 7}
    values |= {"noise_clock": noise >> 4, "noise_width": noise >> 3 & 1, "noise_divider": noise & 7}
    values["noise_feedback"] = 0x4040 if noise & lfsr.SHORT else 0x4000
    values["sound_panning"] = int.from_bytes(bytes(panning & 0x80 >> bit for bit in range(8)), "little")
    values |= {"sound_on": fields["sound_on"] << 7, "sound_div": fields["sound_div"], "sound_last": now}
    edge = CLOCK + fields["sound_sequencer"] if fields["sound_sequencer"] != hw.NEVER else CYCLES_NEVER
    event = min(edge, math.ceil(CLOCK + SAMPLE_T_CYCLES)) << speed
    values |= {"sound_clock": CLOCK, "sound_sequencer": _bits(edge), "sound_target": _bits(CLOCK + SAMPLE_T_CYCLES)}
    return values | {"sound_event": event, "sound_speed": speed, "sound_sampling_off": 1}


def _number(bits: int) -> float:
    """A number of 64 bits of a file as the floating-point number that it is."""
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def _bits(number: float) -> int:
    """The inverse."""
    return struct.unpack("<Q", struct.pack("<d", number))[0]
